"""SimpleVQA's judge as its paper prints it: a letter. The examples come before the new question."""

from serve.chat.contract import Contract, Layout

FIELDS = (
    "new question example{skip}\nQuestion: {question}\n\nCorrect Answer: {reference}\n\n"
    "Predicted Answer: {response}\n"
)

CONTRACT = Contract(
    name="simplevqa",
    harness="SimpleVQA (English)",
    task="simplevqa",
    layouts=(
        Layout(FIELDS + '""\n\nEvaluate', variant="english"),
        Layout(FIELDS.replace("\n\n", "\n") + "```\n\nEvaluate", variant="english"),
    ),
    words={"Correct": "A", "Incorrect": "B", "Not attempted": "C"},
)
