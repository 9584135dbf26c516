"""SimpleVQA's judge as its paper prints it. The reply is a letter.

The prompt has its examples before the new question.
"""

from serve.chat.contract import Contract, chat_contract
from serve.chat.layout import PromptLayout

FIELDS = (
    "new question example{skip}\nQuestion: {question}\n\nCorrect Answer: {reference}\n\n"
    "Predicted Answer: {response}\n"
)


@chat_contract
def simplevqa() -> Contract:
    """Return the contract of SimpleVQA's English prompt."""
    return Contract(
        name="simplevqa",
        harness="SimpleVQA (English)",
        task="simplevqa",
        layouts=(
            PromptLayout(FIELDS + '""\n\nEvaluate', variant="english"),
            PromptLayout(FIELDS.replace("\n\n", "\n") + "```\n\nEvaluate", variant="english"),
        ),
        words={"Correct": "A", "Incorrect": "B", "Not attempted": "C"},
    )
