"""Memory that libraries keep: of freed tensors, and of the kernels of past shapes."""

from __future__ import annotations

import ctypes
import os
import time

CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
"""Environment variables for the sizes of oneDNN's cache of kernels, and of PyTorch's above it."""
KERNELS = "128"
"""More than a micro-batch needs, whose layers are alike."""
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


def bound_caches() -> None:
    """Keep fewer kernels for products in bfloat16, unless the user chose how many.

    Every shape of a batch gets kernels of its own, about half a megabyte each, and rows differ in
    length: the thousand that each cache would hold are of shapes that do not come again. Call this
    before the first product.
    """
    for variable in CACHES:
        os.environ.setdefault(variable, KERNELS)
