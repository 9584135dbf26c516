"""SimpleQA's grader and those made after it: a letter."""

from serve.chat.contract import Contract, Layout

CONTRACT = Contract(
    name="simpleqa",
    harness="SimpleQA",
    task="simplevqa",
    layouts=(
        Layout(
            "new example{skip}\nQuestion: {question}\nGold target: {reference}\n"
            "Predicted answer: {response}\n```\n\nGrade",
            variant="english",
        ),
    ),
    words={"Correct": "A", "Incorrect": "B", "Not attempted": "C"},
)
