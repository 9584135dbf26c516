"""Calibration of stated confidence."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.simplevqa.made_up import SIMPLEVQA, item


def test_stated_confidence_by_hand() -> None:
    said = [("A", "Rembrandt [0.95]"), ("A", "Rembrandt [90%]"), ("B", "Rubens [0.9]")] + [
        ("C", "no idea [0.1]"),
        ("A", "Rembrandt"),
        ("huh", "Rembrandt [0.2]"),
    ]
    rows = [item(n, conclusion, response=text) for n, (conclusion, text) in enumerate(said)]
    calibration = SIMPLEVQA.table(rows)["calibration"]
    assert calibration["accuracy"] == 2 / 4
    assert calibration["confidence"] == pytest.approx((0.95 + 0.9 + 0.9 + 0.1) / 4)
    assert calibration["by_confidence"] == {
        "0.1-0.2": {"accuracy": 0},
        "0.9-1.0": {"accuracy": 2 / 3},
    }
    stated, right = np.array([0.95, 0.9, 0.9, 0.1]), np.array([1, 1, 0, 0])
    # Bins of equal mass: with fewer items than bins, one for each value of confidence.
    groups = [stated == value for value in (0.95, 0.9, 0.1)]
    expected = sum(abs(stated[g].mean() - right[g].mean()) * g.sum() for g in groups) / 4
    assert calibration["ece"] == pytest.approx(expected)
    # Bins of equal width: .95 lies in the last of 15, which begins at .933, and .9 before it.
    apart = [stated == 0.95, stated == 0.9, stated == 0.1]
    by_width = sum(abs(stated[g].sum() - right[g].sum()) for g in apart) / 4
    assert calibration["ece_equal_width"] == pytest.approx(by_width)
