from __future__ import annotations

import logging
import re
import shlex
import warnings
from pathlib import Path

import pytest
import torch

from judging.errors import CustosError, Missing
from train.launch.command_line import command_line, launch_command, load_recipe
from train.methods.focal import Focal
from train.setup.recipe_files import find_recipe
from train.setup.run_log import LOG_FILE, RUN_LOG, RunLog

STAGE1 = "hieval_stage1"


def test_a_recipe_is_read_with_its_method() -> None:
    recipe = load_recipe(Focal, find_recipe("embedded/mine"), ["optim.lr=1e-3"])
    assert (recipe.optim.lr, recipe.backbone, recipe.method) == (1e-3, "embedded", "focal")


def test_the_command_is_what_was_typed() -> None:
    command = "accelerate launch train/hieval_stage1.py"
    assert launch_command(STAGE1, []) == command
    assert launch_command(STAGE1, ["--config", "a"]) == f"{command} --config a"
    spaced = ["run.trackers=[tensorboard, wandb]"]
    assert shlex.split(launch_command(STAGE1, spaced))[3:] == spaced


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
    for section, key in given:
        assert key in dict(load_recipe(Focal, find_recipe(STAGE1), []))[section].model_dump()


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


def test_control_characters_are_escaped_in_the_log(tmp_path: Path) -> None:
    with command_line():
        RUN_LOG.open_file(tmp_path)
        logging.getLogger("some.library").warning("row a\nWARNING forged \x1b[2J")
        RUN_LOG.write("picture b\nforged")
    log = (tmp_path / LOG_FILE).read_text(encoding="utf-8")
    assert log == (
        r"WARNING some.library: row a\nWARNING forged \x1b[2J" + "\n" + r"picture b\nforged" + "\n"
    )


def test_notices_are_shown_beside_an_unexpected_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), command_line():
        logging.getLogger("some.library").warning("a hint at the cause")
        raise ZeroDivisionError
    assert capsys.readouterr().err == "WARNING some.library: a hint at the cause\n"


def test_a_full_disk_is_reported_with_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / LOG_FILE).symlink_to("/dev/full")
    with pytest.raises(SystemExit), command_line():
        RUN_LOG.open_file(tmp_path)
        RUN_LOG.write("step 1")
    assert capsys.readouterr().err == f"error: {tmp_path / LOG_FILE}: No space left on device\n"


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
