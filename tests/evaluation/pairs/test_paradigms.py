"""Pairs judged by the scores of their responses: what the scores lead to."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.pairs.paradigms import order_by_reward, order_by_score, ordered
from judging.types import Verdict

scores = st.floats(-1e4, 1e4, allow_nan=False)


def _scored(score: float | None, **posterior: float) -> Verdict:
    status: Any = "scored" if score is not None else "judge_error"
    probabilities = {name.removeprefix("s"): value for name, value in posterior.items()}
    return Verdict(id="x", status=status, score=score, probabilities=probabilities)


@given(scores, scores)
def test_rewards_order_pairs(a: float, b: float) -> None:
    found = order_by_reward(_scored(a), _scored(b))
    assert sum(found.values()) == pytest.approx(1)
    verdict = ordered("p", _scored(a), _scored(b), order_by_reward)
    assert verdict.label == ("A" if a > b else "B" if b > a else "None")
    assert found["A"] == pytest.approx(order_by_reward(_scored(b), _scored(a))["B"])
    assert order_by_reward(_scored(math.log(3)), _scored(0.0))["A"] == pytest.approx(0.75)


def test_scores_are_drawn_independently() -> None:
    first, second = _scored(6.0, s2=0.5, s10=0.5), _scored(9.0, s9=1.0)
    assert order_by_score(first, second) == pytest.approx({"A": 0.5, "B": 0.5, "None": 0.0})
    assert order_by_score(second, second) == pytest.approx({"A": 0.0, "B": 0.0, "None": 1.0})
    rng = Random(0)
    a = _scored(0.0, s1=0.2, s5=0.5, s7=0.3)
    b = _scored(0.0, s5=0.6, s6=0.4)
    exact, drawn = order_by_score(a, b), {"A": 0, "B": 0, "None": 0}
    for _ in range(20_000):
        x, y = (
            int(rng.choices(list(v.probabilities), list(v.probabilities.values()))[0])
            for v in (a, b)
        )
        drawn["A" if x > y else "B" if y > x else "None"] += 1
    for label, count in drawn.items():
        assert count / 20_000 == pytest.approx(exact[label], abs=0.015)


def test_a_response_without_a_score_leaves_its_pair_without_a_label() -> None:
    verdict = ordered("p", _scored(1.0), _scored(None), order_by_reward)
    assert (verdict.label, verdict.status) == (None, "judge_error")
