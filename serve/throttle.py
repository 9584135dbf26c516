"""A log that cannot be flooded by what strangers do."""

from __future__ import annotations

import logging
import time
from collections import Counter

THROTTLE_S = 10.0


class Throttle(logging.Filter):
    """Filter of a logger that lets a message pass once in ``THROTTLE_S`` seconds.

    The next one that passes says how many were left out. Messages are the same if their first
    lines are, before values are put into them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._next_at: dict[str, float] = {}
        self._num_left_out = Counter[str]()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message passes."""
        message = str(record.msg).partition("\n")[0]
        now = time.monotonic()
        if now < self._next_at.get(message, 0.0):
            self._num_left_out[message] += 1
            return False
        self._next_at[message] = now + THROTTLE_S
        if num_left_out := self._num_left_out.pop(message, 0):
            record.msg = f"{record.msg} ({num_left_out:,} more before it)"
        return True
