"""inspect_ai's scorers with ``partial_credit=True``: the reference is a set of elements."""

from serve.chat.contract import Contract, Layout
from serve.chat.contracts.qa import FACT, PARTIAL_CREDIT, QA

CONTRACT = Contract(
    name="qa-partial",
    harness="inspect_ai, partial credit",
    task="hieval-qs",
    layouts=tuple(
        Layout(template, cues=(PARTIAL_CREDIT,), reference_mode="all") for template in (QA, FACT)
    ),
    words={"Correct": "C", "Partial": "P", "Wrong": "I"},
    reply="GRADE: {label}",
    json_key="grade",
)
