"""CHARTOM's justification of a MIND answer. Its grader is not public, so the form is our own."""

from serve.chat.contract import Contract, chat_contract
from serve.chat.layout import PromptLayout, Sample


@chat_contract
def chartom_justification() -> Contract:
    """Return the contract of CHARTOM's justifications."""
    return Contract(
        name="chartom-justification",
        harness="CHARTOM, justifications",
        task="chartom-justification",
        layouts=(
            PromptLayout(
                "\n[Question]\n{question}\n[Manipulation]\n{reference}\n[Reasons]\n{response}\n[End]",
                sample=Sample.of_task(
                    "chartom-justification", wrong="No: the chart is clear and easy to read."
                ),
            ),
        ),
        words={"Named": "Named", "Missed": "Missed"},
    )
