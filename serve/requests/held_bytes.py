"""Bytes that the service holds for its calls: bodies and fetched pictures, until each call ends."""

from __future__ import annotations

import threading
from contextvars import ContextVar

from serve.errors import ApiError


class HeldBytes:
    """What all calls hold together.

    Args:
        limit: Most bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.num_bytes = 0
        self._lock = threading.Lock()

    def add(self, num_bytes: int) -> bool:
        """Add to it, from any thread; whether it is then within the limit."""
        with self._lock:
            self.num_bytes += num_bytes
            return self.num_bytes <= self.limit


class CallBytes:
    """What one call holds.

    Args:
        held: What all calls hold.
    """

    def __init__(self, held: HeldBytes) -> None:
        self.held = held
        self.num_bytes = 0

    def take(self, num_bytes: int) -> None:
        """Hold more.

        Raises:
            ApiError: 429 if all calls together then hold too much.
        """
        self.num_bytes += num_bytes
        if not self.held.add(num_bytes):
            raise ApiError(429, "too many bodies are in hand; try again", retry_after=1)

    def release(self) -> None:
        """Hold nothing any more."""
        self.held.add(-self.num_bytes)
        self.num_bytes = 0


call_bytes: ContextVar[CallBytes | None] = ContextVar("call_bytes", default=None)
"""Of the call being answered."""
