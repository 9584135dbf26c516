"""Statistics over seeds, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from evaluation.measure import seed_statistics


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


def test_a_single_run_has_no_interval() -> None:
    found = seed_statistics([_report(accuracy=0.9)])["accuracy"]
    assert (found["mean"], found["std"], found["low"], found["high"]) == (0.9, None, None, None)


def test_a_metric_that_a_run_lacks_is_left_out() -> None:
    reports = [_report(accuracy=0.9, kappa=0.8), _report(accuracy=0.9, kappa=None)]
    assert list(seed_statistics(reports)) == ["accuracy"]
    assert seed_statistics([]) == {}
