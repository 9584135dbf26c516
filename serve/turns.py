"""Slots that callers take in turns, so that one who has much to do holds up no other."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """A few slots for work. While none is free callers take turns; each caller's oldest goes first.

    Used on one event loop.

    Args:
        num_slots: Most slots that are held at once.
        caller_slots: Most of them that one named caller holds; default all.
    """

    def __init__(self, num_slots: int, caller_slots: int | None = None) -> None:
        self._num_free = num_slots
        self._caller_slots = caller_slots or num_slots
        self._num_held = Counter[str]()
        # The caller whose turn is next comes first.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def slot(self, caller: str) -> AsyncIterator[None]:
        """Hold a slot while the block runs.

        Args:
            caller: Name of the access key of the call; empty if calls need none.
        """
        await self.take(caller)
        try:
            yield
        finally:
            self.give_back(caller)

    async def take(self, caller: str) -> None:
        """Hold a slot, once there is one, until :meth:`give_back`."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._pass_on()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the slot has come already
                self.give_back(caller)
            raise

    def give_back(self, caller: str) -> None:
        """Hold a slot no more."""
        self._num_held[caller] -= 1
        if not self._num_held[caller]:
            del self._num_held[caller]
        self._num_free += 1
        self._pass_on()

    def _pass_on(self) -> None:
        """Give free slots to whoever is next."""
        for caller in list(self._waiting):
            if not self._num_free:
                return
            if caller and self._num_held[caller] >= self._caller_slots:
                continue
            turns = self._waiting.pop(caller)
            while turns and turns[0].cancelled():
                turns.popleft()
            if turns:
                self._num_free -= 1
                self._num_held[caller] += 1
                turns.popleft().set_result(None)
            if turns:
                self._waiting[caller] = turns
