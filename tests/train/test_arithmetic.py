"""What training computes in, and the memory it keeps, on a CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.train.made_up import recipe
from train.loop import accelerator_for

FAULTS = """
import resource, sys, torch
from train.allocator import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def step():
    return sum(float(torch.ones(1 << 24).sum()) for _ in range(4))  # blocks of 64 MiB
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


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
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": has_bfloat16})
    accelerator = accelerator_for(recipe(tmp_path, run__precision=precision))
    assert accelerator.mixed_precision == mixed_precision


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_freed_memory_is_not_asked_for_again() -> None:
    def faults(memory: str) -> int:
        command = [sys.executable, "-c", FAULTS, memory]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    returned, kept = faults("returned"), faults("kept")
    assert returned > 10_000, "pages of 4 KiB"
    assert kept < returned / 20
