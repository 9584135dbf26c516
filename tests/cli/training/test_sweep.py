"""``custos sweep``: seeds one after the other, resumed, and summed up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from data_prep.tables.mapping import TableMapping
from judging.errors import CustosError
from train.launch.front import TrainingRun
from train.launch.sweep import Sweep
from train.methods.focal import FocalRecipe
from train.setup.recipe import parse_recipe

RECIPE = "embedded/demo"


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Stand in for training: a run leaves a report whose accuracy is .8 and a hundredth a seed."""
    commands: list[list[str]] = []

    def call(command: list[str]) -> int:
        commands.append(command)
        seed = int(command[command.index("--seed") + 1])
        if seed == 13:
            return 1
        report = {"metrics": {"accuracy": {"value": 0.8 + seed / 100}}}
        _write(Path(command[command.index("--out") + 1]), report)
        return 0

    monkeypatch.setattr("subprocess.call", call)
    monkeypatch.chdir(tmp_path)
    return commands


def _write(folder: Path, report: dict[str, Any], test_file: str = "d") -> None:
    """Write what a run leaves: its report, and the hashes of the files that it read."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    provenance = {"sha256": {"train.jsonl": "a", "test.jsonl": test_file}}
    (folder / "recipe.yaml").write_text(json.dumps({"provenance": provenance}), encoding="utf-8")


def _sweep(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["sweep", RECIPE, *arguments, "--out", "runs/s"])


def test_seeds_are_trained_once_and_summed_up(trained: list[list[str]]) -> None:
    done = _sweep("optim.epochs=2", "--seeds", "3")
    assert done.exit_code == 0, done.output
    assert [c[c.index("--seed") + 1] for c in trained] == ["0", "1", "2"]
    assert all("optim.epochs=2" in command and RECIPE in command for command in trained)
    result = json.loads(Path("runs/s/sweep.json").read_text(encoding="utf-8"))
    assert result["seeds"] == [0, 1, 2]
    assert result["metrics"]["accuracy"]["mean"] == pytest.approx(0.81)
    assert result["metrics"]["accuracy"]["std"] == pytest.approx(0.01)
    assert "0.8100" in done.output

    assert _sweep("optim.epochs=2", "--seeds", "5").exit_code == 0  # two more
    assert [c[c.index("--seed") + 1] for c in trained[3:]] == ["3", "4"]
    result = json.loads(Path("runs/s/sweep.json").read_text(encoding="utf-8"))
    assert len(result["metrics"]["accuracy"]["values"]) == 5


def test_seed_0_is_a_seed() -> None:
    """It would else be the recipe's own, and two runs of a sweep could be the same."""
    options: dict[str, Any] = {"init": None, "out": Path("x"), "command": ""}
    for seed in (0, 3):
        run = TrainingRun.plan(RECIPE, [], {}, TableMapping(), seed=seed, **options)
        assert f'run.seed="{seed}"' in run.overrides
        assert parse_recipe(FocalRecipe, run.recipe, run.overrides).run.seed == seed


def test_another_recipe_does_not_go_on_in_the_same_folder(trained: list[list[str]]) -> None:
    assert _sweep("--seeds", "1").exit_code == 0
    refused = _sweep("optim.lr=1e-5", "--seeds", "2")
    assert refused.exit_code != 0
    assert "another recipe" in str(refused.output) + str(refused.exception)
    assert len(trained) == 1


@pytest.mark.parametrize("name", ["sweep.json", "seed-0/report.json"])
@pytest.mark.parametrize("content", ["{", "[]", "\xff"])
def test_a_damaged_file_is_named(trained: list[list[str]], name: str, content: str) -> None:
    assert _sweep("--seeds", "1").exit_code == 0
    (Path("runs/s") / name).write_text(content, encoding="latin-1")
    result = _sweep("--seeds", "1")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith(f"error: runs/s/{name}: ")


def test_a_run_that_fails_stops_the_sweep(trained: list[list[str]]) -> None:
    sweep = Sweep(RECIPE, (), (13,), Path("runs/s"))
    sweep.open()
    with pytest.raises(Exception, match="seed 13: training failed"):
        sweep.train(13)
    assert sweep.open_seeds() == [13]


def test_runs_on_different_files_are_not_averaged(trained: list[list[str]]) -> None:
    assert _sweep("--seeds", "2").exit_code == 0
    _write(Path("runs/s/seed-1"), {"metrics": {"accuracy": {"value": 1}}}, test_file="e")
    sweep = Sweep(RECIPE, (), (0, 1), Path("runs/s"))
    with pytest.raises(CustosError, match="test.jsonl was another file when seed 1 was trained"):
        sweep.result()
