"""Validation accuracy with its interval, against published formulas and plain counting."""

from __future__ import annotations

import pytest

from evaluation.intervals import wilson_interval
from tests.train.made_up import example
from train.finish.report import ENOUGH_QUESTIONS, WIDEST, validation_accuracy


def test_one_row_per_question_is_close_to_wilson() -> None:
    right = [True] * 150 + [False] * 50
    rows = [example(i, group=str(i)) for i in range(200)]
    accuracy = validation_accuracy(right, rows)
    low, high = wilson_interval(150, 200)
    assert accuracy.low == pytest.approx(low, abs=0.002)
    assert accuracy.high == pytest.approx(high, abs=0.002)
    assert not accuracy.is_too_wide


def test_questions_that_are_called_enough_are_enough() -> None:
    assert ENOUGH_QUESTIONS == 100
    for wrong in (0, 5, 25, 50):
        rows = [example(i, group=str(i)) for i in range(ENOUGH_QUESTIONS)]
        accuracy = validation_accuracy([i >= wrong for i in range(len(rows))], rows)
        assert (accuracy.high - accuracy.low) / 2 <= WIDEST
        assert not accuracy.is_too_wide


def test_a_handful_of_rows_is_too_few() -> None:
    rows = [example(i, group=str(i // 2)) for i in range(4)]
    assert validation_accuracy([True, True, False, False], rows).is_too_wide


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
