"""Hand-made material shared by the tests of this folder."""

from collections.abc import Iterable
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


def values_of(rows: Iterable[LabelledExample], key: str) -> set[str]:
    """All values that a field of the rows' metadata takes."""
    return {row.metadata[key] for row in rows}
