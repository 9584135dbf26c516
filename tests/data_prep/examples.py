"""Hand-made material shared by the tests of this folder."""

from typing import Any

from judging.types import LabelledExample


def example(question: str, label: str = "Correct", **fields: Any) -> LabelledExample:
    return LabelledExample(
        **{
            "question": question,
            "label": label,
            "references": ("yes",),
            "responses": ("It is yes.",),
            **fields,
        }
    )
