"""Memory of freed tensors goes back to the system."""

from __future__ import annotations

import psutil
import torch

from train.loop.host_memory import return_free_memory

MIB = 2**20


def test_gaps_between_tensors_that_live_on_are_given_back() -> None:
    process = psutil.Process()
    # Below the size from which the C library asks the system for each tensor by itself.
    tensors = [torch.ones(64 * 1024 // 4) for _ in range(4000)]
    kept = tensors[::100]
    full = process.memory_info().rss
    del tensors
    with_gaps = process.memory_info().rss
    return_free_memory()
    without = process.memory_info().rss
    assert full - with_gaps < 50 * MIB, "glibc keeps them, which this is about"
    assert with_gaps - without > 150 * MIB
    assert all(tensor.min() == 1 for tensor in kept)
