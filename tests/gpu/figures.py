"""The table of figures that the tests of a GPU print, and the file that keeps it."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

REHEARSAL = os.environ.get("CUSTOS_CUDA_REHEARSAL") == "1"
"""Run every check on the CPU, to see that the tests themselves work."""
if REHEARSAL:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # training would take a GPU if it saw one
DEVICE = "cpu" if REHEARSAL else "cuda"


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
    """Figures in the order in which they were measured."""

    def add(self, check: str, case: str, value: float, unit: str, limit: str = "") -> None:
        """Add a figure."""
        self.append(Figure(check, case, value, unit, limit))

    def table(self) -> str:
        """Return the figures as aligned lines."""
        rows = [(f.check, f.case, f"{f.value:.4g}", f.unit, f.limit) for f in self]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )

    def write(self, path: Path) -> None:
        """Write the figures and what they were measured on as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        measured = {"on": machine(), "rehearsal": REHEARSAL, "figures": [asdict(f) for f in self]}
        path.write_text(json.dumps(measured, indent=1), encoding="utf-8")


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
    """Return where the figures are kept."""
    name = "cuda_rehearsal.json" if REHEARSAL else "cuda_figures.json"
    return Path(os.environ.get("CUSTOS_CUDA_FIGURES", f"runs/{name}"))
