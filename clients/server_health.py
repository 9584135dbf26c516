"""Health of servers that share work: which have failed, how fast they are, which calls are overdue.

:class:`~clients.server_pool.ServerPool` shares requests among servers of one model, and
:class:`~clients.judge_pool.JudgePool` shares rows among services that serve the same judges.
"""

from __future__ import annotations

import logging
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from judging.errors import CustosError

TRIES = 2
"""Tries of one call to a server; then another server gets its requests."""
COOL_OFF = 30.0
"""Seconds after which a server that failed is asked again."""
PATIENCE = 3.0
"""A call that takes so many times as long as others is sent to another server too ..."""
LEAST_PATIENCE = 0.2
"""... but not before so many seconds."""

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class ServerHealth:
    """Health of one server: its speed, and its last failure."""

    url: str
    seconds: float = 0.0
    """Seconds of a call lately; 0 before the first."""
    error: CustosError | None = None
    """Why it failed; ``None`` if it has answered since."""
    retry_at: float = 0.0
    """Time of the clock ``monotonic`` at which to ask it again after it failed."""

    @property
    def is_left_out(self) -> bool:
        """Return whether it failed less than :data:`COOL_OFF` seconds ago."""
        return self.error is not None and monotonic() < self.retry_at

    def note_answer(self, seconds: float) -> None:
        """Note a call that was answered after so many seconds."""
        self.seconds, self.error = seconds, None

    def note_no_answer(self, seconds: float) -> None:
        """Note a call that was given up after so many seconds."""
        self.seconds = max(self.seconds, seconds)

    def note_failure(self, error: CustosError) -> None:
        """Leave the server out for a while, and log why unless it is left out already."""
        if not self.is_left_out:
            logger.warning("%s: left out for %g s: %s", self.url, COOL_OFF, error)
        self.error, self.retry_at = error, monotonic() + COOL_OFF


def is_overdue(seconds: float, durations: Sequence[float]) -> bool:
    """Return whether a call takes much longer than others did.

    Args:
        seconds: Seconds since the call began.
        durations: Seconds of the calls that were answered; without any, nothing is overdue.
    """
    if not durations:
        return False
    return seconds > max(LEAST_PATIENCE, PATIENCE * statistics.median(durations))
