"""Fitted temperatures and biases are those that were planted, or that another fit finds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from judging.errors import CustosError
from judging.verdicts.calibration import CalibrationSet
from judging.verdicts.calibration_fit import (
    cross_fitted_verdicts,
    fit_calibration,
    fit_score_calibration,
    fit_type_calibration,
)

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


def test_a_handful_of_errors_earns_no_bias() -> None:
    """A good judge with six errors among 210 items, as a small split shows it."""
    rng = np.random.default_rng(3)
    targets = rng.choice(3, size=210, p=(0.4, 0.46, 0.14))
    said = targets.copy()
    wrong = [int(i) for i in np.flatnonzero(targets == 2)[:4]] + [0, 1]
    said[wrong] = (targets[wrong] + 1) % 3
    logprobs = log_softmax(np.eye(3)[said] * rng.gamma(4, 3, size=(210, 1)), axis=1)
    fitted = fit_calibration(logprobs, targets.astype(np.int64), LABELS)
    assert list(fitted.bias.values()) == [0, 0, 0]
    assert fitted.temperature > 1.5 and fitted.nll_after < fitted.nll_before


def test_biases_are_kept_where_unseen_items_gain() -> None:
    """Decisions against cross-validation redone with another optimiser, folds drawn otherwise.

    Biases must gain more than a standard error of the gain, by items.
    """

    def nll(
        parameters: NDArray[np.float64],
        logprobs: NDArray[np.float64],
        targets: NDArray[np.int64],
        biased: bool,
    ) -> float:
        shift = np.append(parameters[1:], 0.0) if biased else 0.0
        scores = log_softmax(logprobs * np.exp(parameters[0]) + shift, axis=1)
        return float(-scores[np.arange(len(targets)), targets].sum())

    decided = []
    for n, strength in ((60, 0.05), (1500, 0.0), (1500, 1.0), (300, 1.5)):
        bias = strength * np.array([1.0, 0.0, -1.0])
        logprobs, targets = _planted(1.5, tuple(bias), n=n, seed=n)
        found = {False: np.zeros(10), True: np.zeros(10)}
        for fold in range(10):
            rest = np.arange(n) % 10 == fold
            for biased in found:
                seen = (logprobs[~rest], targets[~rest], biased)
                best = minimize(nll, np.zeros(3), seen, method="Powell").x
                found[biased][fold] = nll(best, logprobs[rest], targets[rest], biased)
        kept = any(fit_calibration(logprobs, targets, LABELS).bias.values())
        gain = found[False] - found[True]
        error = np.sqrt(10) * gain.std(ddof=1)
        # Within half of the error the two ways of drawing folds may differ.
        if abs(gain.sum() - error) > error / 2:
            assert kept == (gain.sum() > error)
            decided.append(kept)
    assert True in decided and False in decided


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


@pytest.mark.parametrize("rows", [12, 30, 48])
def test_few_rows_of_a_calibrated_judge_change_nothing(rows: int) -> None:
    changed = []
    for seed in range(15):
        logprobs, targets = _planted(1.0, (0.0, 0.0), n=rows, seed=seed)
        if len(set(targets.tolist())) == 2:
            fitted = fit_calibration(logprobs, targets, LABELS[:2])
            changed.append(fitted.temperature != 1)
    assert np.mean(changed) <= 0.34


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
