"""A soak of seconds: what it counts is what happened, and nothing of it harms the service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.service.soak import PICTURE, SAMPLES, SUMMARY, soak
from experiments.service.soak_report import MEASURES, summarise, table


def test_a_short_soak_loses_no_call(small: str, tmp_path: Path) -> None:
    summary = soak(small, 8, tmp_path, clients=6, every=1)
    assert summary["faults"] == []
    assert summary["exit_code"] == 0
    assert summary["statuses"].get("200", 0) > 20
    counts = summary["counters"]
    assert counts["accepted"] == counts["answered"] + counts["expired"] + counts["abandoned"]
    assert (counts["waiting"], counts["running"]) == (0, 0)
    assert summary["events"]["killed clients"] >= 2
    assert summary["events"]["key files"] >= 2
    lines = (tmp_path / SAMPLES).read_text().splitlines()
    assert len(lines) == summary["samples"] >= 5
    assert json.loads(lines[-1])["memory_mb"] > 50
    assert json.loads((tmp_path / SUMMARY).read_text()) == summary
    assert (tmp_path / PICTURE).stat().st_size < 100_000
    assert table(summary).row_count == len(MEASURES)


def test_a_leak_is_a_slope() -> None:
    sample = dict.fromkeys(MEASURES, 5.0) | {"statuses": {"200": 2}, "events": {}, "faults": ["x"]}
    samples = [sample | {"minutes": minute, "memory_mb": 100 + 2 * minute} for minute in range(60)]
    summary = summarise(samples)
    assert summary["measures"]["memory_mb"]["per_hour"] == pytest.approx(120)
    assert summary["measures"]["threads"]["per_hour"] == pytest.approx(0)
    assert (summary["statuses"], summary["num_faults"]) == ({"200": 120}, 60)
