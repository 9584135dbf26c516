"""Arithmetic on label probabilities at its edges."""

from __future__ import annotations

import math

import pytest

from judging.probabilities import best_label, log_probabilities, normalise, score_logprobs


def test_normalised_probabilities_sum_to_one_however_small_they_are() -> None:
    found = normalise({"A": -4000.0, "B": -4000.0 + math.log(3), "C": -math.inf})
    assert found == pytest.approx({"A": 0.25, "B": 0.75, "C": 0.0})


def test_the_logarithm_of_zero_is_finite() -> None:
    logprobs = log_probabilities({"A": 1.0, "B": 0.0})
    assert logprobs["A"] == 0
    assert -1000 < logprobs["B"] < -500


def test_a_score_has_the_probability_of_all_its_types() -> None:
    typed = {"Correct": math.log(0.2), "Wrong; A": math.log(0.3), "Wrong; B": math.log(0.5)}
    assert score_logprobs(typed) == pytest.approx(
        {"Correct": math.log(0.2), "Wrong": math.log(0.8)}
    )


def test_the_score_is_decided_before_its_type() -> None:
    split = {"Correct": 0.4, "Wrong; A": 0.25, "Wrong; B": 0.35}
    assert best_label(split) == "Wrong; B"
    assert best_label({"Correct": 0.3, "Wrong": 0.7}) == "Wrong"
