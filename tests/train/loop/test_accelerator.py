"""Memory of freed tensors goes back to the system."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest
import torch
from accelerate.commands.launch import launch_command_parser

from judging.errors import CustosError
from judging.models.backbones import load_backbone
from judging.models.devices import computes_bfloat16, num_cores
from tests.cuda_stand_in import with_gpus
from tests.forks import run
from tests.hub import save_hub_layout
from tests.train.made_up import recipe
from train.loop.accelerator import (
    CACHES,
    FreeMemory,
    bound_caches,
    device_lines,
    launcher_set_threads,
    make_accelerator,
)


@pytest.mark.parametrize(
    ("precision", "has_bfloat16", "mixed_precision"),
    [("bf16", True, "bf16"), ("bf16", False, "no"), ("fp32", True, "no")],
)
def test_autocast_follows_the_cpu(
    precision: str,
    has_bfloat16: bool,
    mixed_precision: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_gpus(monkeypatch, 0)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": has_bfloat16})
    accelerator = make_accelerator(recipe(tmp_path, run__precision=precision).run)
    assert accelerator.mixed_precision == mixed_precision


def test_gpus_that_cannot_be_used_are_refused_unless_the_cpu_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, 8, usable=False)
    run = recipe(tmp_path).run
    with pytest.raises(CustosError):
        make_accelerator(run)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    assert make_accelerator(run).device.type == "cpu"


@pytest.mark.parametrize("family", ["Qwen3-VL-4B-Instruct", "Qwen3.5-9B"])
def test_a_run_names_its_gpu_and_what_it_lacks_and_no_cpu(
    family: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    save_hub_layout(tmp_path, family)
    backbone = load_backbone(str(tmp_path), weights=False).model
    with_gpus(monkeypatch, 8)
    monkeypatch.setitem(sys.modules, "fla", None)
    on_gpu = SimpleNamespace(device=torch.device("cuda", 3), num_processes=8)
    device, *missing = device_lines(cast(Any, on_gpu), backbone)
    assert "NVIDIA Stand-in" in device
    assert len(missing) == (family == "Qwen3.5-9B")
    on_cpu = SimpleNamespace(device=torch.device("cpu"), num_processes=8)
    assert list(device_lines(cast(Any, on_cpu), backbone)) == []


@pytest.mark.parametrize("by_launcher", [True, False])
def test_one_process_takes_every_core_unless_told_otherwise(
    by_launcher: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[int] = []
    with_gpus(monkeypatch, 0)
    monkeypatch.setattr("train.loop.accelerator.launcher_set_threads", lambda: by_launcher)
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    make_accelerator(recipe(tmp_path).run)
    assert chosen == ([num_cores()] if by_launcher else [])


@pytest.mark.parametrize(
    ("environment", "options", "set_by_launcher"),
    [
        ({}, [], True),
        ({"OMP_NUM_THREADS": "1"}, [], False),
        ({}, ["--num_cpu_threads_per_process", "1"], False),
        ({}, ["--num-cpu-threads-per-process=1"], False),
    ],
)
def test_what_the_user_told_the_launcher_is_seen(
    environment: dict[str, str],
    options: list[str],
    set_by_launcher: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stand in for the launcher by a process with its command line and environment."""
    assert launch_command_parser().parse_args([*options, "a.py"]).training_script == "a.py"
    program = tmp_path / "accelerate"
    program.write_text("import sys; print(flush=True); sys.stdin.read()", encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with subprocess.Popen(
        [sys.executable, str(program), "launch", *options, "a.py"],
        env=inherited | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as launcher:
        assert launcher.stdout and launcher.stdout.readline()  # its command line is in /proc now
        monkeypatch.setattr(os, "getppid", lambda: launcher.pid)
        assert launcher_set_threads() is set_by_launcher


MIB = 2**20


def test_gaps_between_tensors_that_live_on_are_given_back() -> None:
    process = psutil.Process()
    # Below the size from which the C library asks the system for each tensor by itself.
    tensors = [torch.ones(64 * 1024 // 4) for _ in range(4000)]
    kept = tensors[::100]
    full = process.memory_info().rss
    del tensors
    with_gaps = process.memory_info().rss
    FreeMemory().give_back()
    without = process.memory_info().rss
    assert full - with_gaps < 50 * MIB, "glibc keeps them, which this is about"
    assert with_gaps - without > 150 * MIB
    assert all(tensor.min() == 1 for tensor in kept)


def print_growth(bounded: bool) -> None:
    """Print by how many bytes products of many shapes make a process grow, in a fork of its own."""
    if bounded:
        bound_caches()
    weight = torch.ones(512, 512, dtype=torch.bfloat16)

    def product(rows: int) -> None:
        torch.nn.functional.linear(torch.ones(rows, 512, dtype=torch.bfloat16), weight)

    product(63)
    begin = psutil.Process().memory_info().rss
    for rows in range(64, 464):
        product(rows)
    FreeMemory().give_back()
    print(psutil.Process().memory_info().rss - begin)  # noqa: T201


@pytest.mark.skipif(
    not computes_bfloat16(torch.device("cpu")), reason="products in bfloat16 by other kernels"
)
def test_kernels_of_past_shapes_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """In processes of their own: the caches read their sizes at the first product."""
    for name in CACHES:  # a training in this process has set them
        monkeypatch.delenv(name, raising=False)
    plain, bounded = (int(run(print_growth, how).stdout) for how in (False, True))
    assert bounded < 0.6 * plain
