"""Pages of other sites, which a browser on this machine may show, cannot use an open service."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from clients.connection import is_loopback
from serve.errors import ApiError


class RefuseOtherSites:
    """Middleware that refuses calls which a page of another site makes through a browser.

    Such a page cannot read the answers, but could keep the queue full. Another port of this machine
    is another site here, though browsers call it the same. A link from another site is followed.

    Args:
        app: A service without access keys.
        only_local: Refuse also calls under a name that is not this machine's. A page whose own name
            is suddenly made to stand for this machine (DNS rebinding) could read the answers.
            starlette's ``TrustedHostMiddleware`` does not know that all of 127.0.0.0/8 is this
            machine, and answers in another form than all other errors.
    """

    def __init__(self, app: ASGIApp, only_local: bool) -> None:
        self.app = app
        self.only_local = only_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            refusal: ApiError | None = None
            if self.only_local and not is_loopback(_host_name(headers.get("Host", ""))):
                refusal = ApiError(
                    403, "this service answers only under the name localhost", "Host"
                )
            elif is_from_other_site(headers) and not _is_link(scope["method"], headers):
                refusal = ApiError(403, "pages of other sites may not call; set CUSTOS_API_KEYS")
            if refusal:
                return await refusal.response()(scope, receive, send)
        await self.app(scope, receive, send)


def is_from_other_site(headers: Headers) -> bool:
    """Return whether a browser says that a page of another origin makes the call."""
    if "Sec-Fetch-Site" in headers:
        return headers["Sec-Fetch-Site"] not in ("same-origin", "none")
    return "Origin" in headers and headers["Origin"].partition("://")[2] != headers.get("Host")


def _is_link(method: str, headers: Headers) -> bool:
    return method == "GET" and headers.get("Sec-Fetch-Mode") == "navigate"


def _host_name(host: str) -> str:
    """Return the name in a ``Host`` header; empty if it is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
