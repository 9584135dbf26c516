"""Validation accuracy with its interval, against published formulas and plain counting."""

from __future__ import annotations

import pytest

from evaluation.intervals import wilson_interval
from tests.train.made_up import example
from train.finish.result import WIDEST, ValidationAccuracy, validation_accuracy


def test_one_row_per_question_is_close_to_wilson() -> None:
    right = [True] * 150 + [False] * 50
    rows = [example(i, group=str(i)) for i in range(200)]
    accuracy = validation_accuracy(right, rows)
    low, high = wilson_interval(150, 200)
    assert accuracy.low == pytest.approx(low, abs=0.002)
    assert accuracy.high == pytest.approx(high, abs=0.002)
    assert not accuracy.is_too_wide


def test_rows_that_would_do_do() -> None:
    def three_of_four(count: int) -> ValidationAccuracy:
        rows = [example(i, group=str(i)) for i in range(count)]
        return validation_accuracy([i % 4 > 0 for i in range(count)], rows)

    few = three_of_four(20)
    assert few.is_too_wide
    enough = three_of_four(few.rows_wanted)
    assert (enough.high - enough.low) / 2 <= WIDEST
    assert few.rows_wanted <= 120


def test_rows_of_one_question_count_as_less() -> None:
    right = [True] * 50 + [False] * 50
    alone = validation_accuracy(right, [example(i, group=str(i)) for i in range(100)])
    together = validation_accuracy(right, [example(i, group=str(i // 10)) for i in range(100)])
    assert together.high - together.low > 2 * (alone.high - alone.low)
    single = validation_accuracy(right, [example(i, group="one") for i in range(100)])
    assert single.high - single.low > 0.75, "one question says next to nothing"


def test_undecided_rows_are_left_out() -> None:
    rows = [example(i, group=str(i)) for i in range(4)]
    accuracy = validation_accuracy([True, None, False, None], rows)
    assert (accuracy.value, accuracy.rows) == (0.5, 2)
