import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.report.plots import (
    draw_confusion,
    draw_learning_curve,
    draw_ranking,
    draw_risk_coverage,
    error_bars,
)


def test_learning_curve_of_incomplete_history(tmp_path: Path) -> None:
    history = [{"step": 1.0, "train_loss": 0.7}, {"step": 2.0, "val_nll": 0.6}, {"step": 3.0}]
    draw_learning_curve(history, tmp_path / "new" / "curve.png")
    assert (tmp_path / "new" / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_learning_curve_of_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no train_loss, val_nll or val_accuracy"):
        draw_learning_curve([{"step": 1.0}], tmp_path / "curve.png")
    assert list(tmp_path.iterdir()) == []


def test_confusion_with_an_unused_label(tmp_path: Path) -> None:
    confusion = {"labels": ["Correct", "Wrong; Image Misunderstanding"], "counts": [[3, 1], [0, 0]]}
    draw_confusion(confusion, tmp_path / "c.png")
    assert (tmp_path / "c.png").stat().st_size > 1000


def test_ranking_without_intervals(tmp_path: Path) -> None:
    share = {"value": 0.5, "low": None, "high": None}
    answerers = {name: {"n": 1, "people": share, "judge": share} for name in "ab"}
    nothing = {"value": None, "low": None, "high": None, "n": 2}
    draw_ranking({"answerers": answerers, "kendall_tau": nothing}, tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size > 1000


def test_a_stated_risk_without_an_interval(tmp_path: Path) -> None:
    curve = {"coverage": [0.5, 1.0], "error": [0.1, 0.5], "aurc": 0.2}
    error = {"value": 0.5, "low": None, "high": None}
    abstention = {"risk": 0.05, "kept": {"value": 1.0}, "error": error}
    draw_risk_coverage(curve, abstention, tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size > 1000


def test_lengths_of_error_bars() -> None:
    known = {"value": 0.5, "low": 0.25, "high": 1.0}
    assert error_bars([known, {**known, "low": None}]).tolist() == [[0.25, 0.0], [0.5, 0.5]]


def test_evaluation_imports_without_matplotlib_or_sklearn() -> None:
    code = (
        "import sys, evaluation.report.report, evaluation.report.plots, evaluation.folder;"
        "import evaluation.comparisons.compare;"
        "sys.exit(any(name in sys.modules for name in ('matplotlib', 'sklearn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
