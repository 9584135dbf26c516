"""The list of benchmarks."""

from __future__ import annotations

from tests.cli.bench.made_up import run


def test_list() -> None:
    shown = run("list").stdout
    for name in ("charthal", "chartom", "hieval", "simplevqa", "truthfulvqa"):
        assert name in shown
    assert "Table 2" in shown
