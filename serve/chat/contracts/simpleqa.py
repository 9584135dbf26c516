"""The grader of SimpleQA and of benchmarks made after it. The reply is a letter."""

from serve.chat.contract import Contract, chat_contract
from serve.chat.layout import PromptLayout


@chat_contract
def simpleqa() -> Contract:
    """Return SimpleQA's contract."""
    return Contract(
        name="simpleqa",
        harness="SimpleQA",
        task="simplevqa",
        layouts=(
            PromptLayout(
                "new example{skip}\nQuestion: {question}\nGold target: {reference}\n"
                "Predicted answer: {response}\n```\n\nGrade",
                variant="english",
            ),
        ),
        words={"Correct": "A", "Incorrect": "B", "Not attempted": "C"},
    )
