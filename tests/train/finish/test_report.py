"""The last lines of a run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judging.files.questions import write_question_hashes
from tests.train.made_up import examples, recipe, recipe_of
from train.finish.write_judge import RunResult, _data, announce
from train.loop.checkpoint import Progress
from train.methods.joint import JointRecipe
from train.rows.data import Examples, RunSplits

FIGURE = {"value": 0.9, "low": 0.85, "high": 0.94, "n": 1400}


def result(chosen: int, report: dict[str, Any] | None = None, **run: Any) -> RunResult:
    """A run of 30 steps with three validations on eight rows, right at first on 4 of them."""
    validations = {
        0: {"step": 0, "val_accuracy": 0.5, "val_nll": 1.0},
        15: {"step": 15, "val_accuracy": 0.875, "val_nll": 0.5},
        30: {"step": 30, "val_accuracy": 0.75, "val_nll": 0.6},
    }
    right: dict[int, list[bool | None]] = {
        0: [True, False] * 4,
        15: [*[True] * 7, False],
        30: [*[True] * 6, *[False] * 2],
    }
    history = list(validations.values())
    progress = Progress(30, validations[chosen], right[chosen], right[0], history)
    settings = recipe(Path("runs/x"), **{f"run__{key}": value for key, value in run.items()})
    rows = Examples.write(row.model_copy(update={"group": row.id}) for row in examples(8))
    return RunResult(settings, RunSplits(rows, rows), {}, [], progress, report)


def lines(result: RunResult, capsys: pytest.CaptureFixture[str]) -> list[str]:
    announce(result)
    return capsys.readouterr().out.splitlines()


def test_the_last_lines_name_what_was_learned_and_the_next_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    against = {
        **{"split": "test", "start": "embedded-qs", "chosen_on": False, "n": 1400, "clusters": 120},
        "first": {"value": 0.86, "low": 0.8, "high": 0.91},
        "second": {"value": 0.25, "low": 0.2, "high": 0.3},
        "difference": {"value": 0.61, "low": 0.5, "high": 0.7},
    }
    metrics = {"accuracy": FIGURE, "kappa": FIGURE | {"low": None, "high": None}, "ece": FIGURE}
    report = {"n": 1405, "metrics": metrics, "against_start": against}
    chosen, warning, learned, judge, *following = lines(result(15, report), capsys)
    assert chosen.startswith("step 15 of 30, ") and "accuracy 0.875" in chosen
    assert warning.startswith("warning: 8 validation rows")
    for figure in ("0.860 [0.800, 0.910]", "0.250 [0.200, 0.300]", "+0.610 [+0.500, +0.700]"):
        assert figure in learned
    assert "accuracy 0.900 [0.850, 0.940], kappa 0.900 on 1,400 test rows" in judge
    assert following == [
        "next: custos grade --judge runs/x --in FILE.jsonl --out verdicts.jsonl",
        "or:   custos serve --judge x=runs/x",
    ]


def test_a_run_that_learned_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    printed = lines(result(0), capsys)
    assert printed[0].startswith("no step beat the start") and "accuracy 0.500 [" in printed[0]
    assert not any("against" in line for line in printed), "it would be compared with itself"


def test_the_last_step_may_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    chosen, following, *_ = lines(result(30, select="last"), capsys)
    assert "run.select=last" in chosen and "step 15 validated best" in chosen
    assert following.startswith("validation: accuracy 0.750"), "nothing was chosen by these rows"
    assert "on which the step was chosen" not in following


def test_questions_that_the_start_was_trained_on(tmp_path: Path) -> None:
    start, rows = tmp_path / "start", examples(2)
    start.mkdir()
    settings = recipe(tmp_path / "run", adapter__init=str(start))
    written = Examples.write(rows)
    run = RunResult(settings, RunSplits(written, written, test=written), {}, [], Progress())
    assert run.known_to_start == 0, "it does not say"
    write_question_hashes(start, rows[:1])
    assert run.known_to_start == 1
    assert replace(run, splits=RunSplits(written, written)).known_to_start == 0


def test_the_card_says_which_training_rows_are_not_those_of_the_file() -> None:
    changed: dict[str, Any] = {"replay__train": ["earlier.jsonl"], "data__votes": "shares"}
    settings = recipe_of(JointRecipe, Path("run"), **changed)
    rows = Examples.write(examples(8))
    run = RunResult(settings, RunSplits(rows, rows, replayed=3), {}, [], Progress())
    table = "\n".join(_data(run, []))
    assert "| train | unused.jsonl | 5 |" in table
    assert "| replayed | earlier.jsonl | 3 |" in table
    assert "labelled differently stand above once for each label" in table
