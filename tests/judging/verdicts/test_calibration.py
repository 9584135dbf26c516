"""Thresholds for a stated risk: simulated judges whose true error at every threshold is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from pydantic import ValidationError
from scipy.special import expit
from scipy.stats import binom, binomtest, norm

from judging.errors import CustosError
from judging.types import Verdict
from judging.verdicts.calibration import (
    CHANCE,
    Calibration,
    CalibrationSet,
    HeldOutVerdicts,
    with_review,
)
from judging.verdicts.calibration_fit import cross_fitted_verdicts, draw_rows


def _calibration(**fields: object) -> Calibration:
    given = {
        "temperature": 2.0,
        "bias": {"Correct": 1.0, "Wrong": -1.0},
        "n": 5,
        "nll_before": 1.0,
        "nll_after": 0.5,
    }
    return Calibration.model_validate(given | fields)


def test_posterior_by_hand() -> None:
    # Scores: ln(1/9) / 2 + 1 = 1 - ln 3 and ln(1) / 2 - 1 = -1.
    # Odds: e^(2 - ln 3) = e^2 / 3.
    odds = np.e**2 / 3
    found = _calibration().posterior({"Correct": float(np.log(1 / 9)), "Wrong": 0.0})
    assert found["Correct"] == pytest.approx(odds / (1 + odds), rel=1e-12)
    assert sum(found.values()) == pytest.approx(1, rel=1e-12)
    hopeless = _calibration().posterior({"Correct": -4000.0, "Wrong": -9000.0})
    assert hopeless == {"Correct": 1.0, "Wrong": 0.0}


def test_a_set_is_bound_to_its_judge(tmp_path: Path) -> None:
    fitted = CalibrationSet(judge="abc", rubrics={"hieval-qs/plain/any": _calibration()})
    path = tmp_path / "calibration.json"
    path.write_text(fitted.model_dump_json(), encoding="utf-8")
    loaded = CalibrationSet.load(path, "abc")
    assert (loaded, loaded.id) == (fitted, fitted.id)
    other = CalibrationSet(judge="abc", rubrics={"r": _calibration(temperature=2.1)})
    assert other.id != fitted.id
    with pytest.raises(CustosError, match=r"fitted for judge abc, but this judge is xyz"):
        CalibrationSet.load(path, "xyz")


ZERO = {"r": _calibration().model_dump() | {"temperature": 0}}


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", '{"judge": "abc"}', '{"judge": "abc", "rubrics": {}, "extra": 1}'),
        json.dumps({"judge": "abc", "rubrics": ZERO}),
    ],
)
def test_malformed_files_are_one_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(CustosError, match=r"calibration\.json: "):
        CalibrationSet.load(path, "abc")


DRAWS = 200
MOST_EXCEEDED = int(binom.ppf(0.999, DRAWS, CHANCE))
"""Draws that exceed the level, if each does with the largest probability allowed."""

Floats = npt.NDArray[np.float64]


class SimulatedJudge:
    """A judge of two labels whose log-odds are normal and whose errors follow a known curve.

    Args:
        floor: Error of the most confident verdicts, as people's slips leave.
        slope: 1 for honest confidences; smaller for confidences that claim too much.
        flat: Error of every verdict, whatever its confidence.
    """

    def __init__(self, floor: float = 0.0, slope: float = 1.0, flat: float | None = None) -> None:
        self.floor, self.slope, self.flat = floor, slope, flat
        log_odds = np.sort(np.random.default_rng(99).normal(3, 2, 400_000))
        self._confidence = expit(log_odds)
        from_top = np.cumsum(self.error(log_odds)[::-1])[::-1]
        self._kept_error = from_top / np.arange(len(log_odds), 0, -1)

    def error(self, log_odds: Floats) -> Floats:
        if self.flat is not None:
            return np.full_like(log_odds, self.flat)
        return np.asarray(self.floor + (1 - self.floor) * expit(-self.slope * log_odds))

    def kept_error(self, threshold: float) -> float:
        """Return the true error among verdicts at least so confident."""
        return float(self._kept_error[np.searchsorted(self._confidence, threshold)])

    def share_kept(self, threshold: float) -> float:
        return float((self._confidence >= threshold).mean())

    def draw(
        self, rng: np.random.Generator, questions: int, rows: int, within: float
    ) -> tuple[Floats, npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Draw log-odds, errors and questions; ``within`` is the correlation inside a question."""
        question = np.repeat(np.arange(questions), rows)

        def alike() -> Floats:
            shared, alone = rng.normal(size=questions)[question], rng.normal(size=len(question))
            return np.asarray(np.sqrt(within) * shared + np.sqrt(1 - within) * alone)

        log_odds = 3 + 2 * alike()
        return log_odds, norm.cdf(alike()) < self.error(log_odds), question


