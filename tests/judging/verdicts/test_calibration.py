"""Calibrations: fits of planted or independently found values, thresholds of known error."""

import json
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
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
from judging.verdicts.calibration_fit import (
    cross_fitted_verdicts,
    draw_rows,
    fit_calibration,
    fit_score_calibration,
    fit_type_calibration,
)


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


SOUND = _calibration().model_dump()


def _with(**changed: object) -> str:
    return json.dumps({"judge": "abc", "rubrics": {"hieval-qs/plain/any": {**SOUND, **changed}}})


HELD_OUT = {"judge": "abc", "rubrics": {}, "held_out": {"r": {"confidence": [1e999], "right": [1]}}}


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", '{"judge": "abc"}', '{"judge": "abc", "rubrics": {}, "extra": 1}'),
        _with(temperature=0),
        _with(temperature=math.inf),
        _with(temperature=math.nan),
        _with(bias={"Correct": math.nan, "Wrong": 0}),
        json.dumps(HELD_OUT),
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

    ``flat`` is the error of every verdict, whatever its confidence; by default it is honest.
    """

    def __init__(self, flat: float | None = None) -> None:
        self.flat = flat
        log_odds = np.sort(np.random.default_rng(99).normal(3, 2, 400_000))
        self._confidence = expit(log_odds)
        from_top = np.cumsum(self.error(log_odds)[::-1])[::-1]
        self._kept_error = from_top / np.arange(len(log_odds), 0, -1)

    def error(self, log_odds: Floats) -> Floats:
        return expit(-log_odds) if self.flat is None else np.full_like(log_odds, self.flat)

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


LABELS = ("Correct", "Partial", "Wrong")
TYPED = ("Correct", "Partial; A", "Partial; B", "Wrong; A", "Wrong; B")


def _planted(
    temperature: float, bias: tuple[float, ...], n: int = 20_000, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Log-probabilities of a judge that is off by exactly this temperature and bias."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(scale=3, size=(n, len(bias)))
    truth = np.exp(log_softmax(scores / temperature + np.array(bias), axis=1))
    targets = (truth.cumsum(1) < rng.random((n, 1))).sum(1)
    # A judge leaves mass outside the labels; it differs per item and must not matter.
    return log_softmax(scores, axis=1) - rng.exponential(size=(n, 1)), targets.astype(np.int64)


@pytest.mark.parametrize(("temperature", "bias"), [(2.0, (0.9, -0.2, -0.7)), (1.0, (0, 0, 0))])
def test_recovers_a_planted_temperature_and_bias(
    temperature: float, bias: tuple[float, ...]
) -> None:
    fitted = fit_calibration(*_planted(temperature, bias), LABELS)
    # Sampling error at 20,000 items is about 0.03; the ridge pulls by less than 0.01.
    assert fitted.temperature == pytest.approx(temperature, abs=0.08)
    assert list(fitted.bias.values()) == pytest.approx(list(bias), abs=0.08)
    assert sum(fitted.bias.values()) == pytest.approx(0, abs=1e-9)
    gain = fitted.nll_before - fitted.nll_after
    assert gain > 0.1 if any(bias) else 0 <= gain < 1e-3
    assert fitted.n == 20_000


def test_matches_an_independent_optimum() -> None:
    logprobs, targets = _planted(1.7, (0.5, 0.5, -1.0), n=500, seed=4)

    def nll(parameters: NDArray[np.float64]) -> float:
        scores = logprobs / parameters[0] + np.array([0.0, parameters[1], parameters[2]])
        return float(-log_softmax(scores, axis=1)[np.arange(len(targets)), targets].mean())

    best = minimize(nll, [1.0, 0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-7})
    fitted = fit_calibration(logprobs, targets, LABELS)
    bias = np.array([0.0, best.x[1], best.x[2]])
    # The fit adds a ridge of 0.001 that the optimum here lacks.
    assert fitted.temperature == pytest.approx(best.x[0], rel=0.02)
    assert list(fitted.bias.values()) == pytest.approx((bias - bias.mean()).tolist(), abs=0.02)
    assert best.fun <= fitted.nll_after < best.fun + 1e-4
    assert fitted.nll_before == pytest.approx(nll(np.array([1.0, 0.0, 0.0])), rel=1e-9)
    chosen = [fitted.bias[label] for label in LABELS]
    scores = logprobs / fitted.temperature + np.array(chosen)
    after = -log_softmax(scores, axis=1)[np.arange(len(targets)), targets].mean()
    assert fitted.nll_after == pytest.approx(float(after), rel=1e-9)


def test_biases_that_are_not_there_are_seldom_fitted() -> None:
    """Rows of one question err alike; with folds by row 39 to 50 % of such fits had biases."""
    biased, fits = 0, 40
    for seed in range(fits):
        rng = np.random.default_rng(seed)
        questions = np.repeat(np.arange(15), 20)
        scores = rng.normal(scale=2, size=(300, 3))
        shift = rng.normal(scale=1, size=(15, 3))[questions]
        truth = np.exp(log_softmax(scores + shift, axis=1))
        targets = np.minimum((truth.cumsum(1) < rng.random((300, 1))).sum(1), 2)
        logprobs = log_softmax(scores, axis=1)
        fitted = fit_calibration(logprobs, targets.astype(np.int64), LABELS, questions)
        biased += any(fitted.bias.values())
    assert biased <= 0.15 * fits


def test_rows_on_one_question_or_of_one_label_fit_nothing() -> None:
    logprobs, targets = _planted(3.0, (0.0, 0.0), n=40)
    question = np.zeros(40, dtype=np.int64)
    fitted = fit_calibration(logprobs, targets, LABELS[:2], question)
    assert (fitted.temperature, set(fitted.bias.values())) == (1, {0})
    with pytest.raises(CustosError, match="one question"):
        cross_fitted_verdicts(logprobs, targets, LABELS[:2], question)
    for single in ([], [2, 2, 2]):
        with pytest.raises(CustosError):
            fit_calibration(np.zeros((len(single), 3)), np.array(single, np.int64), LABELS)
    assert fit_type_calibration(logprobs, targets, LABELS[:2]) is None, "they have no types"


def test_a_class_hardly_seen_does_not_run_away() -> None:
    logprobs = np.log(np.array([[0.98, 0.01, 0.01]] * 99 + [[0.01, 0.98, 0.01]]))
    targets = np.array([0] * 98 + [2, 1])
    fitted = fit_calibration(logprobs, targets, LABELS)
    assert all(abs(bias) < 10 for bias in fitted.bias.values())
    assert 0.05 < fitted.temperature < 20


def test_without_rows_of_a_label_the_temperature_alone_is_fitted() -> None:
    """Of a planted temperature, from items that all have one of two labels of three."""
    logprobs, targets = _planted(1.8, (0.0, 0.0, 0.0), n=6000)
    kept = targets != 1
    logprobs[:, 1] = -30.0  # the judge does not believe in it either
    fitted = fit_calibration(logprobs[kept], targets[kept], LABELS)
    assert fitted.temperature == pytest.approx(1.8, abs=0.15)
    assert set(fitted.bias.values()) == {0.0}


def test_score_and_type_are_calibrated_apart() -> None:
    """Types given the score are off by one temperature and bias, scores by another."""
    rng = np.random.default_rng(2)
    n = 20_000
    scores, types = rng.normal(scale=2, size=(n, 3)), rng.normal(scale=2, size=(n, 2, 2))
    shares = np.exp(log_softmax(scores / 2.0, axis=1))
    given = np.exp(log_softmax(types / 0.5 + np.array([0.6, -0.6]), axis=2))
    score = (shares.cumsum(1) < rng.random((n, 1))).sum(1)
    second = rng.random(n) > np.where(score == 2, given[:, 1, 0], given[:, 0, 0])
    targets = np.where(score == 0, 0, 2 * score - 1 + second).astype(np.int64)
    log_scores, log_types = log_softmax(scores, axis=1), log_softmax(types, axis=2)
    joint = np.concatenate(
        [log_scores[:, :1], *(log_scores[:, i + 1 : i + 2] + log_types[:, i] for i in range(2))],
        axis=1,
    )
    by_score = fit_score_calibration(joint, targets, TYPED)
    by_type = fit_type_calibration(joint, targets, TYPED)
    assert by_type is not None
    assert list(by_score.bias) == ["Correct", "Partial", "Wrong"]
    assert by_score.temperature == pytest.approx(2.0, abs=0.08)
    assert by_type.temperature == pytest.approx(0.5, abs=0.03)
    assert list(by_type.bias.values()) == pytest.approx([0.6, -0.6], abs=0.05)
    assert by_type.n == (targets > 0).sum()

    fitted = CalibrationSet(judge="x", rubrics={"t/r": by_score}, error_types={"t/r": by_type})
    found = fitted.posterior("t/r", dict(zip(TYPED, joint[0].tolist(), strict=True)))
    truth = [shares[0, 0], *(shares[0, 1] * given[0, 0]), *(shares[0, 2] * given[0, 1])]
    assert list(found) == list(TYPED)
    assert list(found.values()) == pytest.approx(truth, abs=0.05)
    assert sum(found.values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("n", [4, 12, 29])
def test_a_handful_of_items_changes_no_label_and_little_else(n: int) -> None:
    """Four confident items, all of them right, must not turn a close decision into a sure one."""
    targets = np.arange(n) % len(LABELS)
    sure = np.full((n, len(LABELS)), 0.02)
    sure[np.arange(n), targets] = 1 - 0.02 * (len(LABELS) - 1)
    calibration = fit_calibration(np.log(sure), targets, LABELS)
    assert set(calibration.bias.values()) == {0.0}
    assert calibration.temperature > (0.5 if n == 4 else 0.1)
    close = dict(zip(LABELS, np.log([0.40, 0.35, 0.25]), strict=True))
    assert max(calibration.posterior(close).values()) < (0.5 if n == 4 else 1)
