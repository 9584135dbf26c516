"""Where the tests of a GPU run, and the figures that they measure."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

REHEARSAL = os.environ.get("CUSTOS_CUDA_REHEARSAL") == "1"
"""Run every check on the CPU, to see that the tests themselves work."""
DEVICE = "cpu" if REHEARSAL else "cuda"
ON_GPU = [
    pytest.mark.cuda,
    pytest.mark.skipif(not REHEARSAL and not torch.cuda.is_available(), reason="no CUDA device"),
]
"""Marks of a test for a GPU, which a rehearsal runs on the CPU."""


@dataclass(frozen=True)
class Figures:
    """Figures of a test: each is printed, and a property of the test in pytest's JUnit file."""

    record: Callable[[str, object], None]

    def add(self, check: str, case: str, value: float, unit: str, limit: str = "") -> None:
        """Add a figure; ``limit`` says what the test asks of it, empty if it is only reported."""
        self.record(f"{check}: {case}", json.dumps([value, unit, limit]))
        print(f"\n{check}: {case}: {value:.4g} {unit} {limit}".rstrip())  # noqa: T201
