"""Comparison of ways to take a training step, each measured in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

FLOOR = "weights only"
"""The variant that takes no step and holds only the model."""


def cost_of_steps(seconds: Sequence[float]) -> dict[str, float]:
    """Return the peak memory of this process in MiB and the median seconds of its steps.

    This is what a module prints for :func:`compare_steps`.
    """
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "peak_mib": peak,
        "seconds_per_step": sorted(seconds)[len(seconds) // 2] if seconds else 0.0,
    }


def compare_steps(module: str, variants: Sequence[str], *options: str) -> dict[str, Any]:
    """Run ``python -m MODULE --variant VARIANT OPTIONS`` for every variant.

    A process records its peak memory once, so each variant needs its own process.

    Args:
        module: Module that prints what :func:`cost_of_steps` returns, and more, as JSON.
        variants: ``FLOOR``, then the variant that the others are divided by, then the others.
        options: Options of the module.

    Returns:
        By variant: what it printed without ``peak_mib``, and ``mib_above_weights``,
        ``time_ratio`` and ``memory_ratio``.
    """
    measured = {}
    for variant in variants:
        command = [sys.executable, "-m", module, "--variant", variant, *options]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        measured[variant] = json.loads(done.stdout)
    floor = measured.pop(FLOOR)["peak_mib"]
    above = {variant: figures.pop("peak_mib") - floor for variant, figures in measured.items()}
    base = next(iter(measured))
    return {
        variant: {
            **figures,
            "mib_above_weights": above[variant],
            "time_ratio": figures["seconds_per_step"] / measured[base]["seconds_per_step"],
            "memory_ratio": above[variant] / above[base],
        }
        for variant, figures in measured.items()
    }
