"""Errors, notices and processes of the commands that train."""

import logging
import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from data_prep.tables.mapping import TableMapping
from judging.errors import CustosError, Missing
from tests.cuda_stand_in import with_gpus
from tests.train.made_up import examples, recipe_file
from train.launch.front import TrainingRun, command_line, load_recipe
from train.methods.focal import Focal, FocalRecipe
from train.setup.recipe import find_recipe, parse_recipe
from train.setup.run_log import LOG_FILE, RUN_LOG, RunLog


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (CustosError("no [such] row"), "error: no [such] row\n"),
        (Missing("no backbone"), "error: no backbone; without it: custos prep\n"),
    ],
)
def test_a_known_error_is_one_line(
    error: CustosError, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught, command_line("custos prep"):
        warnings.warn("a library's notice", stacklevel=1)
        raise error
    assert caught.value.code == 2
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has 1 GiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"
        ),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_too_little_memory_is_one_line_with_the_keys_to_set(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught, command_line():
        raise error
    assert caught.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    given = re.findall(r"(optim|run)\.(\w+)", line)
    assert {key for _, key in given} == {"token_budget", "gradient_checkpointing"}
    recipe = load_recipe(Focal, find_recipe("hieval_stage1"), []).model_dump()
    assert all(key in recipe[section] for section, key in given)


def test_notices_of_libraries_go_to_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with command_line():
        logging.getLogger("some.library").warning("before the folder exists")
        assert RUN_LOG.open_file(tmp_path / "run") == tmp_path / "run" / LOG_FILE
        logging.getLogger("transformers.models").warning("after it")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("deprecated", FutureWarning, stacklevel=1)
    assert capsys.readouterr() == ("", "")
    log = (tmp_path / "run" / LOG_FILE).read_text(encoding="utf-8")
    first, second, third = log.splitlines()[:3]
    assert first == "WARNING some.library: before the folder exists"
    assert second == "WARNING transformers.models: after it"
    assert "FutureWarning: deprecated" in third


def test_one_run_at_a_time_writes_to_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = RunLog()
    first.open_file(tmp_path)
    with pytest.raises(SystemExit), command_line():
        RUN_LOG.open_file(tmp_path)
    refusal = f"error: {tmp_path}: another process trains in it; wait for that one, or stop it\n"
    assert capsys.readouterr().err == refusal
    first.close_file()
    with command_line():
        RUN_LOG.open_file(tmp_path)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Command lines of launchers, and the names of scripts that run in this process."""
    lines: list[list[str]] = []

    def here(name: str) -> Any:
        return SimpleNamespace(main=lambda arguments: lines.append([name, *arguments]))

    monkeypatch.setattr("train.launch.front.import_module", here)
    monkeypatch.setattr("train.launch.front._run_launcher", lambda line, *_: lines.append(line))
    return lines


@pytest.fixture
def training(tmp_path: Path) -> TrainingRun:
    return TrainingRun(Focal, Path("a.yaml"), ("optim.lr=1",), tmp_path, {}, (), "custos train")


def test_a_driver_that_is_too_old_starts_nothing(
    started: list[list[str]], training: TrainingRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, 8, usable=False)
    for config_file in (None, Path("fsdp2")):
        with pytest.raises(CustosError):
            training.start(None, config_file)
    assert started == []
    monkeypatch.setenv("ACCELERATE_USE_CPU", "1")
    training.start(None, None, ["--dry-run", "2"])
    run = ["--config", "a.yaml", "--dry-run", "2", "optim.lr=1"]
    assert started == [["train.hieval_stage1", *run]]


@pytest.mark.parametrize(
    ("gpus", "asked", "expected"), [(0, None, 1), (1, None, 1), (8, None, 8), (8, 1, 1), (0, 3, 3)]
)
def test_there_is_a_process_for_each_gpu_unless_the_user_says_how_many(
    gpus: int,
    asked: int | None,
    expected: int,
    started: list[list[str]],
    training: TrainingRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_gpus(monkeypatch, gpus)
    training.start(asked, None)
    [line] = started
    if expected == 1:
        assert line[0] == "train.hieval_stage1"
    else:
        assert line[0] == sys.executable
        assert line[line.index("--nproc-per-node") + 1] == str(expected)


def test_tables_of_the_user_are_trained_on_with_the_votes_of_the_recipe(tmp_path: Path) -> None:
    rows = {"train": examples(3), "val": examples(3, 10)}
    votes = {"votes": "shares", "limit": 2}
    path = recipe_file(tmp_path, "embedded", rows, method="focal", data=votes)
    none: dict[str, Any] = {"init": None, "out": None, "seed": None, "command": "custos train"}
    run = TrainingRun.plan(str(path), [], {"train": ["my.csv"]}, TableMapping(), **none)
    data = parse_recipe(FocalRecipe, run.recipe, run.overrides).data
    assert (data.votes, data.limit) == ("shares", None)


def test_settings_of_the_user_for_the_cpu_are_not_refused(
    started: list[list[str]], training: TrainingRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, 8, usable=False)
    settings = training.output / "cpu.yaml"
    settings.write_text("distributed_type: MULTI_CPU\nuse_cpu: true\n", encoding="utf-8")
    training.start(None, settings)
    [line] = started
    assert str(settings) in line
