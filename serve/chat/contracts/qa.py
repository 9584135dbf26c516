"""inspect_ai's ``model_graded_qa`` and ``model_graded_fact``, and a plain form for anybody."""

from serve.chat.contract import Contract, chat_contract
from serve.chat.layout import PromptLayout

QA = (
    "[BEGIN DATA]\n***\n[Task]: {question}\n***\n[Submission]: {response}\n***\n"
    "[Criterion]: {reference}\n***\n[END DATA]"
)
FACT = (
    "[BEGIN DATA]\n************\n[Question]: {question}\n************\n[Expert]: {reference}\n"
    "************\n[Submission]: {response}\n************\n[END DATA]"
)
PLAIN = "\nQuestion: {question}\nReference: {reference}\nResponse: {response}"
PARTIAL_CREDIT = "one of cpi"


@chat_contract
def qa() -> Contract:
    """Return inspect_ai's contract."""
    return Contract(
        name="qa",
        harness="inspect_ai",
        task="hieval-qs",
        layouts=tuple(
            PromptLayout(template, absent=(PARTIAL_CREDIT,)) for template in (QA, FACT, PLAIN)
        ),
        words={"Correct": "C", "Wrong": "I"},
        reply="GRADE: {label}",
        json_key="grade",
    )
