"""Ways of taking a training step compared, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

FLOOR = "weights only"
"""The variant that takes no step: what the model itself holds."""


def compare_steps(module: str, variants: Sequence[str], *options: str) -> dict[str, Any]:
    """Run ``python -m MODULE --variant VARIANT OPTIONS`` for every variant.

    Peak memory is a process's own record, so variants cannot share one.

    Args:
        module: Prints ``peak_mib`` and, but for ``FLOOR``, ``seconds_per_step`` as JSON.
        variants: With ``FLOOR``, and first after it the one that the others are divided by.
        options: Of the module.

    Returns:
        By variant: what it printed but ``peak_mib``, ``mib_above_weights``, ``time_ratio`` and
        ``memory_ratio``.
    """
    measured = {}
    for variant in variants:
        command = [sys.executable, "-m", module, "--variant", variant, *options]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        measured[variant] = json.loads(done.stdout)
    floor = measured.pop(FLOOR)["peak_mib"]
    above = {variant: found.pop("peak_mib") - floor for variant, found in measured.items()}
    base = next(iter(measured))
    return {
        variant: {
            **found,
            "mib_above_weights": above[variant],
            "time_ratio": found["seconds_per_step"] / measured[base]["seconds_per_step"],
            "memory_ratio": above[variant] / above[base],
        }
        for variant, found in measured.items()
    }
