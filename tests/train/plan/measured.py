"""Planned memory of a step, and its peak, as PyTorch's own profiler counts allocations."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import check_output
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.profiler import ProfilerActivity, profile

from judging.models.devices import computes_bfloat16
from judging.scoring.prompts import Encoder
from judging.types import LabelledExample
from tests.forks import ROOT
from tests.train.made_up import example, recipe, trainer
from train.loop.batches import MicroBatch
from train.loop.trainer import Trainer
from train.plan.planner import (
    Hardware,
    RunPlan,
    largest_rows,
    longest,
    machine_memory,
    row_sizes,
)
from train.plan.step_memory import StepMemory, step_memory
from train.rows.rows import Supervision
from train.setup.recipe import Recipe
from train.tracking.throughput import process_peak

ROWS = 4
"""Rows of the micro-batch that is measured."""


def long_rows(count: int, words_of_response: int = 150, **fields: object) -> list[LabelledExample]:
    """Rows of one length."""
    words = [("green", "Correct"), ("brown", "Wrong")]
    return [
        example(
            i,
            responses=(" ".join([words[i % 2][0]] * words_of_response),),
            label=words[i % 2][1],
            **fields,
        )
        for i in range(count)
    ]


def planned_step(
    settings: Recipe, encoder: Encoder, rows: list[LabelledExample], sharers: int = 1
) -> StepMemory:
    """Plan a step of one micro-batch of the longest of some rows, on the CPU."""
    config = encoder.backbone.model.config
    row = longest(row_sizes(rows, Supervision(encoder), settings, config))
    if sharers > 1:
        row = replace(row, instruction=0, tokens=row.tokens + row.instruction)
    bf16 = settings.run.precision == "bf16" and computes_bfloat16(torch.device("cpu"))
    size = replace(row, prompts=ROWS)
    return step_memory(config, settings, size, bf16=bf16, gpu=False, sharers=sharers)


def planned_and_resident(backbone: str, words: int, folder: Path) -> tuple[int, int]:
    """Return the memory planned for a process and its peak over three steps of equal rows.

    It is a process of its own, on one thread: nothing else has left gaps in its memory.
    """
    program = [sys.executable, "-m", "tests.train.plan.measured", backbone, str(words), str(folder)]
    planned, resident = map(int, check_output(program, text=True, cwd=ROOT).split()[-2:])
    return planned, resident


def print_planned_and_resident(backbone: str, words: int, folder: Path) -> None:
    """Be the process of :func:`planned_and_resident`."""
    torch.set_num_threads(1)
    keys: dict[str, Any] = {"optim__batch_size": ROWS, "optim__token_budget": 10**4}
    keys |= {"run__precision": "bf16", "adapter__r": 16, "adapter__alpha": 32}
    settings, rows = recipe(folder / "run", **keys), long_rows(8, words)
    learner = trainer(settings, backbone, rows, rows[:2])
    config = learner.rows.train.encoder.backbone.model.config
    sizes = largest_rows(learner.rows.train, settings, config)
    plan = RunPlan(settings, False, config, sizes, Hardware(0, machine_memory()))
    planned = plan.without_checkpointing.total
    for _ in range(3):
        learner.train_step([list(range(ROWS))])
    print(planned, process_peak(Path("/proc/self/status")))  # noqa: T201


def num_bytes(tensor: Tensor) -> int:
    """Return the bytes of a tensor, of a sharded one those of this process's part."""
    here = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return here.numel() * here.element_size()


def peak_of_step(learner: Trainer, micro_batches: list[MicroBatch], folder: Path) -> int:
    """Return the bytes at the peak of a training step, weights and optimizer included."""
    learner.train_step(micro_batches)  # makes AdamW's state
    parameters = list(learner.tree_model.parameters())
    states = [value for state in learner.optimizer.state.values() for value in state.values()]
    held = sum(map(num_bytes, [*parameters, *states]))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        learner.train_step(micro_batches)
    profiler.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    changes = sorted(
        (event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]"
    )
    live = peak = 0
    for _, change in changes:
        live += int(change)
        peak = max(peak, live)
    return held + peak


if __name__ == "__main__":
    print_planned_and_resident(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
