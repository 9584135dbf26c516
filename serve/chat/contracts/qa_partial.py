"""inspect_ai's scorers with ``partial_credit=True``. The reference is a set of elements."""

from serve.chat.contract import Contract, chat_contract
from serve.chat.contracts.qa import FACT, PARTIAL_CREDIT, QA
from serve.chat.layout import PromptLayout


@chat_contract
def qa_partial() -> Contract:
    """Return inspect_ai's contract for partial credit."""
    return Contract(
        name="qa-partial",
        harness="inspect_ai, partial credit",
        task="hieval-qs",
        layouts=tuple(
            PromptLayout(template, cues=(PARTIAL_CREDIT,), reference_mode="all")
            for template in (QA, FACT)
        ),
        words={"Correct": "C", "Partial": "P", "Wrong": "I"},
        reply="GRADE: {label}",
        json_key="grade",
    )
