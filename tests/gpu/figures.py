"""The table of figures that the tests of a GPU print, and the file that keeps it."""

import json
import os
import platform
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from judging.files.atomic import write_text

REHEARSAL = os.environ.get("CUSTOS_CUDA_REHEARSAL") == "1"
"""Run every check on the CPU, to see that the tests themselves work."""
DEVICE = "cpu" if REHEARSAL else "cuda"
ON_GPU = [
    pytest.mark.cuda,
    pytest.mark.skipif(not REHEARSAL and not torch.cuda.is_available(), reason="no CUDA device"),
]
"""Marks of a test for a GPU, which a rehearsal runs on the CPU."""


@dataclass(frozen=True)
class Figure:
    """A measured number."""

    check: str
    case: str
    value: float
    unit: str
    limit: str = ""
    """What the test asks of the number, in words; empty if it is only reported."""


class Figures(list[Figure]):
    """Figures in the order in which they were measured, kept in a file.

    The file is written with every figure, so that a run that is ended early leaves what it
    measured. Figures of other tests on the same machine stay in it.

    Args:
        path: The file, JSON.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def add(self, check: str, case: str, value: float, unit: str, limit: str = "") -> None:
        """Add a figure and write the file."""
        self.append(Figure(check, case, value, unit, limit))
        measured: dict[str, Any] = {"on": machine(), "rehearsal": REHEARSAL}
        before: dict[str, Any] = {}
        if self.path.exists():
            before = json.loads(self.path.read_text(encoding="utf-8"))
        if {key: before.get(key) for key in measured} != measured:
            before = {}  # of another device, or another PyTorch
        figures = {(old["check"], old["case"]): old for old in before.get("figures", ())}
        figures |= {(new.check, new.case): asdict(new) for new in self}
        write_text(self.path, json.dumps({**measured, "figures": list(figures.values())}, indent=1))

    def table(self) -> str:
        """Return the figures as aligned lines."""
        rows = [(f.check, f.case, f"{f.value:.4g}", f.unit, f.limit) for f in self]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )


def machine() -> dict[str, str | int]:
    """Return what the figures depend on beside the code."""
    on_gpu = DEVICE == "cuda"
    return {
        "device": torch.cuda.get_device_name() if on_gpu else f"CPU ({platform.machine()})",
        "gpus": torch.cuda.device_count() if on_gpu else 0,
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
    }


def output_file() -> Path:
    """Return where the figures are kept, by default in a file named by the device."""
    device = "rehearsal" if REHEARSAL else str(machine()["device"])
    name = re.sub(r"\W+", "-", device.lower()).strip("-")
    return Path(os.environ.get("CUSTOS_CUDA_FIGURES", f"runs/cuda_{name}.json"))
