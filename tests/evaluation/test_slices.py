"""One judge on the parts of its items."""

from __future__ import annotations

from evaluation.measure import length_thirds
from evaluation.report.report import build_report
from tests.evaluation.made_up import example, scored
from tests.evaluation.report.made_up import report


def test_slices_divide_all_items() -> None:
    slices = report()["slices"]
    assert slices.keys() == {"answerer", "response_length", "task"}
    for parts in slices.values():
        assert sum(part["n"] for part in parts.values()) == 180
        assert all({"accuracy", "kappa"} <= part.keys() for part in parts.values())
    assert list(slices["response_length"]) == sorted(
        slices["response_length"], key=lambda part: int(part.split("(")[1].split("-")[0])
    )


def test_slices_by_language_where_it_is_known() -> None:
    examples = [
        example(id="a", metadata={"language": "en"}),
        example(id="b", metadata={"language": "zh"}),
        example(id="c"),
    ]
    verdicts = [scored("Correct", id="a"), scored("Wrong", id="b"), scored("Correct", id="c")]
    made = build_report(examples, verdicts, seconds=1, command="")
    language = made["slices"]["language"]
    assert {part: row["accuracy"]["value"] for part, row in language.items()} == {"en": 1, "zh": 0}


def test_length_thirds_are_equal_and_keep_ties_together() -> None:
    def thirds(*lengths: int) -> list[str]:
        return length_thirds([example(responses=("x" * length,)) for length in lengths])

    short, middle, long = (
        "short (1-2 characters)",
        "middle (3-5 characters)",
        "long (8-9 characters)",
    )
    assert thirds(9, 1, 5, 3, 8, 2) == [long, short, middle, middle, long, short]
    assert thirds(4, 4, 4) == ["short (4-4 characters)"] * 3
