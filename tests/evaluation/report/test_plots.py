import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evaluation.report.plots import (
    draw_confusion,
    draw_learning_curve,
    draw_people,
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


def test_people_of_any_number_and_name(tmp_path: Path) -> None:
    share = {"agreement": {"value": 0.5, "low": None, "high": 0.7}}
    each = {
        f"$x$ {number}\x1b": {"n": number, "person": share, "judge": share, "wins": None}
        for number in range(30)
    }
    annotators = {"each": each, "people": share, "best": share}
    draw_people(annotators, tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_ranking_without_intervals(tmp_path: Path) -> None:
    share = {"value": 0.5, "low": None, "high": None}
    answerers = {name: {"n": 1, "people": share, "judge": share} for name in "ab"}
    nothing = {"value": None, "low": None, "high": None, "n": 2}
    draw_ranking({"answerers": answerers, "kendall_tau": nothing}, tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size > 1000


def test_a_stated_risk_without_an_interval(tmp_path: Path) -> None:
    curve = {"n": 2, "coverage": [0.5, 1.0], "error": [0.1, 0.5], "aurc": 0.2}
    error = {"value": 0.5, "low": None, "high": None, "n": 2}
    abstention = {"risk": 0.05, "kept": {"value": 1.0}, "error": error}
    draw_risk_coverage(curve, abstention, tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size > 1000


def test_what_is_kept_stands_on_the_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without a label are not on it: half of all rows may be all verdicts."""
    marks: list[tuple[Any, Any]] = []
    monkeypatch.setattr("matplotlib.axes.Axes.errorbar", lambda _, x, y, **kw: marks.append((x, y)))
    curve = {"n": 4, "coverage": [0.25, 1.0], "error": [0.0, 0.25], "aurc": 0.1}
    error = {"value": 0.25, "low": 0.0, "high": 0.5, "n": 4}
    kept = {"value": 0.5, "low": 0.3, "high": 0.7, "n": 8}
    abstention = {"risk": 0.05, "kept": kept, "error": error}
    draw_risk_coverage(curve, abstention, tmp_path / "r.png")
    assert marks == [([1.0], [0.25])]


def test_names_with_dollar_signs_are_no_formulas(tmp_path: Path) -> None:
    share = {"value": 0.5, "low": 0.4, "high": 0.6}
    names = ("pays $\\frac$ a day", "$}$")
    answerers = {name: {"n": 1, "people": share, "judge": share} for name in names}
    draw_ranking({"answerers": answerers, "kendall_tau": share}, tmp_path / "r.png")
    draw_confusion({"labels": names, "counts": [[3, 1], [0, 0]]}, tmp_path / "c.png")
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("r.png", "c.png"))


def test_names_with_letters_that_no_font_has_give_no_warning(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    share = {"value": 0.5, "low": 0.4, "high": 0.6}
    answerers = {name: {"n": 1, "people": share, "judge": share} for name in ("模型", "\x1b[31m")}
    draw_ranking({"answerers": answerers, "kendall_tau": share}, tmp_path / "r.png")
    assert not recwarn.list


def test_lengths_of_error_bars() -> None:
    known = {"value": 0.5, "low": 0.25, "high": 1.0}
    assert error_bars([known, {**known, "low": None}]).tolist() == [[0.25, 0.0], [0.5, 0.5]]


def test_evaluation_imports_without_matplotlib_or_sklearn() -> None:
    code = (
        "import sys, evaluation.report.report, evaluation.report.plots, evaluation.outcomes;"
        "import evaluation.comparisons.compare;"
        "sys.exit(any(name in sys.modules for name in ('matplotlib', 'sklearn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_name_of_any_length_leaves_room_for_the_picture(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    share = {"value": 0.5, "low": 0.4, "high": 0.6}
    answerers = {name: {"n": 1, "people": share, "judge": share} for name in ("a" * 500, "b")}
    draw_ranking({"answerers": answerers, "kendall_tau": share}, tmp_path / "r.png")
    assert not recwarn.list
