"""A million rows through a judge of rules: the memory of command and worker stays flat."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shards.measure import NUM_ROWS, NUM_SHARDS, draw, measure, write_rows

pytest.importorskip("ray", reason="pip install 'ray[data]'")


def growth(samples: list[tuple[float, float]]) -> float:
    """The largest size of the last quarter, as a share of that of the second quarter."""
    sizes = [size for _, size in samples]
    quarter = len(sizes) // 4
    return max(sizes[-quarter:]) / max(sizes[quarter : 2 * quarter])


@pytest.mark.slow
def test_memory_is_flat(tmp_path: Path) -> None:
    write_rows(tmp_path / "in")
    figures = measure(tmp_path)
    assert figures["rows"] == NUM_SHARDS * NUM_ROWS
    assert growth(figures["command"]) < 1.1
    assert growth(figures["worker"]) < 1.1
    draw(figures, tmp_path / "memory.png")
    assert 5_000 < (tmp_path / "memory.png").stat().st_size < 100_000
