"""The end of a process whose model makes no progress."""

from __future__ import annotations

import faulthandler
import time

STDERR = 2
BEATS = 100
"""Most times that the end is put off within its own time."""


class Watchdog:
    """Ends the process if nothing is heard of the model for too long while it works.

    A supervisor can then start it again. What every thread was doing goes to standard error. The
    clock is Python's own C thread, which runs even if the interpreter hangs.

    Args:
        seconds: Longest time without progress; 0: any.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._last_beat: float | None = None

    def beat(self) -> None:
        """Take note of progress."""
        now = time.monotonic()
        if self.seconds and now - (self._last_beat or 0) > self.seconds / BEATS:
            self._last_beat = now
            faulthandler.dump_traceback_later(self.seconds, exit=True, file=STDERR)

    def rest(self) -> None:
        """Stop waiting for progress: the model has nothing to do."""
        if self._last_beat is not None:
            self._last_beat = None
            faulthandler.cancel_dump_traceback_later()

    @property
    def is_stalled(self) -> bool:
        """Return whether half of the time has gone without progress."""
        beat = self._last_beat
        return beat is not None and time.monotonic() - beat > self.seconds / 2
