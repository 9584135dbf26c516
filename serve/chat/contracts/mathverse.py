"""MathVerse's scoring in VLMEvalKit: a digit. Unlike its examples, the item is indented."""

from serve.chat.contract import Contract, Layout

CONTRACT = Contract(
    name="mathverse",
    harness="MathVerse (VLMEvalKit)",
    task="hieval-qs",
    layouts=(
        Layout(
            "    [Question]: {question}\n    [Standard Answer]: {reference}\n"
            "    [Model_answer] : {response}\n    Judgement:"
        ),
    ),
    words={"Correct": "1", "Wrong": "0"},
    json_key="score",
    body={"temperature": 0, "max_tokens": 2048},
)
