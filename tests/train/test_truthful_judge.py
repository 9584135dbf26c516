"""A judge of pairs that was trained without critiques, on rows that have some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.train.made_up import critique_pair, recipe_file
from train import truthful_judge

TASK = "truthful-pure-label"


@pytest.fixture(scope="module")
def run(small: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run folder of a judge that learned the labels of rows of ``truthful-pair``."""
    folder = tmp_path_factory.mktemp("pure_label")
    starts = {"train": (0, 16), "val": (100, 104)}
    rows = {name: [critique_pair(i) for i in range(*ends)] for name, ends in starts.items()}
    path = recipe_file(folder, small, rows, task=TASK, data={"allow_overlap": True})
    truthful_judge.main(["--config", str(path)])
    return folder / "run"


def _evaluate(run: Path, out: Path, *options: str) -> Any:
    data = str(run.parent / "train.jsonl")
    return CliRunner().invoke(
        app, ["eval", str(run), "--data", data, "--out", str(out), "--no-zero-shot", *options]
    )


def test_it_is_evaluated_on_its_own_training_table(run: Path, tmp_path: Path) -> None:
    result = _evaluate(run, tmp_path, "--task", TASK)
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (report["n"], report["coverage"]) == (16, 1.0)
    rows = (tmp_path / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(row)["rubric"] for row in rows} == {f"{TASK}/plain"}


def test_without_the_option_the_error_names_it(run: Path, tmp_path: Path) -> None:
    result = _evaluate(run, tmp_path)
    assert result.exit_code == 1
    assert f"not 'truthful-pair'; set task to '{TASK}' (--task {TASK})" in result.output
