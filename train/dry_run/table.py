"""The table of a dry run: seconds and memory by part, beside the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from judging.errors import CustosError
from train.dry_run.parts import Part
from train.plan.planner import gpu_memory, in_gib
from train.plan.run_plan import RunPlan, plan_run


def as_table(measured: Mapping[str, Part], recipe: Path, keys: Sequence[str]) -> list[str]:
    """Return the lines of the table.

    Args:
        measured: Parts of the run.
        recipe: File of the recipe.
        keys: Keys of the dry run.
    """
    plan = _plan(recipe, keys)
    planned = {} if plan is None else {"load": _loaded(plan), "step": plan.total}
    rows = [("part", "times", "seconds", "peak memory", "planned")]
    rows += [
        (
            name,
            str(part.times),
            f"{part.seconds:.1f}",
            in_gib(part.peak),
            in_gib(planned[name]) if name in planned else "",
        )
        for name, part in measured.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    if plan:
        parts = ", ".join(f"{name} {in_gib(size)}" for name, size in plan.parts().items() if size)
        lines.append(f"planned for a step: {parts}")
    of = "of tensors on the GPU" if torch.cuda.is_available() else "of the process"
    lines.append(f"peak memory is that {of}")
    return lines


def _plan(recipe: Path, keys: Sequence[str]) -> RunPlan | None:
    """Return the plan of the dry run's own rows; ``None`` where nothing can be planned."""
    try:
        gpus = torch.cuda.device_count()
        memory = gpu_memory() if gpus else None
        return plan_run(str(recipe), keys, gpus=gpus, memory=memory, rate=None)
    except CustosError:
        return None


def _loaded(plan: RunPlan) -> int:
    return plan.memory.weights + plan.reserve
