"""Memory of freed tensors goes back to the system."""

from __future__ import annotations

import os
import sys
import time
from subprocess import check_output

import psutil
import pytest
import torch

from judging.models.devices import computes_bfloat16
from train.loop.host_memory import CACHES, SHARE, FreeMemory

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


def test_giving_back_takes_no_more_than_its_share_of_steps_however_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = spent = 0.0

    def trim(pad: int) -> None:
        nonlocal now, spent
        now, spent = now + 0.3, spent + 0.3

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    freed = FreeMemory()
    monkeypatch.setattr(freed, "_trim", trim)
    for seconds, most in ((0.2, SHARE), (20.0, 0.3 / 20.3)):
        begin, spent = now, 0.0
        for _ in range(1000):
            now += seconds
            freed.give_back()
        assert 0.7 * most < spent / (now - begin) < 1.05 * most


@pytest.mark.skipif(
    not computes_bfloat16(torch.device("cpu")), reason="products in bfloat16 by other kernels"
)
def test_kernels_of_past_shapes_are_dropped() -> None:
    """In processes of their own: the caches read their sizes at the first product."""
    program = """
import sys, psutil, torch
from judging.models.devices import computes_bfloat16
from train.loop.host_memory import FreeMemory, bound_caches
if sys.argv[1] == "bounded":
    bound_caches()
weight = torch.ones(512, 512, dtype=torch.bfloat16)
def product(rows):
    torch.nn.functional.linear(torch.ones(rows, 512, dtype=torch.bfloat16), weight)
product(63)
begin = psutil.Process().memory_info().rss
for rows in range(64, 464):
    product(rows)
FreeMemory().give_back()
print(psutil.Process().memory_info().rss - begin)
"""
    # A training in this process has set them.
    environment = {name: value for name, value in os.environ.items() if name not in CACHES}
    plain, bounded = (
        int(check_output([sys.executable, "-c", program, how], env=environment)) / MIB
        for how in ("plain", "bounded")
    )
    assert bounded < 0.6 * plain
