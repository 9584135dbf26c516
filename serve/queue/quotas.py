"""Quotas of requests in a minute, by caller: bookkeeping without a clock."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class _Allowance:
    """Requests that a caller may still send, as of a time."""

    requests: float
    at: float


class Quotas:
    """A limit on the requests of every caller in a minute.

    Each caller has an allowance of one minute's requests, which refills all the time. A single call
    with more requests than that needs the whole allowance, and the caller then waits for longer.

    Args:
        per_minute: Requests in a minute; ``None``: no limit.
    """

    def __init__(self, per_minute: int | None) -> None:
        self.per_minute = per_minute
        self._allowances: dict[str, _Allowance] = {}

    def seconds_to_wait(self, caller: str, num_requests: int, now: float) -> int:
        """Return the whole seconds until a caller may send requests; 0 if it may at once."""
        if self.per_minute is None:
            return 0
        missing = min(num_requests, self.per_minute) - self._requests(caller, now)
        return math.ceil(60 * missing / self.per_minute) if missing > 0 else 0

    def take(self, caller: str, num_requests: int, now: float) -> None:
        """Count requests that a caller has sent."""
        if self.per_minute is not None:
            left = self._requests(caller, now) - num_requests
            self._allowances[caller] = _Allowance(left, now)

    def _requests(self, caller: str, now: float) -> float:
        if self.per_minute is None:
            return math.inf
        allowance = self._allowances.get(caller, _Allowance(self.per_minute, now))
        refilled = allowance.requests + (now - allowance.at) * self.per_minute / 60
        return min(self.per_minute, refilled)
