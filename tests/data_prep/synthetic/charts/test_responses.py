"""Exercises, their slips, and scores."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.made.charts.operations import operations_for
from data_prep.made.charts.responses import draw_exercise, score_answers
from data_prep.made.charts.scenes import KINDS, draw_scene

seeds = st.integers(min_value=-(2**63), max_value=2**63)


@settings(max_examples=100, deadline=None)
@given(seeds, st.sampled_from(sorted(KINDS)))
def test_slips_keep_to_right_readings_and_problems_can_be_solved(seed: int, kind: str) -> None:
    rng = Random(seed)
    exercise = draw_exercise(rng, KINDS[kind], draw_scene(rng, KINDS[kind]), operations_for(kind))
    assert exercise.problem.solve(exercise.view) == exercise.truth
    for slip in exercise.problem.slips(exercise.view):
        assert set(slip.solution.items) <= set(exercise.view)
        assert slip.solution.answers and slip.solution != exercise.truth


@pytest.mark.parametrize(
    ("answers", "score"),
    [("AB", "Correct"), ("BA", "Correct"), ("A", "Partial"), ("AC", "Wrong"), ("", "Wrong")],
)
def test_score(answers: str, score: str) -> None:
    assert score_answers(answers, "AB") == score
