"""The log of the service, which no caller can flood and for which no caller waits."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter, deque
from contextlib import suppress

from judging.log_lines import LineFormatter

THROTTLE_S = 10.0
STDERR = 2
MOST_WAITING = 4_000_000
"""Characters of lines that wait to be written. Further ones are left out."""
LAST_LINES_S = 1.0
"""Longest time to write the last lines, as the process ends."""


def start_log() -> None:
    """Write the log of this process to standard error."""
    handler = UnblockedHandler()
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("httpx").setLevel(logging.WARNING)  # Its lines show whole addresses.
    for name in ("asyncio", "uvicorn.error"):  # They tell of every broken or refused connection.
        logging.getLogger(name).addFilter(Throttle())


class UnblockedHandler(logging.Handler):
    """Handler for which nobody waits: a thread of its own writes the lines to standard error.

    If nobody reads them there, lines are left out once many wait, and the log says how many.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[str] = deque()
        self._num_chars = self._num_left_out = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._write_lines, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Have a line written."""
        line = f"{self.format(record)}\n"
        with self._changed:
            if self._num_chars + len(line) > MOST_WAITING:
                self._num_left_out += 1
                return
            if self._num_left_out:
                line = f"({self._num_left_out:,} lines of the log were left out here)\n{line}"
                self._num_left_out = 0
            self._lines.append(line)
            self._num_chars += len(line)
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until the lines are written, for a short time."""
        end = time.monotonic() + LAST_LINES_S
        with self._changed:
            while self._lines and (left := end - time.monotonic()) > 0:
                self._changed.wait(left)

    def _write_lines(self) -> None:
        while True:
            with self._changed:
                while not self._lines:
                    self._changed.wait()
                line = self._lines[0]
            with suppress(OSError):  # a full disk, or nobody is left to read it
                unwritten = memoryview(line.encode(errors="backslashreplace"))
                while unwritten:
                    # Not sys.stderr, whose lock a thread would hold while the process ends.
                    unwritten = unwritten[os.write(STDERR, unwritten) :]
            with self._changed:
                self._lines.popleft()
                self._num_chars -= len(line)
                self._changed.notify_all()


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
