"""Limits on the bodies of calls."""

from __future__ import annotations

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.call_context import CallBytes, HeldBytes, call_bytes
from serve.errors import ApiError
from serve.limits import Limits


class BodyLimits:
    """Middleware that limits every body in bytes and time, and the bytes of all bodies together.

    A body that is too large is read on and thrown away up to twice its limit. A client that is
    still sending would not see the answer otherwise; FastAPI's own ``max_body_size`` does not read
    on, and knows no time.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app = app
        self.limits = limits
        self.total = HeldBytes(limits.held_bytes, limits.key_queue_share)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        body = _Body(receive, self.limits, CallBytes(self.total))
        call_bytes.set(body.num_held)
        try:
            await self.app(scope, body.receive, send)
        finally:
            body.num_held.end()


class _Body:
    """One body as it comes in."""

    def __init__(self, receive: Receive, limits: Limits, num_held: CallBytes) -> None:
        self.num_held = num_held
        self._receive = receive
        self._limits = limits
        self._end = time.monotonic() + limits.body_seconds
        self._is_over = False

    async def receive(self) -> Message:
        """Return the next part of the body, or what comes after it.

        Raises:
            ApiError: 413 if the body is too large, 408 if it takes too long, 429 if the service
                holds too many bytes.
        """
        if self._is_over:  # what comes now is the end of the connection
            return await self._receive()
        message = await self._receive_part()
        limit = self._limits.body_bytes
        if self.num_held.num_bytes > limit:
            while not self._is_over and self.num_held.num_bytes <= 2 * limit:
                await self._receive_part()
            self._is_over = True
            raise ApiError(413, f"the body is larger than {limit:,} bytes")
        return message

    async def _receive_part(self) -> Message:
        try:
            async with asyncio.timeout(max(0.0, self._end - time.monotonic())):
                message = await self._receive()
        except TimeoutError:
            self._is_over = True
            seconds = self._limits.body_seconds
            raise ApiError(408, f"the body took longer than {seconds:g} s") from None
        self._is_over = not message.get("more_body", False)
        self.num_held.take(len(message.get("body", b"")))
        return message
