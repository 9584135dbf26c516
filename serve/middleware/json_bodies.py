"""Bodies of calls are JSON, say so, and are not compressed."""

from __future__ import annotations

from email.message import Message

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from serve.errors import ApiError


class RequireJson:
    """Middleware that answers 415 to a body that is not called JSON.

    A page of another site can send a form or plain text through a browser without being asked, but
    not JSON. A compressed body gets 415 too: a small one may unpack to very many bytes.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] == "http" and scope["method"] == "POST":
            headers = Headers(scope=scope)
            sent = Message()
            sent["Content-Type"] = headers.get("Content-Type", "")
            if sent.get_content_type() != "application/json":
                refusal = ApiError(
                    415, "send the header 'Content-Type: application/json'", "Content-Type"
                )
                return await refusal.response()(scope, receive, send)
            encodings = ",".join(headers.getlist("Content-Encoding")).lower().split(",")
            if any(encoding.strip() not in ("", "identity") for encoding in encodings):
                message = "bodies are not unpacked; send plain JSON without 'Content-Encoding'"
                refusal = ApiError(415, message, "Content-Encoding")
                return await refusal.response()(scope, receive, send)
        await self.app(scope, receive, send)
