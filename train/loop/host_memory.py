"""Memory that the C library keeps after tensors have been freed."""

from __future__ import annotations

import ctypes


def return_free_memory() -> None:
    """Give the memory of freed tensors back to the system, where the C library is glibc.

    Rows differ in length, so the tensors of one batch leave gaps that those of the next do not fit
    into. glibc keeps the gaps, and the process grows for as long as it trains.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)
