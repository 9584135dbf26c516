"""MathVerse's scoring in VLMEvalKit. The reply is a digit.

The prompt indents the item, but not its examples.
"""

from serve.chat.contract import Contract, chat_contract
from serve.chat.layout import PromptLayout


@chat_contract
def mathverse() -> Contract:
    """Return MathVerse's contract."""
    return Contract(
        name="mathverse",
        harness="MathVerse (VLMEvalKit)",
        task="hieval-qs",
        layouts=(
            PromptLayout(
                "    [Question]: {question}\n    [Standard Answer]: {reference}\n"
                "    [Model_answer] : {response}\n    Judgement:"
            ),
        ),
        words={"Correct": "1", "Wrong": "0"},
        json_key="score",
        body={"temperature": 0, "max_tokens": 2048},
    )
