"""CHARTOM's FACT question. Its grader is not public, so the form is our own."""

from serve.chat.contract import Contract, chat_contract
from serve.chat.layout import PromptLayout, Sample

FIELDS = "[Question]\n{question}\n[Answer key]\n{reference}\n[Response]\n{response}\n[End]"


@chat_contract
def chartom() -> Contract:
    """Return CHARTOM's contract."""
    return Contract(
        name="chartom",
        harness="CHARTOM",
        task="chartom-fact",
        layouts=(
            PromptLayout(
                "\nKind: choice\n" + FIELDS,
                variant="choice",
                sample=Sample("Which month is wettest? 1. May 2. June", "1", "It is May.", "June"),
            ),
            PromptLayout(
                "\nKind: ranking\n" + FIELDS,
                variant="ranking",
                sample=Sample("Rank the months.", "May > June", "May, then June", "June, then May"),
            ),
            PromptLayout(
                "\nKind: number\n" + FIELDS,
                variant="number",
                sample=Sample.of_task("chartom-fact", wrong="400 mm"),
            ),
        ),
        words={"Correct": "Correct", "Incorrect": "Incorrect"},
    )
