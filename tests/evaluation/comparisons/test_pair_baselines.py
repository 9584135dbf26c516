"""Judges of pairs that need no model."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.baselines import longer_response, nearer_reference
from evaluation.report.report import baseline_verdicts, build_report
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import example


def pair(first: str, second: str, label: str = "A", **fields: object) -> LabelledExample:
    given = {"task": "truthful-pair", "references": ("the red fox",), **fields}
    return example(label, responses=(first, second), **given)


@pytest.mark.parametrize(
    ("first", "second", "longer", "nearer"),
    [
        ("It is the red fox.", "A wolf, which hunts at night.", "B", "A"),
        ("A dog.", "The fox.", "B", "B"),
        ("red fox", "the  red fox ", "B", "None"),
        ("A cat", "A dog", "None", "None"),
        ("", "   ", "None", "None"),
    ],
)
def test_rules(first: str, second: str, longer: str, nearer: str) -> None:
    request = pair(first, second)
    assert longer_response(request) == longer
    assert nearer_reference(request) == nearer
    swapped = pair(second, first)
    other_way = {"A": "B", "B": "A", "None": "None"}
    assert longer_response(swapped) == other_way[longer]
    assert nearer_reference(swapped) == other_way[nearer]


def test_the_regression_learns_what_wins_from_other_questions() -> None:
    """Prefer the response without the reference's words, which no rule and no constant says."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(60):
        right, other = f"It is the red fox {number}.", f"I think of wolves {number}, or of owls."
        if rng.integers(2):
            rows.append(pair(other, right, "A", id=str(number), group=f"q{number}"))
        else:
            rows.append(pair(right, other, "B", id=str(number), group=f"q{number}"))
    found = baseline_verdicts(rows)
    assert list(found) == [
        "majority_label",
        "longer_response",
        "nearer_reference",
        "logistic_overlap",
    ]
    labels = {name: [verdict.label for verdict in verdicts] for name, verdicts in found.items()}
    assert labels["logistic_overlap"] == [row.label for row in rows]
    assert not set(labels["nearer_reference"]) & {"None"}
    assert all(
        told != row.label for told, row in zip(labels["nearer_reference"], rows, strict=True)
    )


def test_a_report_on_pairs_holds_them() -> None:
    rows = [pair(f"It is a wolf {n}.", "The red fox.", "AB"[n % 2], id=str(n)) for n in range(8)]
    verdicts = [
        Verdict(id=row.id, status="scored", label="A", probabilities={"A": 1.0}, judge="one")
        for row in rows
    ]
    baselines = build_report(rows, verdicts, seconds=1, command="")["baselines"]
    assert {"majority_label", "longer_response", "nearer_reference"} <= set(baselines)
    assert baselines["nearer_reference"]["accuracy"]["value"] == 0.5
