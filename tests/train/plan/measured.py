"""Peak memory of a real step, as PyTorch's own profiler counts allocations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch.profiler import ProfilerActivity, profile

from train.loop.batches import MicroBatch
from train.loop.trainer import Trainer


def peak_of_step(learner: Trainer, micro_batches: list[MicroBatch], folder: Path) -> int:
    """Return the bytes at the peak of a training step, weights and optimizer included."""
    learner.train_step(micro_batches)  # makes AdamW's state
    parameters = list(learner.runner.unwrapped.parameters())
    states = [value for state in learner.optimizer.state.values() for value in state.values()]
    held: int = sum(t.numel() * t.element_size() for t in [*parameters, *states])
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        learner.train_step(micro_batches)
    return held + allocation_peak(profiler, folder)


def allocation_peak(profiler: Any, folder: Path) -> int:
    """Return by how many bytes tensors grew at most while a profiler ran."""
    profiler.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    changes = sorted(
        (event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]"
    )
    live = peak = 0
    for _, change in changes:
        live += int(change)
        peak = max(peak, live)
    return peak
