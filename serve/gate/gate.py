"""The gate that every call passes before its route, and every answer after it."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from email.message import Message as Headings
from urllib.parse import urlsplit
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clients.connection import is_loopback
from serve.calls.context import (
    CallBytes,
    HeldBytes,
    access_key,
    call_bytes,
    caller_name,
    request_id,
)
from serve.calls.errors import RETRY_AFTER_S, ApiError
from serve.calls.limits import Limits
from serve.gate.keys import KnownKeys, WrongKeys, key_in
from serve.queue.service import Service

logger = logging.getLogger("custos.serve")

HEALTH_ROUTES = ("/health", "/health/live", "/health/ready")
"""Answered at any time and without an access key."""
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


class Gate:
    """Middleware that refuses calls at once, and gives every answer an id, headers and a log line.

    A client's own id is used if it is short and plain. An exception becomes a 500 that names the
    id; its traceback goes to the log. A call that is cancelled is answered 503. The options are
    those of :func:`serve.app.create_app`.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        keys: KnownKeys | None = None,
        only_local: bool = False,
        log_contents: bool = False,
    ) -> None:
        self.app = app
        self.service = service
        self.keys = keys
        self.only_local = only_local
        self.log_contents = log_contents
        self._wrong_keys = WrongKeys()
        self._held = HeldBytes(service.limits.held_bytes, service.limits.key_queue_share)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        call_id = headers.get(REQUEST_ID_HEADER, "")
        if not REQUEST_ID.fullmatch(call_id):
            call_id = uuid4().hex
        request_id.set(call_id)
        start = time.perf_counter()
        status = 0
        is_kept = self.log_contents and scope["method"] == "POST"
        question, answer = bytearray(), bytearray()

        async def send_part(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answer_headers = MutableHeaders(scope=message)
                answer_headers[REQUEST_ID_HEADER] = call_id
                for name, value in SECURITY_HEADERS.items():
                    answer_headers.setdefault(name, value)
            elif is_kept:
                answer.extend(message.get("body", b""))
            await send(message)

        try:
            if refusal := self._refusal(scope, headers):
                return await refusal(scope, receive, send_part)
            body = _Body(receive, self.service.limits, CallBytes(self._held))
            call_bytes.set(body.num_held)

            async def receive_part() -> Message:
                message = await body.receive()
                question.extend(message.get("body", b""))
                return message

            try:
                await self.app(scope, receive_part if is_kept else body.receive, send_part)
            finally:
                body.num_held.end()
                if is_kept and status == 200:  # as far as it came, if its client has left
                    texts = (text.decode(errors="replace") for text in (question, answer))
                    logger.info("request %s asked %s answered %s", call_id, *texts)
        except ClientDisconnect:
            status = CLIENT_CLOSED
        except asyncio.CancelledError:
            # uvicorn cancels what is left when the service ends, such as slow bodies.
            if status:
                raise
            error = ApiError(503, "the service has stopped", retry_after=RETRY_AFTER_S)
            await error.response()(scope, receive, send_part)
        except Exception:
            logger.exception("request %s failed", call_id)
            if status:
                raise
            error = ApiError(500, f"internal error; the log has it under request {call_id}")
            await error.response()(scope, receive, send_part)
        finally:
            seconds = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", "other")
            caller = caller_name()
            self.service.metrics.count_call(route, status, seconds)
            logger.info(
                "request %s %s %s %d %.0f ms%s",
                call_id,
                scope["method"][:LONGEST_METHOD],
                route,
                status,
                1e3 * seconds,
                f" key {caller}" if caller else "",
            )

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Answer a call that gets no further; ``None`` for others."""
        is_health = scope["path"] in HEALTH_ROUTES
        try:
            if self.keys is None:
                check_site(scope["method"], headers, only_local=self.only_local)
            elif not is_health:
                key = key_in(headers, with_password=not is_from_other_site(headers))
                known = self.keys.find(key)
                if known is None:
                    host = scope["client"][0] if scope["client"] else ""
                    fault = "unknown access key" if key else "no access key"
                    return self._wrong_keys.answer(host, fault)
                access_key.set(known)
            if not (is_health or self.service.judges):
                raise ApiError(503, "the service is starting", retry_after=RETRY_AFTER_S)
            if scope["method"] == "POST":
                _check_kind(headers)
        except ApiError as error:
            return error.response()
        return None


def check_site(method: str, headers: Headers, *, only_local: bool) -> None:
    """Refuse with ``ApiError`` 403 calls of other sites' pages that send no key.

    Such a page cannot read the answers, but could keep the queue full. Another port of this machine
    is another site here, though browsers call it the same. A link from another site is followed.

    ``only_local`` refuses also calls under a name that is not this machine's. A page whose own name
    is suddenly made to stand for this machine (DNS rebinding) could read the answers. starlette's
    ``TrustedHostMiddleware`` does not know that all of 127.0.0.0/8 is this machine.
    """
    try:
        host = urlsplit(f"//{headers.get('Host', '')}").hostname or ""
    except ValueError:
        host = ""
    if only_local and not is_loopback(host):
        raise ApiError(403, "this service answers only under the name localhost", "Host")
    is_link = method == "GET" and headers.get("Sec-Fetch-Mode") == "navigate"
    if is_from_other_site(headers) and not is_link:
        raise ApiError(403, "pages of other sites may not call; set CUSTOS_API_KEYS")


def is_from_other_site(headers: Headers) -> bool:
    """Tell whether a browser says that a page of another origin makes the call."""
    if "Sec-Fetch-Site" in headers:
        return headers["Sec-Fetch-Site"] not in ("same-origin", "none")
    return "Origin" in headers and headers["Origin"].partition("://")[2] != headers.get("Host")


def _check_kind(headers: Headers) -> None:
    """Refuse (415) a body that is not called JSON, or is compressed.

    A page of another site can send a form or plain text through a browser without being asked, but
    not JSON. A small compressed body may unpack to very many bytes.
    """
    sent = Headings()
    sent["Content-Type"] = headers.get("Content-Type", "")
    if sent.get_content_type() != "application/json":
        raise ApiError(415, "send the header 'Content-Type: application/json'", "Content-Type")
    encodings = ",".join(headers.getlist("Content-Encoding")).lower().split(",")
    if any(encoding.strip() not in ("", "identity") for encoding in encodings):
        message = "bodies are not unpacked; send plain JSON without 'Content-Encoding'"
        raise ApiError(415, message, "Content-Encoding")


class _Body:
    """One body as it comes in, limited in bytes and time.

    A body that is too large is read on and thrown away up to twice its limit. A client that is
    still sending would not see the answer otherwise; FastAPI's own ``max_body_size`` does not read
    on, and knows no time.
    """

    def __init__(self, receive: Receive, limits: Limits, num_held: CallBytes) -> None:
        self.num_held = num_held
        self._receive = receive
        self._limits = limits
        self._end = time.monotonic() + limits.body_seconds
        self._is_over = False

    async def receive(self) -> Message:
        """Receive the next part of the body, or what comes after it.

        Raises ``ApiError`` 413 if the body is too large, 408 if it takes too long, 429 if the
        service holds too many bytes.
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
