import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.correction.intervals import ppi_plus_plus
from evaluation.correction.label_plan import expected_half_widths, judge_correlation, labels_needed
from experiments.findings.interval_coverage import ITEMS, Setting, draw
from judging.errors import CustosError

rates, accuracies = st.floats(0.05, 0.95), st.floats(0.5, 1.0)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("accuracy", [0.6, 0.8, 0.9, 0.98])
@pytest.mark.parametrize("half_width", [0.04, 0.07])
def test_the_planned_labels_give_the_wanted_half_width(
    rate: float, accuracy: float, half_width: float
) -> None:
    correlation = judge_correlation(rate, accuracy, accuracy)
    plan = labels_needed(half_width, ITEMS, rate, correlation)
    assert plan.with_judge is not None
    assert plan.alone is not None
    for labels, alone in ((plan.with_judge, False), (plan.alone, True)):
        setting = Setting(accuracy, "alike", rate, labels, "random")
        tuned = ppi_plus_plus(draw(setting, 2000, np.random.default_rng(labels)))
        made = tuned.alone if alone else tuned.rates
        # With 30 labels and a rate of .1 the mean width is 4.5 % below that at the mean rate.
        assert np.mean(made.high - made.low) / 2 == pytest.approx(half_width, rel=0.05)


@given(st.floats(0.02, 0.2), st.integers(200, 3000), rates, st.floats(-1, 1))
def test_one_label_fewer_is_not_enough(
    half_width: float, items: int, rate: float, correlation: float
) -> None:
    plan = labels_needed(half_width, items, rate, correlation)
    for number, labels in enumerate(plan):
        at = items if labels is None else labels
        widths = expected_half_widths(np.array([at - 1.0, at]), items, rate, correlation)[number]
        assert widths[0] > half_width or at == 2
        assert (widths[1] > half_width) == (labels is None)
    if plan.alone is not None:
        assert plan.with_judge is not None
        assert plan.with_judge <= plan.alone


def test_labels_alone_by_hand() -> None:
    # Wilson's half-width at a rate of .5 is z / (2 sqrt(n + z²)): n = z² (1 / (4 h²) - 1).
    z2 = 1.959963984540054**2
    assert labels_needed(0.05, 10_000, 0.5, 0).alone == int(np.ceil(z2 * (100 - 1)))


def test_too_few_items_cannot_be_narrow_enough() -> None:
    assert labels_needed(0.01, 100, 0.5, 0.9) == (None, None)


def test_a_useless_judge_saves_nothing_and_a_better_one_more() -> None:
    needed = [labels_needed(0.05, 2000, 0.5, c).with_judge for c in (0.0, 0.4, 0.6, 0.8, 0.95)]
    assert needed[0] == labels_needed(0.05, 2000, 0.5, 0.0).alone
    assert None not in needed
    assert needed == sorted(needed, key=lambda labels: -(labels or 0))
    assert len(set(needed)) == 5
    assert labels_needed(0.05, 2000, 0.5, -0.8).with_judge == needed[3]


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


def test_a_judge_of_one_label_has_no_correlation() -> None:
    assert judge_correlation(0.3, 1.0, 0.0) == 0
    assert judge_correlation(1.0, 0.9, 0.9) == 0


@pytest.mark.parametrize(
    ("half_width", "items", "rate", "correlation"),
    [(0.0, 100, 0.5, 0.5), (0.1, 1, 0.5, 0.5), (0.1, 100, 1.0, 0.5), (0.1, 100, 0.5, 1.5)],
)
def test_a_plan_from_impossible_numbers_is_refused(
    half_width: float, items: int, rate: float, correlation: float
) -> None:
    with pytest.raises(CustosError, match="a plan needs"):
        labels_needed(half_width, items, rate, correlation)
