"""Bodies of calls are JSON, and say so."""

from __future__ import annotations

from email.message import Message

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from serve.errors import ApiError


class RequireJson:
    """Middleware that answers 415 to a body that is not called JSON.

    A page of another site can send a form or plain text through a browser without being asked, but
    not JSON.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] == "http" and scope["method"] == "POST":
            sent = Message()
            sent["Content-Type"] = Headers(scope=scope).get("Content-Type", "")
            if sent.get_content_type() != "application/json":
                refusal = ApiError(
                    415, "send the header 'Content-Type: application/json'", "Content-Type"
                )
                return await refusal.response()(scope, receive, send)
        await self.app(scope, receive, send)
