"""Answers kept at a risk, and the curve of risk and coverage, against figures made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evaluation.metrics import UNSCORED
from evaluation.outcomes import Outcomes
from evaluation.report.markdown import review_line
from evaluation.report.report import abstention, risk_coverage
from tests.evaluation.report.made_up import report


def outcomes(confidence: list[float], right: list[bool]) -> Outcomes:
    """Verdicts on as many questions; one with a confidence of nan has no label."""
    n = len(right)
    human = np.zeros(n, dtype=np.int64)
    values = np.array(confidence)
    return Outcomes(
        labels=("Correct", "Wrong"),
        human=human,
        predicted=np.where(np.isnan(values), UNSCORED, np.where(right, 0, 1)),
        probabilities=np.full((n, 2), np.nan),
        confidence=values,
        clusters=np.arange(n),
    )


def test_the_curve_by_hand() -> None:
    curve = risk_coverage(outcomes([0.9, 0.6, 0.8, np.nan], [True, True, False, False]))
    assert curve is not None
    assert curve["n"] == 3
    np.testing.assert_allclose(curve["coverage"], [1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(curve["error"], [0, 1 / 2, 1 / 3])
    assert curve["aurc"] == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)
    assert curve["aurc_best"] == pytest.approx((0 + 0 + 1 / 3) / 3)


def test_equal_confidences_share_their_errors() -> None:
    """The order of the rows must not change the area."""
    right = [True, False, False, True]
    forward = risk_coverage(outcomes([0.7] * 4, right))
    backward = risk_coverage(outcomes([0.7] * 4, right[::-1]))
    assert forward == backward and forward is not None
    assert forward["aurc"] == pytest.approx(0.5)
    assert risk_coverage(outcomes([np.nan] * 2, [True, True])) is None


def test_a_long_curve_keeps_its_ends() -> None:
    rng = np.random.default_rng(0)
    curve = risk_coverage(outcomes(rng.random(1234).tolist(), (rng.random(1234) < 0.8).tolist()))
    assert curve is not None
    assert len(curve["coverage"]) == len(curve["error"]) == 100
    assert (curve["coverage"][0], curve["coverage"][-1]) == (1 / 1234, 1.0)


@pytest.mark.parametrize(
    ("num_wrong", "level"), [(0, "not shown"), (2, "not shown"), (4, "not shown"), (40, "exceeded")]
)
def test_whether_the_level_holds(num_wrong: int, level: str) -> None:
    right = [False] * num_wrong + [True] * (100 - num_wrong) + [False] * 100
    review = np.arange(200) >= 100
    measured = abstention(outcomes([0.9] * 200, right), review, 0.03, 200)
    assert measured["kept"]["value"] == 0.5
    assert measured["error"]["value"] == pytest.approx(num_wrong / 100)
    assert (measured["error"]["n"], measured["level"]) == (100, level)


def test_a_level_is_shown_by_the_upper_end() -> None:
    """A true error of .08 was called below .1 in half of all cases by the point alone."""
    right = [False] * 2 + [True] * 298
    measured = abstention(outcomes([0.9] * 300, right), np.zeros(300, dtype=bool), 0.03)
    assert measured["level"] == "shown" and measured["error"]["high"] < 0.03
    nothing = abstention(outcomes([0.9] * 300, right), np.ones(300, dtype=bool), 0.03)
    assert nothing["level"] == "nothing kept"


def test_a_level_is_not_called_exceeded_without_an_interval() -> None:
    """Rows on one question have no spread: nothing is known of the error on others."""
    verdicts = outcomes([0.9] * 4, [True, True, True, False])
    of_one_question = replace(verdicts, clusters=np.zeros(4, dtype=np.int64))
    measured = abstention(of_one_question, np.zeros(4, dtype=bool), 0.05, 200)
    assert (measured["error"]["value"], measured["level"]) == (0.25, "not shown")
    assert np.isnan(measured["error"]["low"])


def test_the_report_says_whether_the_level_holds() -> None:
    stated = report(risk=0.5)
    assert stated["abstention"]["kept"]["value"] == stated["coverage"]
    assert "at a stated risk of 0.5, 0.8" in review_line(stated)
    assert review_line(stated).endswith("the level is shown to hold")
    assert stated["risk_coverage"]["n"] == stated["metrics"]["accuracy"]["n"]
    assert review_line({**stated, "abstention": None, "needs_review": 0}) == ""
