"""The gate for a new judge: exact tests, Holm's correction, and planted losses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

from cli.main import app
from evaluation.comparisons.gate import gate
from evaluation.outcomes import save_evaluation
from evaluation.paired import lowest_difference
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import evaluation


def test_a_loss_that_is_not_rejected_by_hand() -> None:
    """Without a difference in n items the score test leaves -d where n d / (1 - d) is z squared."""
    z2 = norm.ppf(0.95) ** 2
    for n in (100, 150, 10_000):
        lowest, _ = lowest_difference(np.zeros(n), np.arange(n))
        assert lowest == pytest.approx(-z2 / (n + z2), rel=0.05)  # Student's in place of z
    assert lowest_difference(np.zeros(100), np.arange(100))[0] < -0.02
    assert lowest_difference(np.zeros(150), np.arange(150))[0] > -0.02


def test_a_loss_of_many_items_is_wald() -> None:
    rng = np.random.default_rng(0)
    differences = rng.choice([-1.0, 0.0, 1.0], p=[0.12, 0.8, 0.08], size=20_000)
    lowest, visible = lowest_difference(differences, np.arange(20_000))
    error = differences.std() / np.sqrt(20_000)
    assert lowest == pytest.approx(differences.mean() - norm.ppf(0.95) * error, abs=1e-4)
    assert visible == pytest.approx((norm.ppf(0.95) + norm.ppf(0.8)) * error, rel=1e-3)


@pytest.mark.parametrize(("questions", "rows"), [(100, 1), (89, 5), (400, 5)])
def test_a_judge_that_loses_the_margin_is_seldom_called_no_worse(questions: int, rows: int) -> None:
    """Judges that lose 5 points passed in 95 % of draws with 100 rows, in 26 % with 445."""
    rng = np.random.default_rng(questions)
    clusters = np.repeat(np.arange(questions), rows)
    passed = {0.02: 0, 0.05: 0}
    for loss in passed:
        for _ in range(300):
            # Half of the rows of a question share one draw: a correlation of a quarter.
            shared = rng.random(questions)[clusters]
            drawn = np.where(rng.random(len(clusters)) < 0.5, shared, rng.random(len(clusters)))
            differences = np.select([drawn < 0.04 + loss, drawn > 0.96], [-1.0, 1.0], 0.0)
            passed[loss] += lowest_difference(differences, clusters)[0] > -0.02
    assert passed[0.02] <= 0.08 * 300
    assert passed[0.05] <= 0.02 * 300


def folders(
    tmp_path: Path, changed: list[Verdict], examples: list[LabelledExample], old: list[Verdict]
) -> tuple[Path, Path]:
    save_evaluation(tmp_path / "a", examples, old)
    save_evaluation(tmp_path / "b", examples, changed)
    return tmp_path / "a", tmp_path / "b"


def spoiled(
    examples: list[LabelledExample], verdicts: list[Verdict], answerer: str
) -> list[Verdict]:
    """Verdicts that are all wrong on one answerer."""
    other = {"Correct": "Wrong", "Wrong": "Correct"}
    return [
        verdict.model_copy(update={"label": other[example.label]})
        if example.metadata["answerer"] == answerer
        else verdict
        for example, verdict in zip(examples, verdicts, strict=True)
    ]


def test_a_loss_on_one_slice_is_refused(tmp_path: Path) -> None:
    examples, old = evaluation(accuracy=0.8)
    checks = gate(*folders(tmp_path, spoiled(examples, old, "bee"), examples, old))
    worse = {check.name for check in checks if check.outcome == "worse"}
    assert "answerer bee" in worse and "answerer ant" not in worse
    assert (checks[0].name, checks[0].n) == ("all", 180)
    arguments = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--gate"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 1
    assert f"B is significantly worse in {len(worse)} of {len(checks)} checks" in result.stderr
    [line] = [line for line in result.stdout.splitlines() if "answerer bee: A 0." in line]
    assert line.startswith("worse")


def test_many_slices_do_not_hide_a_loss(tmp_path: Path) -> None:
    """Holm's correction for 1,201 tests leaves a small probability small."""
    examples, old = evaluation(questions=400, accuracy=0.9)
    examples = [
        item.model_copy(update={"metadata": {"domain": item.id, "answerer": "one"}})
        for item in examples
    ]
    checks = gate(*folders(tmp_path, spoiled(examples, old, "one"), examples, old))
    assert len(checks) > 1200
    assert checks[0].outcome == "worse"


def test_rows_that_lost_their_label_count(tmp_path: Path) -> None:
    examples, old = evaluation(accuracy=0.9)
    new = [
        Verdict(id=verdict.id, status="unparsed", message="no label") if number % 2 else verdict
        for number, verdict in enumerate(old)
    ]
    assert gate(*folders(tmp_path, new, examples, old))[0].outcome == "worse"


def test_a_better_judge_passes_and_an_equal_one_where_there_are_rows(tmp_path: Path) -> None:
    examples, old = evaluation(accuracy=0.6, seed=1)
    _, new = evaluation(accuracy=0.9, seed=2)
    a, b = folders(tmp_path, new, examples, old)
    for folder, margin, status in ((b, "0.02", 0), (a, "0.02", 3), (a, "0.05", 0)):
        arguments = ["compare", str(a), str(folder), "--gate", "--margin", margin]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == status
