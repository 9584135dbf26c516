"""The learning curve of a run shows its validations, and how much of stage 1 is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes

from evaluation.report.plots import draw_learning_curve


def test_the_learning_curve_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curves: dict[str, list[float]] = {}
    plot = Axes.plot

    def note(self: Axes, x: Any, y: Any, **style: Any) -> Any:
        curves[style["label"]] = list(y)
        return plot(self, x, y, **style)

    monkeypatch.setattr(Axes, "plot", note)
    entries = [{"step": i, "val_accuracy": i / 2, "stage1_accuracy": 1 - i / 2} for i in range(3)]
    draw_learning_curve(entries, tmp_path / "curve.png")
    assert curves["stage1 kept"] == [1.0, 0.5, 0.0]
