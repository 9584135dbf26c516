"""Limits of patience with servers that fail or are slow, for clients that ask several of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

TRIES = 2
"""Tries of one call to a server; then another server gets its requests."""
COOL_OFF = 30.0
"""Seconds after which a server that failed is asked again."""
PATIENCE = 3.0
"""A call that takes so many times as long as others is sent to another server too ..."""
LEAST_PATIENCE = 0.2
"""... but not before so many seconds."""


def is_overdue(seconds: float, durations: Sequence[float]) -> bool:
    """Return whether a call takes much longer than others did.

    Args:
        seconds: Seconds since the call began.
        durations: Seconds of the calls that were answered; without any, nothing is overdue.
    """
    if not durations:
        return False
    return seconds > max(LEAST_PATIENCE, PATIENCE * statistics.median(durations))
