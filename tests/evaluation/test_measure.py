"""Every metric of one judge, on all items and on parts; statistics over seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluation.declared_labels import label_set
from evaluation.measure import length_thirds, measure, measure_error_types, seed_statistics
from evaluation.outcomes import Outcomes, gather
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import (
    TYPED_LABELS,
    evaluation,
    example,
    scored,
    typed_records,
    unscored,
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
