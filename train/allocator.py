"""The C library's allocator, set for training on a CPU."""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # malloc.h
_NEVER, _BYTES_AT_A_TIME, _NO_MAPPINGS = -1, 64 << 20, 0


def keep_freed_memory() -> None:
    """Have this process keep memory that it frees, for its next allocation.

    A training step frees and allocates the same hundreds of megabytes. glibc returns large blocks
    to the kernel, which zeroes every page of the next one (docs/pairs.md, "What it costs"). Where
    the C library is not glibc nothing happens.
    """
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_MAX, _NO_MAPPINGS)
    mallopt(_M_TRIM_THRESHOLD, _NEVER)
    mallopt(_M_TOP_PAD, _BYTES_AT_A_TIME)
