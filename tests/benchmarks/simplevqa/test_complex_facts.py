"""Complex fact questions."""

from __future__ import annotations

import pytest

from tests.benchmarks.simplevqa.made_up import SIMPLEVQA, graded, item, three_forms


def test_failures_are_put_down_to_seeing_or_knowing() -> None:
    forms = ["+++", "+-+", "--+", "--+", "0-+", "-+-", "-+0", "---", "-++", "++-"]
    rows = [three_forms(form, number) for number, form in enumerate(forms)]
    lost = three_forms("+++", 99)
    lost["cfq"]["Atomic"]["conclusion"] = None
    cfq = SIMPLEVQA.table([*rows, lost, item(50, judge_res={"response": "A"})])["cfq"]
    assert cfq == pytest.approx(
        {
            "Origin": 3 / 10,
            "Atomic": 5 / 10,
            "Atomic-Given": 6 / 10,
            "did not see": 3 / 7,
            "did not know": 2 / 7,
            "neither saw nor knew": 1 / 7,
            "saw and knew": 1 / 7,
        }
    )


def test_a_file_without_atomic_answers_has_no_such_section() -> None:
    table = SIMPLEVQA.table(graded("AB"))
    assert "cfq" not in table
    assert "calibration" not in table
