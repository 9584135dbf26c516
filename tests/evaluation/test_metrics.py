"""Agreement, by hand and against scikit-learn; all that is measured of a judge."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn

from evaluation import metrics
from evaluation.intervals import Floats, Ints
from evaluation.measure import length_thirds, measure, measure_error_types, seed_statistics
from evaluation.outcomes import Outcomes, gather, label_set
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import (
    TYPED_LABELS,
    evaluation,
    example,
    scored,
    typed_records,
    unscored,
)

# Rows people, columns judge. 13 of 20 agree; people 10/6/4, judge 9/5/6.
CONFUSION = np.array([[7.0, 1, 2], [2, 3, 1], [0, 1, 3]])
OF_CONFUSION = (metrics.accuracy, metrics.cohen_kappa, metrics.matthews, metrics.macro_f1)
pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


def arrays(drawn: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    human, predicted = np.array(drawn, dtype=np.int64).T
    return human, predicted


@given(pairs)
def test_agrees_with_scikit_learn(drawn: list[tuple[int, int]]) -> None:
    human, predicted = arrays(drawn)
    confusion = metrics.confusion_matrix(human, predicted, 4)
    np.testing.assert_array_equal(
        confusion, sklearn.confusion_matrix(human, predicted, labels=range(4))
    )
    assert metrics.accuracy(confusion) == pytest.approx(sklearn.accuracy_score(human, predicted))
    assert metrics.macro_f1(confusion) == pytest.approx(
        sklearn.f1_score(human, predicted, average="macro", zero_division=0)
    )
    if len({*human, *predicted}) > 1:
        assert metrics.cohen_kappa(confusion) == pytest.approx(
            sklearn.cohen_kappa_score(human, predicted), abs=1e-12
        )
    if len(set(human)) > 1 and len(set(predicted)) > 1:
        assert metrics.matthews(confusion) == pytest.approx(
            sklearn.matthews_corrcoef(human, predicted), abs=1e-12
        )


@pytest.mark.parametrize("metric", OF_CONFUSION)
def test_extremes(metric: Callable[[Floats], Floats]) -> None:
    assert metric(np.diag([3.0, 4.0])) == pytest.approx(1)
    assert np.isnan(metric(np.zeros((2, 2))))


def test_a_constant_judge_has_no_correlation_but_a_kappa_of_zero() -> None:
    constant = np.array([[7.0, 0], [3, 0]])
    assert np.isnan(metrics.matthews(constant))
    assert metrics.cohen_kappa(constant) == 0
    assert np.isnan(metrics.cohen_kappa(np.array([[7.0, 0], [0, 0]])))


def test_leading_axes_are_free() -> None:
    stack = np.random.default_rng(0).integers(1, 9, size=(5, 3, 3)).astype(float)
    for metric in (*OF_CONFUSION, metrics.precision, metrics.recall, metrics.f1):
        np.testing.assert_allclose(metric(stack), [metric(matrix) for matrix in stack])


def test_false_positive_rate_is_of_what_people_call_wrong() -> None:
    correct, wrong = np.array([0]), np.array([2])
    assert metrics.share_in_columns(CONFUSION, wrong, correct) == 0
    assert metrics.share_in_columns(CONFUSION.T, wrong, correct) == pytest.approx(2 / 6)
    assert np.isnan(metrics.share_in_columns(np.diag([1.0, 1, 0]), wrong, correct))


def test_scores_of_a_posterior_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    human, probabilities = rng.integers(3, size=60), rng.dirichlet(np.ones(3), size=60)
    probabilities[0] = np.eye(3)[(human[0] + 1) % 3]  # certain and wrong
    nll = metrics.negative_log_likelihoods(human, probabilities)
    assert nll.mean() == pytest.approx(sklearn.log_loss(human, probabilities))
    assert nll[0] == pytest.approx(36.0437, abs=1e-4)
    assert metrics.brier_scores(human, probabilities).mean() == pytest.approx(
        sklearn.brier_score_loss(human, probabilities, scale_by_half=False)
    )


def outcomes(examples: list[LabelledExample], verdicts: list[Verdict]) -> Outcomes:
    return gather(examples, verdicts, label_set(examples, verdicts))


def numbered(*labels: str) -> list[LabelledExample]:
    return [example(label, id=str(i), question=f"q{i}") for i, label in enumerate(labels)]


def test_unscored_items_are_neither_right_nor_wrong() -> None:
    examples = numbered("Correct", "Wrong", "Wrong", "Correct")
    verdicts = [scored("Correct", 0.9, id="0"), scored("Correct", 0.6, id="1"), unscored("2")]
    verdicts.append(scored("Correct", id="3"))
    measured = measure(outcomes(examples, verdicts))
    values = {name: (metric["value"], metric["n"]) for name, metric in measured.items()}
    assert values["accuracy"] == (pytest.approx(2 / 3), 3)
    assert values["accuracy_unscored_as_wrong"] == (0.5, 4)
    assert values["coverage"] == (0.75, 4)
    assert values["fpr"] == (1.0, 1)
    assert values["brier"] == (pytest.approx((2 * 0.1**2 + 2 * 0.6**2) / 2), 2)
    assert values["nll"] == (pytest.approx((-np.log(0.9) - np.log(0.4)) / 2), 2)
    assert values["ece"] == (pytest.approx((0.1 + 0.6) / 2), 2)


def test_interval_against_a_plain_bootstrap_over_questions() -> None:
    judged = outcomes(*evaluation(questions=80, accuracy=0.75))
    low, high = (measure(judged, ("kappa",))["kappa"][end] for end in ("low", "high"))
    rng, kappas = np.random.default_rng(11), []
    for _ in range(1000):
        rows = np.concatenate(
            [np.flatnonzero(judged.clusters == c) for c in rng.integers(80, size=80)]
        )
        human, predicted = judged.human[rows], judged.predicted[rows]
        observed = np.mean(human == predicted)
        expected = sum(np.mean(human == k) * np.mean(predicted == k) for k in (0, 1))
        kappas.append((observed - expected) / (1 - expected))
    # Two sets of 1,000 draws: quantiles differ by a tenth of the width at most.
    assert (low, high) == pytest.approx(np.quantile(kappas, [0.025, 0.975]), abs=0.03)


def test_error_types_are_measured_apart_from_scores() -> None:
    labels = ("Correct", "Wrong; Other", "Wrong; Overthinking", "Partial; Other")
    examples = [row.model_copy(update={"task": "hieval-ea"}) for row in numbered(*labels)]
    verdicts = [
        scored("Wrong; Other", id="0"),
        scored("Wrong", id="1", error_type="Other"),
        scored("Wrong; Other", id="2"),
        scored("Wrong; Other", id="3"),
    ]
    measured = measure(outcomes(examples, verdicts))
    assert measured["accuracy"]["value"] == pytest.approx(1 / 4)
    assert measured["score_accuracy"]["value"] == pytest.approx(2 / 4)
    assert measured["type_accuracy"]["value"] == pytest.approx(2 / 3)
    assert measured["type_accuracy"]["n"] == 3
    assert measured["fpr"]["value"] == 0
    assert "type_accuracy" not in measure(outcomes(*evaluation()))


def test_shares_of_error_types_by_hand() -> None:
    found = measure_error_types(gather(*typed_records(), TYPED_LABELS))
    assert {kind: (row["value"], row["n"]) for kind, row in found.items()} == {
        "Reasoning Error": (0.5, 4),
        "Other": (1.0, 2),
    }
    for row in found.values():
        assert row["low"] <= row["value"] <= row["high"]


def test_length_thirds_are_equal_and_keep_ties_together() -> None:
    def thirds(*lengths: int) -> list[str]:
        return length_thirds([example(responses=("x" * length,)) for length in lengths])

    short, middle, long = (
        "short (1-2 characters)",
        "middle (3-5 characters)",
        "long (8-9 characters)",
    )
    assert thirds(9, 1, 5, 3, 8, 2) == [long, short, middle, middle, long, short]
    assert thirds(4, 4, 4) == ["short (4-4 characters)"] * 3


def _report(**metrics: float | None) -> dict[str, dict[str, dict[str, float | None]]]:
    return {"metrics": {name: {"value": value} for name, value in metrics.items()}}


def test_mean_deviation_and_interval() -> None:
    """Five runs: mean .92, squares of deviations .0010, t(.975, 4) = 2.776445."""
    values = (0.90, 0.91, 0.92, 0.93, 0.94)
    found = seed_statistics([_report(accuracy=value) for value in values])["accuracy"]
    assert found["values"] == list(values)
    assert found["mean"] == pytest.approx(0.92)
    assert found["std"] == pytest.approx(math.sqrt(0.0010 / 4))
    half = 2.776445 * math.sqrt(0.0010 / 4) / math.sqrt(5)
    assert (found["low"], found["high"]) == pytest.approx((0.92 - half, 0.92 + half))


def test_accuracies_before_calibration_are_metrics_too() -> None:
    reports = [
        {**_report(accuracy=0.5), "calibration": {"before": {"accuracy": {"value": value}}}}
        for value in (0.90, 0.94)
    ]
    found = seed_statistics(reports)
    assert found["accuracy"]["mean"] == 0.5
    assert found["accuracy_before_calibration"]["mean"] == pytest.approx(0.92)
    assert found["accuracy_before_calibration"]["high"] == 1.0
    assert seed_statistics([*reports, _report(accuracy=0.5)]).keys() == {"accuracy"}


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        ("accuracy", (0.90, 0.99), (pytest.approx(0.373, abs=1e-3), 1.0)),
        ("kappa", (-0.5, 0.9), (-1.0, 1.0)),
        ("ece", (0.01, 0.05), (0.0, pytest.approx(0.284, abs=1e-3))),
        ("nll", (0.2, 3.0), (0.0, pytest.approx(19.388, abs=1e-3))),
    ],
)
def test_an_interval_ends_where_the_metric_does(
    metric: str, values: tuple[float, float], expected: tuple[float, float]
) -> None:
    """Two runs: t(.975, 1) = 12.7062, so that the half-width is 6.3531 times their distance."""
    found = seed_statistics([_report(**{metric: value}) for value in values])[metric]
    assert (found["low"], found["high"]) == expected


def test_two_rows_that_say_the_reverse_are_no_certain_disagreement() -> None:
    """Kappa was -1 from -1 to -1: both ends came from the step of the derivatives."""
    examples = numbered("Correct", "Wrong")
    reversed_ = [scored("Wrong", id="0"), scored("Correct", id="1")]
    kappa = measure(outcomes(examples, reversed_), ("kappa",))["kappa"]
    assert kappa["value"] == -1 and np.isnan([kappa["low"], kappa["high"]]).all()


def test_resamples_that_exist_in_one_form_alone_are_no_interval() -> None:
    """A resample of one of two questions twice has one label of a side, and no correlation."""
    examples = [
        example(label, id=str(i), question=question, task="hieval-qs")
        for i, (label, question) in enumerate([("Partial", "a"), ("Wrong", "b"), ("Partial", "b")])
    ]
    said = [scored(label, id=str(i)) for i, label in enumerate(["Wrong", "Correct", "Correct"])]
    mcc = measure(outcomes(examples, said), ("mcc",))["mcc"]
    assert mcc["value"] == pytest.approx(-0.25)
    assert np.isnan([mcc["low"], mcc["high"]]).all()


@pytest.mark.parametrize("said", ["Correct", "Wrong"])
def test_the_overconfidence_of_a_judge_that_is_sure_lies_in_its_interval(said: str) -> None:
    """It was 0, between .723 and .277, where all of ten rows were right."""
    examples = numbered(*["Correct"] * 10)
    sure = [scored(said, 1.0, "Partial", id=str(i)) for i in range(10)]
    found = measure(outcomes(examples, sure), ("overconfidence",))["overconfidence"]
    assert found["value"] == (said == "Wrong")
    unseen = 10 / (10 + 1.959964**2)  # Wilson 1927
    expected = (0, 1 - unseen) if said == "Correct" else (unseen, 1)
    assert (found["low"], found["high"]) == pytest.approx(expected, abs=1e-6)


def test_overconfidence_allows_for_errors_that_no_row_shows() -> None:
    """A calibrated judge that is nearly sure errs on none of 25 rows in most files."""
    rng, held, all_right = np.random.default_rng(0), 0, 0
    for _ in range(40):
        stated = rng.uniform(0.95, 0.999, 25)
        right = rng.random(25) < stated
        outcomes = Outcomes(
            labels=("Correct", "Wrong"),
            human=np.zeros(25, dtype=np.int64),
            predicted=np.where(right, 0, 1),
            probabilities=np.full((25, 2), np.nan),
            confidence=stated,
            clusters=np.repeat(np.arange(5), 5),
        )
        found = measure(outcomes, ("overconfidence",))["overconfidence"]
        held += found["low"] <= 0 <= found["high"]
        all_right += bool(right.all())
    assert all_right > 10 and held == 40
