from __future__ import annotations

from pathlib import Path

import pytest

from train.finish.report import announce


def test_the_last_lines_name_judge_figures_and_next_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    accuracy = {"value": 0.9, "low": 0.85, "high": 0.94}
    kappa = {"value": 0.8, "low": None, "high": None}
    report = {"n": 1400, "metrics": {"accuracy": accuracy, "kappa": kappa, "ece": accuracy}}
    announce(Path("runs/x"), report, {"step": 4, "val_accuracy": 0.95})
    judge, following = capsys.readouterr().out.splitlines()
    assert judge == (
        "judge: runs/x: accuracy 0.900 [0.850, 0.940], kappa 0.800 on 1,400 test rows "
        "(95 % intervals), see runs/x/report.md"
    )
    assert following == ("next: custos grade --judge runs/x --in FILE.jsonl --out verdicts.jsonl")


def test_without_a_test_split_the_validation_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    announce(Path("runs/x"), None, {"step": 4, "val_accuracy": 0.95, "stage1_accuracy": 0.5})
    judge, _ = capsys.readouterr().out.splitlines()
    assert judge == "judge: runs/x: validation accuracy 0.950 (no test split)"
