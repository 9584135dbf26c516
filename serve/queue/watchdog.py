"""The end of a process whose model makes no progress."""

from __future__ import annotations

import faulthandler
import logging
import os
import tempfile
import threading
import time

logger = logging.getLogger("custos.serve")

TICKS = 100
"""Ticks in the longest time without progress."""


class Watchdog:
    """Ends the process if nothing is heard of the model for too long while it works.

    A supervisor can then start it again. What every thread was doing goes to the log. Time is
    counted in ticks of a thread, so that a process that was stopped and is continued, as by
    ``docker pause``, has not waited.

    Args:
        seconds: Longest time without progress; 0: any.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._works = False
        self._waited = 0.0
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def beat(self) -> None:
        """Take note of progress."""
        if not self.seconds:
            return
        self._waited = 0.0
        with self._lock:
            self._works = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
                self._thread.start()

    def rest(self) -> None:
        """Stop waiting for progress: the model has nothing to do."""
        self._works, self._waited = False, 0.0

    @property
    def is_stalled(self) -> bool:
        """Return whether half of the time has gone without progress."""
        return self._works and self._waited > self.seconds / 2

    def _watch(self) -> None:
        tick = self.seconds / TICKS
        while True:
            before = time.monotonic()
            time.sleep(tick)
            with self._lock:
                if not self._works:
                    self._thread = None
                    return
            # A longer tick is no time in which the model could work.
            self._waited += min(time.monotonic() - before, 2 * tick)
            if self._waited > self.seconds:
                self._end()

    def _end(self) -> None:
        with tempfile.TemporaryFile() as file:  # a pipe that nobody reads would stop it here
            faulthandler.dump_traceback(file)
            file.seek(0)
            threads = file.read().decode(errors="replace")
        logger.critical("the model makes no progress for %g s; the process ends", self.seconds)
        for line in threads.splitlines():
            logger.critical("    %s", line)
        logging.shutdown()
        os._exit(1)
