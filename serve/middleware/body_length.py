"""Calls that state the length of their body twice."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from serve.errors import ApiError


class RequireOneLength:
    """Middleware that refuses a call with both ``Content-Length`` and ``Transfer-Encoding``.

    A proxy that heeds the one in front of a server that heeds the other takes a part of the body
    for the next call, which may be another client's (RFC 9112, 6.3).
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if "Content-Length" in headers and "Transfer-Encoding" in headers:
                refusal = ApiError(400, "expected one length of the body", "Transfer-Encoding")
                return await refusal.response()(scope, receive, send)
        await self.app(scope, receive, send)
