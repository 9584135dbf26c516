"""The context of the call that is being answered: its id, its key, the bytes held for it."""

from __future__ import annotations

import threading
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass

from serve.calls.errors import RETRY_AFTER_S, ApiError


@dataclass(frozen=True)
class AccessKey:
    """Name and hash of a key. The key itself is not kept."""

    name: str
    """Shown in the log and in metrics."""
    sha256: bytes


request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the call: sent back in its answer, and written to the log."""
access_key: ContextVar[AccessKey | None] = ContextVar("access_key", default=None)
"""Key that the call came with; ``None`` if it needs none."""


def caller_name() -> str:
    """Name the call's key; empty if it has none."""
    key = access_key.get()
    return key.name if key else ""


class HeldBytes:
    """Number of bytes that the service holds for all calls: bodies and fetched pictures.

    All calls share ``limit`` bytes, and the calls of one named caller may take ``caller_share`` of
    them. A caller without another call may take any number, as may one without a name. Above the
    limit, each named caller has room for an even part of it, whatever the others take.
    """

    def __init__(self, limit: int, caller_share: float = 1.0) -> None:
        self.limit = limit
        self.caller_share = caller_share
        self.num_bytes = 0
        self._by_caller = Counter[str]()
        self._lock = threading.Lock()

    def add(self, num_bytes: int, caller: str) -> int:
        """Add to the number of a caller, from any thread, and return it."""
        with self._lock:
            self.num_bytes += num_bytes
            self._by_caller[caller] += num_bytes
            total = self._by_caller[caller]
            if not total:
                del self._by_caller[caller]
            return total

    def is_owed(self, num_bytes: int, caller: str) -> bool:
        """Tell whether a named caller that holds bytes has at most an even part of the limit."""
        with self._lock:
            return bool(caller) and num_bytes * len(self._by_caller) <= self.limit


class CallBytes:
    """Number of bytes that the service holds for one call; made when its caller is known."""

    def __init__(self, total: HeldBytes) -> None:
        self.total = total
        self.caller = caller_name()
        self.num_bytes = 0
        self.is_over = False
        self._num_holders = 1
        self._lock = threading.Lock()

    def take(self, num_bytes: int) -> None:
        """Hold more bytes; threads may do so too.

        Raises:
            ApiError: 429 if the service then holds too many for all calls or for those of one key;
                503 if the call is over, as when a thread still fetches its pictures after the
                deadline.
        """
        with self._lock:
            if self.is_over:
                raise ApiError(503, "the call is over")
            self.num_bytes += num_bytes
            of_caller = self.total.add(num_bytes, self.caller)
            has_others = self.caller and of_caller > self.num_bytes
        exceeds_share = has_others and of_caller > self.total.caller_share * self.total.limit
        is_full = self.total.num_bytes > self.total.limit
        if exceeds_share or (is_full and not self.total.is_owed(of_caller, self.caller)):
            whose = " of this key" if exceeds_share else ""
            message = f"too many request bodies{whose} are in memory; try again"
            raise ApiError(429, message, retry_after=RETRY_AFTER_S)

    def end(self) -> None:
        """End the call: take nothing more, and hold nothing once nobody else does."""
        self.is_over = True
        self.release()

    def hold(self) -> None:
        """Count the bytes until :meth:`release`, even if the call ends before, from any thread."""
        with self._lock:
            self._num_holders += 1

    def release(self) -> None:
        """End what :meth:`hold` began."""
        with self._lock:
            self._num_holders -= 1
            if not self._num_holders:
                self.total.add(-self.num_bytes, self.caller)
                self.num_bytes = 0


call_bytes: ContextVar[CallBytes | None] = ContextVar("call_bytes", default=None)
"""Bytes held for the call; ``None`` outside of one."""


def require_open() -> None:
    """Raise ``ApiError`` 503, which nobody sees, if the call was answered or its client left."""
    num_held = call_bytes.get()
    if num_held and num_held.is_over:
        raise ApiError(503, "the call is over")
