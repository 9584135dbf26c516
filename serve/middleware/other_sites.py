"""Pages of other sites, shown by a browser on this machine, are kept out of an open service."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from serve.errors import ApiError
from serve.server import is_loopback


class Visitors:
    """Refuses what a page of another site asks for through its visitor's browser.

    Such a page cannot read the answers, but it could keep the queue full. A link may still lead
    here from anywhere.

    Args:
        app: What to guard: a service without access keys.
        only_local: Refuse other names than this machine's, too: a page whose own name suddenly
            stands for this machine (DNS rebinding) could read the answers.
    """

    def __init__(self, app: ASGIApp, only_local: bool) -> None:
        self.app = app
        self.only_local = only_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if self.only_local and not is_loopback(_name(headers.get("Host", ""))):
                refusal = ApiError(403, "this service answers as localhost alone", "Host")
                return await refusal.response()(scope, receive, send)
            if _is_from_elsewhere(headers) and not _is_link(scope["method"], headers):
                refusal = ApiError(403, "pages of other sites may not call; set CUSTOS_API_KEYS")
                return await refusal.response()(scope, receive, send)
        await self.app(scope, receive, send)


def _is_from_elsewhere(headers: Headers) -> bool:
    if "Sec-Fetch-Site" in headers:
        return headers["Sec-Fetch-Site"] == "cross-site"
    return "Origin" in headers and headers["Origin"].partition("://")[2] != headers.get("Host")


def _is_link(method: str, headers: Headers) -> bool:
    return method == "GET" and headers.get("Sec-Fetch-Mode") == "navigate"


def _name(host: str) -> str:
    """The name in a ``Host`` header; empty if it is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
