from __future__ import annotations

import pytest

from evaluation.error_types import PUBLISHED, error_types, type_accuracies
from evaluation.outcomes import gather
from evaluation.report.markdown import render_markdown
from evaluation.report.report import build_report
from judging.types import LabelledExample, Verdict

LABELS = ("Correct", "Partial; A", "Partial; B", "Wrong; A", "Wrong; B")
# People, judge.
JUDGED = [
    ("Correct", "Correct"),
    ("Correct", "Wrong; A"),
    ("Partial; A", "Wrong; A"),  # the type is right, the score is not
    ("Partial; A", "Partial; A"),
    ("Wrong; A", "Correct"),
    ("Wrong; A", "Wrong; B"),
    ("Wrong; B", "Wrong; B"),
    ("Partial; B", "Wrong; B"),
]


def _records() -> tuple[list[LabelledExample], list[Verdict]]:
    examples, verdicts = [], []
    for i, (people, judge) in enumerate(JUDGED):
        examples.append(
            LabelledExample(
                id=str(i),
                task="hieval-ea",
                question=f"Which {i}?",
                references=("7",),
                responses=("8",),
                label=people,
            )
        )
        score, _, kind = judge.partition("; ")
        verdicts.append(Verdict(id=str(i), status="scored", label=score, error_type=kind or None))
    return examples, verdicts


def test_shares_by_hand() -> None:
    found = type_accuracies(gather(*_records(), LABELS), resamples=200)
    assert {kind: (row["value"], row["n"]) for kind, row in found.items()} == {
        "A": (0.5, 4),
        "B": (1.0, 2),
    }
    for row in found.values():
        assert row["low"] <= row["value"] <= row["high"]


def test_labels_without_types_have_none() -> None:
    examples, verdicts = _records()
    assert error_types(("Correct", "Wrong")) == ()
    outcomes = gather(examples[:1], verdicts[:1], ("Correct", "Wrong"))
    assert type_accuracies(outcomes, resamples=10) == {}


def test_the_report_lays_them_out_beside_the_published() -> None:
    examples, verdicts = _records()
    report = build_report(examples, verdicts, seconds=1.0, command="x", resamples=50)
    assert report["error_types"]["A"]["value"] == 0.5
    assert report["metrics"]["type_accuracy"]["value"] == pytest.approx(4 / 6)
    assert report["metrics"]["score_accuracy"]["value"] == pytest.approx(4 / 8)
    page = render_markdown(report)
    assert "## Error types" in page
    assert "HiEval-EA, published" in page


@pytest.mark.parametrize("judge", PUBLISHED)
def test_published_figures_agree_with_each_other(judge: str) -> None:
    """Per-type shares weighted by the type counts of the paper's test give its A-Acc."""
    counts = {
        "Reasoning Error": 260,
        "Image Misunderstanding": 265,
        "Unanswerable": 100,
        "Overthinking": 210,
        "Other": 165,
    }
    row = PUBLISHED[judge]
    total = sum(counts[kind] * row[kind] for kind in counts) / sum(counts.values())
    assert total == pytest.approx(row["type_accuracy"], abs=6e-4)
