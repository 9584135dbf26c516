"""The figures of the first hour on a GPU, in one JSON file that is named by the device."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from judging.errors import CustosError
from judging.files.records import write_json

ABSENT = "absent"
"""Value of a figure whose program or weights are not here."""
PEAK_TFLOPS = {
    "H100 PCIe": 756.0,
    "H100 NVL": 835.0,
    "H100": 989.4,
    "H200": 989.4,
    "A100": 312.0,
    "L40S": 362.05,
    "L40": 181.05,
    "RTX 4090": 165.2,
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


class Book:
    """The figures in their file, which is written anew with each of them.

    Args:
        path: The file; figures that it has already are kept.
        machine: Device that they are measured on.
    """

    def __init__(self, path: Path, machine: Machine) -> None:
        self.path, self.machine = path, machine
        self.content: dict[str, Any] = {
            **{"device": machine.device, "rehearsal": machine.rehearsal, "done": [], "figures": []}
        }
        if path.is_file():
            self.content = json.loads(path.read_text(encoding="utf-8"))
            if self.content["device"] != machine.device:
                raise CustosError(
                    f"{path}: holds the figures of {self.content['device']}, and this is "
                    f"{machine.device}; name another file in --out"
                )

    @property
    def figures(self) -> list[dict[str, Any]]:
        """Return all figures as the file has them."""
        figures: list[dict[str, Any]] = self.content["figures"]
        return figures

    def is_done(self, step: int, part: str) -> bool:
        """Return whether a part of a step came to its end."""
        return [step, part] in self.content["done"]

    def clear(self, step: int, part: str) -> None:
        """Forget what a part measured, before it is measured anew."""
        self.content["done"] = [key for key in self.content["done"] if key != [step, part]]
        self.content["figures"] = [
            figure for figure in self.figures if (figure["step"], figure["part"]) != (step, part)
        ]

    def add(self, step: int, part: str, figure: Figure, seconds: float) -> None:
        """Keep a figure.

        Args:
            step: Number of the step.
            part: Part of the step that measured it.
            figure: The figure. A rehearsal says nothing about targets.
            seconds: Seconds since the part began.
        """
        entry = {
            **{"step": step, "part": part, "measurement": figure.measurement},
            **{"value": figure.value, "unit": figure.unit, "target": figure.target},
            **{"ok": None if self.machine.rehearsal else figure.ok, "seconds": round(seconds, 1)},
            **{"versions": versions(), "driver": self.machine.driver},
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self.figures.append(entry)
        self._write()

    def finish(self, step: int, part: str) -> None:
        """Note that a part came to its end."""
        self.content["done"].append([step, part])
        self._write()

    def fail(self, step: int, part: str, reason: str, began: float) -> None:
        """Keep why a part did not come to its end; the next run of its step takes it again."""
        self.add(step, part, Figure("not finished", reason), time.monotonic() - began)
        self.figures[-1]["ok"] = False
        self._write()

    def value(self, part: str, measurement: str) -> float | None:
        """Return a number that another part measured, if it did."""
        for figure in self.figures:
            if (figure["part"], figure["measurement"]) == (part, measurement):
                return None if isinstance(figure["value"], str) else float(figure["value"])
        return None

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, self.content)


def versions() -> str:
    """Return the versions of the packages that figures depend on."""
    return ", ".join(f"{name} {installed(name) or ABSENT}" for name in PACKAGES[:4])


def installed(package: str) -> str | None:
    """Return the version of a package, if it is installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
