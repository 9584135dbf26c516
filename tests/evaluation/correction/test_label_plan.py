"""Planned numbers of labels, against simulation, formulas and statsmodels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.correction.label_plan import (
    Need,
    Questions,
    expected_half_widths,
    gate_needs,
    judge_correlation,
    labels_needed,
    rate_needs,
    risk_needs,
    threshold_needs,
)
from evaluation.estimate import lowest_difference, share
from evaluation.intervals import Ints
from judging.verdicts.calibration import HeldOutVerdicts
from tests.evaluation.drawn import ITEMS, Setting, alike, draw

rates, accuracies = st.floats(0.05, 0.95), st.floats(0.5, 1.0)


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("accuracy", [0.6, 0.9, 0.98])
@pytest.mark.parametrize("half_width", [0.04, 0.07])
def test_the_planned_labels_give_the_wanted_half_width(
    rate: float, accuracy: float, half_width: float
) -> None:
    correlation = judge_correlation(rate, accuracy, accuracy)
    plan = labels_needed(half_width, ITEMS, rate, correlation, Questions())
    assert plan.with_judge is not None
    assert plan.alone is not None
    for labels, alone in ((plan.with_judge, False), (plan.alone, True)):
        setting = Setting(accuracy, rate, labels)
        found = draw(setting, 200, np.random.default_rng(labels))
        made = [each.labelled if alone else each.corrected for each in found]
        # With 30 labels and a rate of .1 the mean width is 4.5 % below that at the mean rate.
        mean_width = np.mean([rate.high - rate.low for rate in made])
        assert mean_width / 2 == pytest.approx(half_width, rel=0.07)


@given(st.floats(0.02, 0.2), st.integers(200, 3000), rates, st.floats(-1, 1))
def test_one_label_fewer_is_not_enough(
    half_width: float, items: int, rate: float, correlation: float
) -> None:
    plan = labels_needed(half_width, items, rate, correlation, Questions())
    for number, labels in enumerate(plan):
        at = items if labels is None else labels
        widths = expected_half_widths(
            np.array([at - 1.0, at]), items, rate, correlation, Questions()
        )[number]
        assert widths[0] > half_width or at == 2
        assert (widths[1] > half_width) == (labels is None)
    if plan.alone is not None:
        assert plan.with_judge is not None
        assert plan.with_judge <= plan.alone


@given(rates, accuracies, accuracies)
def test_correlation_is_that_of_the_two_labels(
    rate: float, sensitivity: float, specificity: float
) -> None:
    table = np.array([
        [(1 - rate) * specificity, (1 - rate) * (1 - specificity)],
        [rate * (1 - sensitivity), rate * sensitivity],
    ])  # fmt: skip
    people, judge = np.indices((2, 2))
    covariance = np.cov(people.ravel(), judge.ravel(), aweights=table.ravel(), ddof=0)
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert judge_correlation(rate, sensitivity, specificity) == pytest.approx(expected, abs=1e-9)


SHAPES = [Questions(), Questions(10, 10, 0.3)]
"""One row a question, and ten that are alike."""


def clusters_of(need: Need, shape: Questions) -> Ints:
    assert need.questions is not None
    assert need.rows == need.questions * shape.rows
    return np.repeat(np.arange(need.questions), int(shape.rows))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("rate", "half_width"), [(0.9, 0.04), (0.7, 0.06)])
def test_the_planned_questions_give_an_accuracy_the_wanted_half_width(
    shape: Questions, rate: float, half_width: float
) -> None:
    clusters = clusters_of(rate_needs(half_width, rate, shape), shape)
    rng = np.random.default_rng(0)
    halves = []
    for _ in range(300):
        right = alike(clusters, shape.correlation, rng) < rate
        found = share(right, None, clusters)
        halves.append((found["high"] - found["low"]) / 2)
    assert np.mean(halves) == pytest.approx(half_width, rel=0.05)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_planned_questions_pass_the_gate_in_four_of_five_cases(shape: Questions) -> None:
    clusters, rng = clusters_of(gate_needs(0.05, 0.16, shape), shape), np.random.default_rng(1)
    passed = []
    for _ in range(200):
        drawn = alike(clusters, shape.correlation, rng)
        difference = np.select([drawn < 0.08, drawn > 0.92], [-1.0, 1.0], 0.0)
        passed.append(lowest_difference(difference, clusters)[0] > -0.05)
    assert 0.74 <= np.mean(passed) <= 0.9


@pytest.mark.parametrize("shape", SHAPES)
def test_the_planned_questions_show_a_risk_in_four_of_five_cases(shape: Questions) -> None:
    clusters, rng = clusters_of(risk_needs(0.1, 0.04, 0.8, shape), shape), np.random.default_rng(2)
    shown = []
    for _ in range(200):
        wrong = alike(clusters, shape.correlation, rng) < 0.04
        found = share(wrong, rng.random(len(wrong)) < 0.8, clusters)
        shown.append(found["high"] < 0.1)
    assert 0.74 <= np.mean(shown) <= 0.92


def test_the_planned_questions_find_a_threshold_in_four_of_five_cases() -> None:
    questions, rng = threshold_needs(0.1, 0.04, 0.8), np.random.default_rng(3)
    assert questions is not None
    found = []
    for _ in range(200):
        is_sure = rng.random(questions) < 0.8
        right = rng.random(questions) < np.where(is_sure, 0.96, 0.4)
        verdicts = HeldOutVerdicts(
            confidence=tuple(np.where(is_sure, 0.99, 0.2).tolist()), right=tuple(right.tolist())
        )
        found.append(verdicts.threshold(0.1) is not None)
    assert 0.75 <= np.mean(found) <= 0.92


@pytest.mark.parametrize(("changed", "margin", "rows"), [(0.1, 0.02, 1546.99), (0.2, 0.05, 495.96)])
def test_the_gate_needs_the_rows_of_a_paired_test(
    changed: float, margin: float, rows: float
) -> None:
    """statsmodels 0.15: ``TTestPower().solve_power(margin / sqrt(changed), alpha=.05, power=.8)``.

    The score test counts the variance at the margin, which is a little more.
    """
    assert rows < (gate_needs(margin, changed, Questions()).rows or 0) < 1.03 * rows


@pytest.mark.parametrize(("rate", "half", "rows"), [(0.9, 0.03, 384.15), (0.5, 0.05, 384.15)])
def test_an_accuracy_needs_the_rows_of_a_proportion(rate: float, half: float, rows: float) -> None:
    """statsmodels 0.15: ``samplesize_confint_proportion(rate, half)``, by the normal interval."""
    assert rate_needs(half, rate, Questions()).rows == pytest.approx(rows, rel=0.015)
