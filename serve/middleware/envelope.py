"""Around every route: who may call, how much body, request ids, headers, counts and the log."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import logging
import re
import time
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.errors import RETRY_AFTER_S, ApiError
from serve.limits import Limits
from serve.queue.metrics import Metrics
from serve.requests.held_bytes import CallBytes, HeldBytes, call_bytes

if TYPE_CHECKING:
    from serve.queue.service import Service

logger = logging.getLogger("custos.serve")

REQUEST_ID_HEADER = "X-Request-ID"
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
OPEN_ROUTES = ("/health/live", "/health/ready")
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Unless a route has set its own."""

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the call being answered."""


class Envelope:
    """Every answer carries ``X-Request-ID`` and the security headers, is counted and logged.

    The client's id is kept if it is short and plain. A fault becomes a 500 that names the id; its
    traceback goes to the log.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
        own_id = given if REQUEST_ID.fullmatch(given) else uuid4().hex
        request_id.set(own_id)
        start = time.perf_counter()
        status = 0

        async def send_wrapped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID_HEADER] = own_id
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, receive, send_wrapped)
        except ClientDisconnect:
            status = 499
        except Exception:
            logger.exception("request %s failed", own_id)
            if status:
                raise
            fault = ApiError(500, f"internal error; the log has it under request {own_id}")
            await fault.response()(scope, receive, send_wrapped)
        finally:
            seconds = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.calls.labels(route, str(status)).inc()
            self.metrics.call_seconds.labels(route).observe(seconds)
            logger.info(
                "request %s %s %s %d %.0f ms", own_id, scope["method"], route, status, 1e3 * seconds
            )


class Keys:
    """Lets in calls with one of the access keys; health is open to all.

    A key comes as ``Authorization: Bearer KEY``, or as the password of HTTP Basic, which a browser
    asks for; the latter only from pages of this site.

    Args:
        app: What to guard.
        keys: The access keys.
    """

    def __init__(self, app: ASGIApp, keys: Sequence[str]) -> None:
        self.app = app
        self._digests = [hashlib.sha256(key.encode()).digest() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] == "http" and scope["path"] not in OPEN_ROUTES:
            if not self._is_known(_given_key(Headers(scope=scope))):
                refusal = ApiError(401, "an access key is needed: Authorization: Bearer KEY")
                response = refusal.response()
                # One header each: Chromium does not find Basic behind another scheme.
                response.headers["WWW-Authenticate"] = 'Basic realm="custos"'
                response.headers.append("WWW-Authenticate", "Bearer")
                return await response(scope, receive, send)
        await self.app(scope, receive, send)

    def _is_known(self, key: str) -> bool:
        given = hashlib.sha256(key.encode(errors="surrogateescape")).digest()
        # All are compared, so that the time says nothing of which one.
        return any([hmac.compare_digest(given, digest) for digest in self._digests])


def _given_key(headers: Headers) -> str:
    scheme, _, value = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic" and headers.get("Sec-Fetch-Site") != "cross-site":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return ""


class WhenOpen:
    """Answers 503 to everything but health until there are judges."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] == "http" and scope["path"] not in OPEN_ROUTES and not self.service.judges:
            refusal = ApiError(503, "the service is starting", retry_after=RETRY_AFTER_S)
            return await refusal.response()(scope, receive, send)
        await self.app(scope, receive, send)


class Bodies:
    """Bounds every body in bytes and time, and all that is in hand together.

    A body that is too large is read on and dropped up to twice the limit, so that its sender gets
    to see the answer.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app = app
        self.limits = limits
        self.held = HeldBytes(limits.held_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        limits = self.limits
        until = time.monotonic() + limits.body_seconds
        own = CallBytes(self.held)
        is_over = False

        async def receive_part() -> Message:
            nonlocal is_over
            try:
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                is_over = True
                raise ApiError(
                    408, f"the body took longer than {limits.body_seconds:g} seconds"
                ) from None
            is_over = not message.get("more_body", False)
            own.take(len(message.get("body", b"")))
            return message

        async def receive_bounded() -> Message:
            nonlocal is_over
            if is_over:  # what comes now is the end of the connection
                return await receive()
            message = await receive_part()
            if own.num_bytes > limits.body_bytes:
                while not is_over and own.num_bytes <= 2 * limits.body_bytes:
                    await receive_part()
                is_over = True
                raise ApiError(413, f"the body is larger than {limits.body_bytes:,} bytes")
            return message

        call_bytes.set(own)
        try:
            await self.app(scope, receive_bounded, send)
        finally:
            own.release()
