"""CHARTOM's FACT question. Its grader is not public, so this is a form of our own."""

from serve.chat.contract import Contract, Layout, Sample

FIELDS = "[Question]\n{question}\n[Answer key]\n{reference}\n[Response]\n{response}\n[End]"

CONTRACT = Contract(
    name="chartom",
    harness="CHARTOM",
    task="chartom-fact",
    layouts=(
        Layout(
            "\nKind: choice\n" + FIELDS,
            variant="choice",
            sample=Sample("Which month is wettest? 1. May 2. June", "1", "It is May.", "June"),
        ),
        Layout(
            "\nKind: ranking\n" + FIELDS,
            variant="ranking",
            sample=Sample("Rank the months.", "May > June", "May, then June", "June, then May"),
        ),
        Layout(
            "\nKind: number\n" + FIELDS,
            variant="number",
            sample=Sample("How much rain fell in June?", "40", "About 41 mm", "400 mm"),
        ),
    ),
    words={"Correct": "Correct", "Incorrect": "Incorrect"},
)
