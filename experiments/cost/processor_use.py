"""The share of the processor that other processes take while something is timed."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessorUse:
    """A moment, and the processor seconds that were used before it."""

    elapsed: float
    """Seconds on the clock."""
    process: float
    """Processor seconds of this process, all threads."""
    system: float
    """Processor seconds of all processes, with what the host took from a virtual machine."""

    @classmethod
    def now(cls) -> ProcessorUse:
        """Read the counters; Linux only."""
        line = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
        user, nice, system, _, _, interrupts, soft_interrupts, stolen = map(int, line.split()[1:9])
        ticks = user + nice + system + interrupts + soft_interrupts + stolen
        return cls(time.perf_counter(), time.process_time(), ticks / os.sysconf("SC_CLK_TCK"))

    def other_cores(self, since: ProcessorUse) -> float:
        """Return how many cores other processes kept busy since another moment, on average."""
        others = (self.system - since.system) - (self.process - since.process)
        return max(0.0, others / (self.elapsed - since.elapsed))
