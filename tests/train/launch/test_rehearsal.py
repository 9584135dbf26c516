"""``--dry-run``: every part runs, the table names each, and the run's own folder stays away."""

import re
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from judging.errors import CustosError
from judging.types import LabelledExample
from tests.cuda_stand_in import with_gpus
from tests.train.made_up import examples, labelled_pair, recipe_file, write_recipe
from train import hieval_stage1
from train.launch import rehearsal
from train.launch.rehearsal import keys_of_few_rows, of_every_label
from train.methods.critique import Critique, CritiqueRecipe
from train.methods.dpo import DpoRecipe
from train.setup.recipe import parse_recipe
from train.tracking.throughput import PARTS as PARTS_OF_RUN
from train.tracking.throughput import Part

pytestmark = pytest.mark.usefixtures("forking_python")

PARTS_OF_JUDGE = (
    *("rows", "load", "validation", "step", "saving", "grading", "judge load"),
    *("calibration", "serving"),
)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def parts(text: str) -> list[str]:
    """The first column of the table."""
    return re.findall(r"^(\w+(?: \w+)?) +\d+ +[\d.]+ ", text, re.MULTILINE)


def test_a_dry_run_runs_every_part_and_leaves_nothing(
    small: str, tmp_path: Path, scratch: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = write_recipe(tmp_path, small)
    before = sorted(tmp_path.iterdir())
    keys = ["optim.batch_size=4", "optim.token_budget=2000"]  # a step is one pass
    hieval_stage1.main(["--dry-run", "2", "--config", str(recipe), *keys])
    shown = capsys.readouterr()
    assert parts(shown.out) == list(PARTS_OF_JUDGE)
    assert "planned for a step: weights" in shown.out
    assert shown.err.splitlines() == [f"dry run: {name}" for name in PARTS_OF_JUDGE]
    steps = next(line for line in shown.out.splitlines() if line.startswith("step"))
    assert steps.split()[1] == "2"
    assert sorted(tmp_path.iterdir()) == before and not list(scratch.iterdir())


def test_a_part_that_fails_is_named_on_one_line_under_a_table_without_a_plan(
    small: str,
    tmp_path: Path,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise CustosError("steps of TRL's trainers cannot be planned")

    monkeypatch.setattr(rehearsal, "plan_run", refuse)
    recipe = write_recipe(tmp_path, small)
    with pytest.raises(SystemExit) as ended:
        hieval_stage1.main(["--config", str(recipe), "--dry-run", "2", "optim.lr=1e30"])
    assert ended.value.code == 2
    printed = capsys.readouterr()
    last = printed.err.splitlines()[-1]
    assert last.startswith("error: dry run: step failed: step 2: not finite: loss nan")
    heading, *parts = printed.out.splitlines()
    assert heading.split()[:3] == ["part", "times", "seconds"]
    assert [line.split()[0] for line in parts[:3]] == ["rows", "load", "validation"]
    assert "works with this recipe" not in printed.out and "planned for" not in printed.out
    assert not list(scratch.iterdir())


def test_the_plan_is_for_the_gpus_that_train(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process takes one GPU, however many the machine has."""
    asked: list[dict[str, Any]] = []

    def refuse(*_: object, **hardware: Any) -> None:
        asked.append(hardware)
        raise CustosError("not planned")

    with_gpus(monkeypatch, 8)
    monkeypatch.setattr(rehearsal, "gpu_memory", lambda: 78.0)
    monkeypatch.setattr(rehearsal, "plan_run", refuse)
    for processes in (1, 8):
        rehearsal.as_table({}, Path("a.yaml"), [], processes, shared=True)
    assert [(each["gpus"], each["shared"]) for each in asked] == [(1, False), (8, True)]


def test_splits_that_are_graded_have_as_many_labels_as_they_can() -> None:
    rows = examples(30)
    assert [row.label for row in rows[:6]].count("Correct") == 2
    assert [row.label for row in of_every_label(rows, 4)] == ["Correct", "Wrong"] * 2
    assert len(of_every_label(rows[:3], 16)) == 3
    assert [row.label for row in of_every_label(rows, 1)] == ["Correct", "Wrong"]


def test_rows_that_weigh_nothing_are_taken_last() -> None:
    rows = [
        row.model_copy(update={"weight": float(number > 20)})
        for number, row in enumerate(examples(30))
    ]
    assert {row.weight for row in of_every_label(rows, 4)} == {1.0}
    assert len(of_every_label(rows, 30)) == 30


def test_the_service_is_asked_for_the_task_of_the_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of pairs are trained under another task, which is then the only one of the judge."""
    rows = {name: [labelled_pair(number)] for number, name in enumerate(("train", "val"))}
    path = recipe_file(tmp_path, "unused", rows, task="truthful-pure-label")
    asked: list[LabelledExample] = []

    def serve_once(_: Path, row: LabelledExample) -> int:
        asked.append(row)
        return 0

    monkeypatch.setattr(rehearsal, "serve_once", serve_once)
    monkeypatch.setattr(PARTS_OF_RUN, "by_name", {"serving": Part()})
    dry_run = rehearsal.Rehearsal(lambda recipe: None, Critique, path, [], 1)
    dry_run._judge_and_serve(parse_recipe(CritiqueRecipe, path))
    assert [row.task for row in asked] == ["truthful-pure-label"]


def test_critiques_are_drawn_of_the_few_rows(tmp_path: Path) -> None:
    """Preferences of an earlier run are of more rows than a dry run reads."""
    rows = {name: [labelled_pair(number)] for number, name in enumerate(("train", "val"))}
    path = recipe_file(tmp_path, "unused", rows, dpo={"preferences": "preferences.jsonl"})
    keys = keys_of_few_rows(parse_recipe(DpoRecipe, path), 1, tmp_path / "few")
    assert parse_recipe(DpoRecipe, path, keys).dpo.preferences is None


def test_a_service_that_was_killed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], text=True)
    killed.kill()
    gone = nullcontext((killed, "http://127.0.0.1:9"))
    monkeypatch.setattr(rehearsal, "serving", lambda *_: gone)
    with pytest.raises(CustosError, match="it was killed, as the system does where memory is sho"):
        rehearsal.serve_once(tmp_path, examples(1)[0])
