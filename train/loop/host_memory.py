"""Memory that the C library keeps after tensors have been freed."""

from __future__ import annotations

import ctypes
import time

SHARE = 0.02
"""Most of the time that giving memory back may take."""


class FreeMemory:
    """Memory of freed tensors, given back to the system where the C library is glibc.

    Rows differ in length, so the tensors of one batch leave gaps that those of the next do not fit
    into. glibc keeps the gaps, and the process grows with every step.
    """

    def __init__(self) -> None:
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        self._due = 0.0

    def give_back(self) -> None:
        """Give it back, unless the last time is so near that this took more than its share."""
        started = time.perf_counter()
        if self._trim is None or started < self._due:
            return
        self._trim(0)
        ended = time.perf_counter()
        self._due = ended + (ended - started) / SHARE
