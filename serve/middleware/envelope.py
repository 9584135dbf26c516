"""The envelope of every answer: an id, security headers, a count and a log line."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.call_context import caller_name, request_id
from serve.errors import RETRY_AFTER_S, ApiError
from serve.queue.metrics import Metrics

logger = logging.getLogger("custos.serve")

REQUEST_ID_HEADER = "X-Request-ID"
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Added unless the route has set its own."""
LONGEST_METHOD = 16
"""Characters of a call's method in the log. Strangers may send one as long as all headers."""
CLIENT_CLOSED = 499
"""Status to count for a client that closed the connection, as nginx does."""


class Envelope:
    """Middleware that adds ``X-Request-ID`` and security headers, and counts and logs every answer.

    The client's own id is used if it is short and plain. An exception becomes a 500 that names the
    id; its traceback goes to the log. A call that is cancelled is answered 503.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        call_id = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
        if not REQUEST_ID.fullmatch(call_id):
            call_id = uuid4().hex
        request_id.set(call_id)
        start = time.perf_counter()
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID_HEADER] = call_id
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except ClientDisconnect:
            status = CLIENT_CLOSED
        except asyncio.CancelledError:
            # uvicorn cancels what is left when the service ends, such as slow bodies.
            if status:
                raise
            error = ApiError(503, "the service has stopped", retry_after=RETRY_AFTER_S)
            await error.response()(scope, receive, send_with_headers)
        except Exception:
            logger.exception("request %s failed", call_id)
            if status:
                raise
            error = ApiError(500, f"internal error; the log has it under request {call_id}")
            await error.response()(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", "other")
            caller = caller_name()
            self.metrics.count_call(route, status, seconds, caller)
            logger.info(
                "request %s %s %s %d %.0f ms%s",
                call_id,
                scope["method"][:LONGEST_METHOD],
                route,
                status,
                1e3 * seconds,
                f" key {caller}" if caller else "",
            )
