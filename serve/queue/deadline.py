"""The time by which a call must be answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from serve.errors import ApiError
from serve.limits import Limits


class Deadline:
    """The end of the time that a call may take, counted from its arrival.

    Made on the event loop when the call arrives.

    Args:
        limits: Hold the longest time.
        seconds: What the client asks for, if it is less.
    """

    def __init__(self, limits: Limits, seconds: float | None = None) -> None:
        self.seconds = min(seconds or limits.deadline_s, limits.deadline_s)
        self.end = asyncio.get_running_loop().time() + self.seconds

    @asynccontextmanager
    async def within(self) -> AsyncIterator[None]:
        """Cancel the block when the time is over.

        Raises:
            ApiError: 504 if it was.
        """
        try:
            async with asyncio.timeout_at(self.end) as timeout:
                yield
        except TimeoutError:
            if not timeout.expired():
                raise
            message = f"not answered within {self.seconds:g} seconds; the deadline is over"
            raise ApiError(504, message) from None
