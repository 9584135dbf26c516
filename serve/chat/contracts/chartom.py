"""CHARTOM's questions. Its graders are not public, so the forms are our own."""

from serve.chat.contract import Contract, PromptLayout, Sample, chat_contract

FACT = "[Question]\n{question}\n[Answer key]\n{reference}\n[Response]\n{response}\n[End]"
MIND = "\n[Question]\n{question}\n[Manipulation]\n{reference}\n[Reasons]\n{response}\n[End]"
SAMPLES = {
    "choice": Sample("Which month is wettest? 1. May 2. June", "1", "It is May.", "June"),
    "ranking": Sample("Rank the months.", "May > June", "May, then June", "June, then May"),
    "number": Sample.of_task("chartom-fact", wrong="400 mm"),
}
NO_REASON = "No: the chart is clear and easy to read."


@chat_contract
def chartom() -> Contract:
    """Define the contract of FACT questions."""
    return Contract(
        name="chartom",
        harness="CHARTOM",
        task="chartom-fact",
        layouts=tuple(
            PromptLayout(f"\nKind: {kind}\n{FACT}", variant=kind, sample=sample)
            for kind, sample in SAMPLES.items()
        ),
        words={"Correct": "Correct", "Incorrect": "Incorrect"},
    )


@chat_contract
def chartom_mind() -> Contract:
    """Define the contract of MIND: the justification of an answer."""
    sample = Sample.of_task("chartom-justification", wrong=NO_REASON)
    return Contract(
        name="chartom-mind",
        harness="CHARTOM, justifications",
        task="chartom-justification",
        layouts=(PromptLayout(MIND, sample=sample),),
        words={"Named": "Named", "Missed": "Missed"},
    )
