"""CHARTOM's MIND: the justification of an answer. Its grader is not public: a form of our own."""

from serve.chat.contract import Contract, chat_contract
from serve.chat.layout import PromptLayout, Sample


@chat_contract
def chartom_mind() -> Contract:
    """Return the contract of CHARTOM's justifications."""
    return Contract(
        name="chartom-mind",
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
