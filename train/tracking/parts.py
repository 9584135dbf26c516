"""Seconds and peak memory of the parts of a run, measured in a dry run only."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import torch

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


@dataclass
class Part:
    """The seconds and the peak memory of one part of a run."""

    times: int = 0
    seconds: float = 0.0
    peak: int = 0
    """Bytes at the largest moment: of the GPU's tensors, or of the whole process on a CPU."""


class Parts:
    """The parts of a dry run, by name, in the order of their first beginning.

    Use :data:`PARTS`: memory is measured of a whole process, and so is this.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, Part] | None = None
        self._open: list[str] = []
        self._since = 0.0
        self._screen: TextIO | None = None
        self.failed: str | None = None

    def start(self, *, silent: bool) -> None:
        """Measure from now on, and show the name of each part as it begins."""
        self.by_name, self._open, self.failed = {}, [], None
        self._screen = None if silent else sys.stderr

    def stop(self) -> dict[str, Part]:
        """Measure no longer; return what was measured."""
        measured, self.by_name = self.by_name or {}, None
        return measured

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Measure the block as a part. A part that begins within another one interrupts it."""
        if self.by_name is None:
            yield
            return
        if name not in self.by_name and self._screen:
            self._screen.write(f"dry run: {name}\n")
        self._close()
        self._open.append(name)
        self.by_name.setdefault(name, Part()).times += 1
        self._begin()
        try:
            yield
        except BaseException:
            self.failed = self.failed or name
            raise
        finally:
            if self.by_name is not None:
                self._close()
                self._open.pop()
                self._begin()

    def _begin(self) -> None:
        gc.collect()
        reset_peak()
        self._since = time.monotonic()

    def _close(self) -> None:
        if self._open and self.by_name is not None:
            part = self.by_name[self._open[-1]]
            part.seconds += time.monotonic() - self._since
            part.peak = max(part.peak, peak_bytes())


def reset_peak() -> None:
    """Forget the largest memory so far, where the system allows it."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        return
    try:
        _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
    except OSError:  # another system: the peaks of parts are then those of the run so far
        return


def peak_bytes() -> int:
    """Measure the largest memory since :func:`reset_peak`."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    return process_peak(_STATUS)


def process_peak(status: Path) -> int:
    """Read the largest resident memory of a process from ``/proc/PID/status``; else 0."""
    try:
        lines = status.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


PARTS = Parts()
