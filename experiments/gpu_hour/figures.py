"""The figures of the first hour on a GPU, in one JSON file that is named by the device."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import time
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from judging.errors import CustosError
from judging.files.records import write_json

ABSENT = "absent"
"""Value of a figure whose program or weights are not here."""
NOT_FINISHED = "not finished"
"""Measurement whose value is why its part did not come to an end."""
PEAK_TFLOPS = {
    **{"H100 PCIe": 756.0, "H100 NVL": 835.0, "H100": 989.4, "H200": 989.4, "A100": 312.0},
    **{"L40S": 362.05, "L40": 181.05, "RTX 4090": 165.2},
}
"""Peak in bfloat16 without sparsity, in TFLOP/s, by a part of the device's name; of several parts
that fit, the first counts. From NVIDIA's data sheets; H100 alone is the SXM5 module."""
PACKAGES = (
    *("torch", "transformers", "accelerate", "peft", "trl", "bitsandbytes", "pydantic", "fastapi"),
    *("datasets", "huggingface_hub", "tokenizers", "safetensors", "pytest"),
)


@dataclass(frozen=True)
class Figure:
    """A measured value."""

    measurement: str
    value: float | str
    unit: str = ""
    target: str = ""
    """What it must be: ``< 3``, ``>= 3`` or ``1 to 2``; empty if it is only reported."""

    @property
    def ok(self) -> bool | None:
        """Return whether the value meets its target, ``None`` without one or without a number."""
        numbers = [float(text.replace(",", "")) for text in re.findall(r"[\d.,e-]+", self.target)]
        if self.measurement == NOT_FINISHED:
            return False
        if isinstance(self.value, str) or not numbers:
            return None
        if self.target.startswith("<"):
            return self.value < numbers[0]
        if self.target.startswith(">="):
            return self.value >= numbers[0]
        return numbers[0] <= self.value <= numbers[-1]


@dataclass(frozen=True)
class Machine:
    """The device that is measured."""

    device: str
    driver: str
    rehearsal: bool

    @classmethod
    def here(cls, *, rehearsal: bool) -> Machine:
        """Name the first GPU; a rehearsal is one of the CPU.

        Raises:
            CustosError: If there is no GPU.
        """
        if rehearsal:
            return cls(f"rehearsal {platform.machine()}", "", rehearsal)
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        try:
            done = subprocess.run(query, capture_output=True, text=True, check=True)
            device, driver = done.stdout.splitlines()[0].rsplit(", ", 1)
        except (OSError, subprocess.CalledProcessError, IndexError, ValueError):
            raise CustosError(
                "nvidia-smi names no GPU; '--rehearse' takes all steps on the CPU, in small"
            ) from None
        return cls(device, driver, rehearsal)

    @property
    def slug(self) -> str:
        """Return the name of the device for a file."""
        return re.sub(r"[^a-z0-9]+", "-", self.device.lower()).strip("-")

    @property
    def peak_tflops(self) -> float | None:
        """Return the device's peak in bfloat16, if it is known."""
        return next((peak for name, peak in PEAK_TFLOPS.items() if name in self.device), None)


FIELDS = (
    *("step", "part", "measurement", "value", "unit", "target", "ok"),
    *("seconds", "driver", "versions"),
)
"""Fields of a figure in the file."""


class Book:
    """The figures in their file, which is written anew with each of them.

    Args:
        path: The file; figures that it has already are kept.
        machine: Device that they are measured on.
    """

    def __init__(self, path: Path, machine: Machine) -> None:
        self.path, self.machine = path, machine
        self.figures: list[dict[str, Any]] = []
        self.done: list[list[Any]] = []
        """Step and name of every part that came to its end."""
        if path.exists():
            self._read()

    def _read(self) -> None:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            device, figures, done = content["device"], content["figures"], content["done"]
            self.figures = [{name: figure[name] for name in FIELDS} for figure in figures]
            self.done = [[int(step), str(name)] for step, name in done]
        except (ValueError, TypeError, KeyError):
            raise CustosError(
                f"{self.path}: no file of figures, or a damaged one; move it away or name another "
                "file in --out"
            ) from None
        if device != self.machine.device:
            raise CustosError(
                f"{self.path}: holds the figures of {device}, and this is {self.machine.device}; "
                "name another file in --out"
            )

    def clear(self, step: int, part: str) -> None:
        """Forget what a part measured, before it is measured anew."""
        self.done = [key for key in self.done if key != [step, part]]
        self.figures = [f for f in self.figures if (f["step"], f["part"]) != (step, part)]

    def add(self, step: int, part: str, figure: Figure, began: float) -> None:
        """Keep a figure of a part that began at a time; a rehearsal says nothing about targets."""
        is_judged = not self.machine.rehearsal or figure.measurement == NOT_FINISHED
        self.figures.append(
            {
                **{"step": step, "part": part, **asdict(figure)},
                **{"ok": figure.ok if is_judged else None},
                **{"seconds": round(time.monotonic() - began, 1), "driver": self.machine.driver},
                "versions": ", ".join(f"{name} {installed(name)}" for name in PACKAGES[:4]),
            }
        )
        self.write()

    def write(self) -> None:
        """Write the file, whole or not at all; its folder is made if it is missing."""
        on = {"device": self.machine.device, "rehearsal": self.machine.rehearsal}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, {**on, "done": self.done, "figures": self.figures})

    def find(self, part: str, measurement: str) -> float | str | None:
        """Return what a part measured, if it did."""
        found = (f for f in self.figures if (f["part"], f["measurement"]) == (part, measurement))
        value: float | str | None = next((f["value"] for f in found), None)
        return value

    def number(self, part: str, measurement: str) -> float | None:
        """Return a number that a part measured, if it did."""
        value = self.find(part, measurement)
        return None if isinstance(value, str) else value


def installed(package: str) -> str:
    """Return the version of a package, or that it is absent."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT
