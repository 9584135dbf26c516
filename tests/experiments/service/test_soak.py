"""A soak is summed up as it was sampled."""

from __future__ import annotations

import pytest

from experiments.service.soak_report import MEASURES, summarise


def test_a_leak_is_a_slope() -> None:
    sample = dict.fromkeys(MEASURES, 5.0) | {"statuses": {"200": 2}, "events": {}, "faults": ["x"]}
    samples = [sample | {"minutes": minute, "memory_mb": 100 + 2 * minute} for minute in range(60)]
    summary = summarise(samples)
    assert summary["measures"]["memory_mb"]["per_hour"] == pytest.approx(120)
    assert summary["measures"]["threads"]["per_hour"] == pytest.approx(0)
    assert (summary["statuses"], summary["num_faults"]) == ({"200": 120}, 60)
