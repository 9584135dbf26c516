"""How many processes a command starts, by the GPUs that PyTorch reports."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from judging.errors import CustosError
from tests.cuda_stand_in import with_gpus
from train.launch import front as processes


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Command lines of launchers, and the names of scripts that run in this process."""
    lines: list[list[str]] = []

    def here(name: str) -> Any:
        return SimpleNamespace(main=lambda arguments: lines.append([name, *arguments]))

    monkeypatch.setattr(processes, "import_module", here)
    monkeypatch.setattr(processes, "_run_launcher", lambda line, *_: lines.append(line))
    return lines


def _run(folder: Path, **options: Any) -> None:
    processes.run_script("hieval_stage1", ["--dry"], folder, command="custos train", **options)


def test_a_driver_that_is_too_old_starts_nothing(
    started: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, 8, usable=False)
    for options in ({}, {"config_file": Path("fsdp2")}):
        with pytest.raises(CustosError):
            _run(tmp_path, **options)
    assert started == []
    monkeypatch.setenv("ACCELERATE_USE_CPU", "1")
    _run(tmp_path)
    assert started == [["train.hieval_stage1", "--dry"]]


@pytest.mark.parametrize(
    ("gpus", "asked", "expected"), [(0, None, 1), (1, None, 1), (8, None, 8), (8, 1, 1), (0, 3, 3)]
)
def test_there_is_a_process_for_each_gpu_unless_the_user_says_how_many(
    gpus: int,
    asked: int | None,
    expected: int,
    started: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_gpus(monkeypatch, gpus)
    _run(tmp_path, processes=asked)
    [line] = started
    if expected == 1:
        assert line[0] == "train.hieval_stage1"
    else:
        assert line[0] == sys.executable
        assert line[line.index("--nproc-per-node") + 1] == str(expected)


def test_settings_of_the_user_for_the_cpu_are_not_refused(
    started: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, 8, usable=False)
    settings = tmp_path / "cpu.yaml"
    settings.write_text("distributed_type: MULTI_CPU\nuse_cpu: true\n", encoding="utf-8")
    _run(tmp_path, config_file=settings)
    [line] = started
    assert str(settings) in line
