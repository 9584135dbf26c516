"""The context of the call that is being answered: its id, its key, the bytes held for it."""

from __future__ import annotations

import threading
from contextvars import ContextVar

from serve.errors import ApiError
from serve.keys import AccessKey

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the call: sent back in its answer, and written to the log."""
access_key: ContextVar[AccessKey | None] = ContextVar("access_key", default=None)
"""Key that the call came with; ``None`` if it needs none."""


def caller_name() -> str:
    """Return the name of the call's key; empty if it has none."""
    key = access_key.get()
    return key.name if key else ""


class HeldBytes:
    """Number of bytes that the service holds for all calls: bodies and fetched pictures.

    Args:
        limit: Most bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.num_bytes = 0
        self._lock = threading.Lock()

    def add(self, num_bytes: int) -> bool:
        """Add to the number, from any thread; return whether it is then within the limit."""
        with self._lock:
            self.num_bytes += num_bytes
            return self.num_bytes <= self.limit


class CallBytes:
    """Number of bytes that the service holds for one call.

    Args:
        total: Number for all calls.
    """

    def __init__(self, total: HeldBytes) -> None:
        self.total = total
        self.num_bytes = 0
        self._is_over = False
        self._lock = threading.Lock()

    def take(self, num_bytes: int) -> None:
        """Hold more bytes; threads may do so too.

        Raises:
            ApiError: 429 if the service then holds too many for all calls together; 503 if the call
                is over, as when a thread still fetches its pictures after the deadline.
        """
        with self._lock:
            if self._is_over:
                raise ApiError(503, "the call is over")
            self.num_bytes += num_bytes
            is_within = self.total.add(num_bytes)
        if not is_within:
            raise ApiError(429, "too many request bodies are in memory; try again", retry_after=1)

    def release(self) -> None:
        """End the call: hold nothing any more, and take nothing more."""
        with self._lock:
            self._is_over = True
            self.total.add(-self.num_bytes)
            self.num_bytes = 0


call_bytes: ContextVar[CallBytes | None] = ContextVar("call_bytes", default=None)
"""Bytes held for the call; ``None`` outside of one."""
