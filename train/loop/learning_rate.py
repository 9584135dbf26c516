"""The learning rate of every step."""

from __future__ import annotations

import math

from train.setup.recipe import OptimSection


def learning_rate(optim: OptimSection, step: int, total_steps: int) -> float:
    """Return the learning rate of a step, counted from 0: linear warm-up, then the schedule."""
    warmup = max(1, round(optim.warmup_ratio * total_steps))
    if step < warmup:
        return optim.lr * (step + 1) / warmup
    done = (step - warmup) / max(1, total_steps - warmup)
    if optim.schedule == "constant":
        return optim.lr
    if optim.schedule == "linear":
        return optim.lr * (1 - done)
    return optim.lr * 0.5 * (1 + math.cos(math.pi * done))