CURVES = {
    "honest": SimulatedJudge(),
    "with slips of people": SimulatedJudge(floor=0.02),
    "too sure": SimulatedJudge(slope=0.7),
    "just above the level everywhere": SimulatedJudge(flat=0.052),
}


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize(("questions", "rows", "within"), [(600, 1, 0.0), (600, 4, 0.8)])
def test_the_level_holds_in_all_but_one_of_twenty_draws(
    curve: str, questions: int, rows: int, within: float
) -> None:
    judge, rng = CURVES[curve], np.random.default_rng(5)
    thresholds = []
    for _ in range(DRAWS):
        log_odds, wrong, question = judge.draw(rng, questions, rows, within)
        shuffled = rng.permutation(len(question))
        chosen = shuffled[np.unique(question[shuffled], return_index=True)[1]]
        held_out = HeldOutVerdicts(
            confidence=tuple(expit(log_odds[chosen]).tolist()),
            right=tuple((~wrong[chosen]).tolist()),
        )
        thresholds.append(held_out.threshold(0.05))
    exceeded = sum(t is not None and judge.kept_error(t) > 0.05 for t in thresholds)
    assert exceeded <= MOST_EXCEEDED
    if curve == "honest":
        kept = np.mean([0 if t is None else judge.share_kept(t) for t in thresholds])
        assert kept > 0.4, "a rule that keeps nothing would hold every level"


def test_the_level_is_that_of_a_verdict_where_hard_questions_have_more_rows() -> None:
    """A row of each question held the level per question: hard ones have five rows, easy ones one.

    A fifth of the questions is hard, so that by verdict five in nine are.
    """
    rng, exceeded, kept_all = np.random.default_rng(4), 0, 0
    hard_error, easy_error = 0.086, 0.02
    true_error = (5 * hard_error + 4 * easy_error) / 9
    assert true_error > 0.05 > (hard_error + 4 * easy_error) / 5
    for _ in range(DRAWS):
        is_hard = rng.random(1200) < 0.2
        questions = np.repeat(np.arange(1200), np.where(is_hard, 5, 1))
        wrong = rng.random(len(questions)) < np.where(is_hard, hard_error, easy_error)[questions]
        for rows in (draw_rows(questions, rng), np.unique(questions, return_index=True)[1]):
            held_out = HeldOutVerdicts(
                confidence=(0.9,) * len(rows), right=tuple((~wrong[rows]).tolist())
            )
            is_kept = held_out.threshold(0.05) is not None
            if len(rows) == 1200:
                kept_all += is_kept
            else:
                exceeded += is_kept
    assert exceeded <= MOST_EXCEEDED < kept_all


def test_equal_questions_are_all_drawn() -> None:
    rows = draw_rows(np.arange(60) % 20, np.random.default_rng(0))
    assert sorted((rows % 20).tolist()) == list(range(20))


def test_no_label_of_a_question_helps_to_make_its_own_confidence() -> None:
    log_odds, wrong, question = SimulatedJudge().draw(np.random.default_rng(8), 20, 2, 0.5)
    logprobs = np.log(np.stack([expit(log_odds), expit(-log_odds)], axis=1))
    targets = np.where(np.arange(len(wrong)) % 2 == 0, 0, 1)
    labels = ("Correct", "Wrong")
    first = cross_fitted_verdicts(logprobs, targets, labels, question)
    other_targets = np.where(question == 7, 1 - targets, targets)
    second = cross_fitted_verdicts(logprobs, other_targets, labels, question)
    assert len(first.confidence) == 20, "one row of each question"
    assert first.confidence[7] == second.confidence[7]
    assert first.confidence != second.confidence, "other folds are fitted on the changed labels"
    chosen = np.flatnonzero(question == 7)
    assert first.right[7] != second.right[7] and len(chosen) == 2


def test_each_test_is_the_exact_binomial_one() -> None:
    """With all confidences equal there is a single test: scipy's, at every number of errors."""
    for errors in range(12):
        held_out = HeldOutVerdicts(
            confidence=(0.999999,) * 100, right=(False,) * errors + (True,) * (100 - errors)
        )
        p_value = binomtest(errors, 100, 0.1, alternative="less").pvalue
        assert (held_out.threshold(0.1) is not None) == (p_value <= CHANCE)


def test_too_few_questions_keep_nothing() -> None:
    """58 right answers of 58 do not show an error of at most .05; 59 do."""
    few, enough = (
        HeldOutVerdicts(confidence=(0.9,) * n, right=(True,) * n).threshold(0.05) for n in (58, 59)
    )
    assert few is None and enough is not None and enough < 0.1
    assert HeldOutVerdicts(confidence=(), right=()).threshold(0.05) is None
    with pytest.raises(ValidationError, match="differ in length"):
        HeldOutVerdicts(confidence=(0.5,), right=())


def test_a_verdict_below_the_threshold_needs_review_and_says_why() -> None:
    verdict = Verdict(status="scored", label="Correct", confidence=0.8, message="a note")
    assert with_review(verdict, 0.05, 0.8) == verdict
    below = with_review(verdict, 0.05, 0.9)
    assert below.needs_review
    assert below.message == (
        "a note; the confidence 0.800 is below 0.900, from which on the error is at most 0.05"
    )
    nothing = with_review(verdict, 0.05, None)
    assert nothing.needs_review and "no confidence is known" in str(nothing.message)
