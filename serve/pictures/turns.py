"""Slots that callers take in turns, so that one who has much to do holds up no other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """A few slots for work. While none is free callers take turns; each caller's oldest goes first.

    Used on one event loop.

    Args:
        num_slots: Most slots that are held at once.
    """

    def __init__(self, num_slots: int) -> None:
        self._num_free = num_slots
        # The caller whose turn is next comes first.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def slot(self, caller: str) -> AsyncIterator[None]:
        """Hold a slot while the block runs.

        Args:
            caller: Name of the access key of the call; empty if calls need none.
        """
        if self._num_free:
            self._num_free -= 1
        else:
            await self._wait(caller)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, caller: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the slot has come already
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give a slot that is held no more to whoever is next."""
        while self._waiting:
            caller = next(iter(self._waiting))
            turns = self._waiting.pop(caller)
            turn = turns.popleft()
            if turns:
                self._waiting[caller] = turns
            if not turn.cancelled():
                turn.set_result(None)
                return
        self._num_free += 1
