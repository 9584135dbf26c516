"""The gate that every call passes before its route, and its access keys."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import math
import os
import re
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from email.message import Message as Headings
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clients.connection import is_loopback
from judging import CustosError
from serve.calls.context import (
    AccessKey,
    CallBytes,
    HeldBytes,
    access_key,
    call_bytes,
    caller_name,
    request_id,
)
from serve.calls.errors import RETRY_AFTER_S, ApiError
from serve.calls.limits import Limits
from serve.gate.connections import address_group
from serve.queue.service import Service

MIN_KEY_CHARS = 16
NAMED_KEY = re.compile(r"([A-Za-z0-9._-]{1,64}):\s*([0-9a-fA-F]{64})")
BARE_KEY = re.compile(r"[!-~]+")
"""Printable ASCII without spaces, as headers hold it."""
VARIABLE = "CUSTOS_API_KEYS"
MAX_TRIES = 60
"""Calls without a known key that an address may make at once; each comes back after an equal share
of ``TRIES_S``."""
TRIES_S = 60.0
MAX_ADDRESSES = 10_000
"""Addresses that are remembered."""
HOW_TO_SEND = (
    "send the header 'Authorization: Bearer KEY'; the commands and clients of custos send the key "
    "that the environment variable CUSTOS_KEY holds"
)


class KnownKeys:
    """The keys that a service knows; a file of keys is read again when it has changed."""

    def __init__(self, keys: Sequence[AccessKey], file: Path | None = None) -> None:
        self.keys = tuple(keys)
        self._file = file
        self._version = _version(file) if file else None

    def find(self, key: str) -> AccessKey | None:
        """Look up a key that a caller sent; ``None`` if it is unknown."""
        if self._file is not None and _version(self._file) != self._version:
            self.read_again()
        digest = _digest(key)
        # Every key is compared, so that the time taken does not tell which of them it is.
        matches = [known for known in self.keys if hmac.compare_digest(digest, known.sha256)]
        # A file of hashes may hold that of a short key.
        return matches[0] if matches and len(key) >= MIN_KEY_CHARS else None

    def read_again(self) -> None:
        """Read the file, if there is one; keep the keys if it cannot be used."""
        if self._file is None:
            return
        self._version = _version(self._file)
        try:
            self.keys = read_key_file(self._file)
        except CustosError as error:
            logger.error("%s; the keys that were read before stay valid", error)
        else:
            names = ", ".join(key.name for key in self.keys)
            logger.info("access keys read again: %s", names)


def read_keys(file: Path | None) -> KnownKeys | None:
    """Read access keys from a file, or from ``CUSTOS_API_KEYS``, divided by commas.

    ``None`` if there are none. Raises ``CustosError`` as :func:`read_key_file`.
    """
    if file:
        return KnownKeys(read_key_file(file), file)
    entries = os.environ.get(VARIABLE, "").split(",")
    keys = parse_keys((entry, VARIABLE) for entry in entries if entry.strip())
    return KnownKeys(keys) if keys else None


def read_key_file(file: Path) -> tuple[AccessKey, ...]:
    """Read the keys of a file: one on each line, below comments that begin with ``#``.

    Raises ``CustosError`` if the file cannot be read or holds no key, or a line is no key.
    """
    option = f"--api-key-file '{file}'"
    try:
        lines = file.read_bytes().decode(errors="surrogateescape").splitlines()
    except OSError:
        raise CustosError(f"{option}: cannot be read") from None
    warn_of_mode(option, file)
    keys = parse_keys(
        (line, f"{option} line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    )
    if not keys:
        raise CustosError(f"{option}: holds no key")
    return keys


def parse_keys(entries: Iterable[tuple[str, str]]) -> tuple[AccessKey, ...]:
    """Read keys, each ``NAME: SHA-256 of the key`` or the key itself, which is then numbered.

    Each comes with the place that errors name; they never show the entry. Raises ``CustosError`` if
    an entry is no key or is easily guessed, or a name or key occurs twice.
    """
    keys: list[AccessKey] = []
    first: dict[str | bytes, str] = {}
    """Where each name and each digest stands first."""
    for number, (entry, location) in enumerate(entries, 1):
        text = entry.strip()
        if named := NAMED_KEY.fullmatch(text):
            keys.append(AccessKey(named[1], bytes.fromhex(named[2])))
        elif len(text) < MIN_KEY_CHARS:
            raise CustosError(
                f"{location}: an access key needs at least {MIN_KEY_CHARS} characters; "
                "make one with: openssl rand -hex 32"
            )
        elif ":" in text or text.startswith("#") or not BARE_KEY.fullmatch(text):
            raise CustosError(
                f"{location}: expected NAME: and the SHA-256 of a key in 64 hex digits, or a key "
                "of printable ASCII without spaces and colons that does not begin with #"
            )
        else:
            keys.append(AccessKey(f"key-{number}", _digest(text)))
        key = keys[-1]
        for value, what in ((key.name, f"the name '{key.name}'"), (key.sha256, "this access key")):
            if value in first:
                raise CustosError(
                    f"{location}: {what} stands already in {first[value]}; remove one of them"
                )
            first[value] = location
    return tuple(keys)


def warn_of_mode(option: str, file: Path) -> None:
    """Log a warning if other users of this machine can read or change a file of secrets."""
    if file.stat().st_mode & 0o077:
        logger.warning("%s: other users may open it; chmod 600 '%s'", option, file)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogateescape")).digest()


def _version(file: Path) -> tuple[int, ...] | None:
    """Read what changes when a file does; ``None`` if it is not there.

    The time of the last change of its status cannot be set back, unlike that of its content.
    """
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino


class WrongKeys:
    """Answers to calls without a known key: 401, or 429 to an address that has made many.

    A known key is always let in. Otherwise one client could shut out all that share its address,
    as behind a proxy.
    """

    def __init__(self) -> None:
        # When an address has all its tries again: the one that called last comes last.
        self._full_at = OrderedDict[str, float]()

    def answer(self, host: str, fault: str) -> Response:
        """Answer a call from a host, and say what is wrong with its key."""
        address = address_group(host)
        now = time.monotonic()
        cost = TRIES_S / MAX_TRIES
        full_at = max(now, self._full_at.pop(address, now))
        is_refused = full_at + cost > now + TRIES_S
        self._full_at[address] = full_at if is_refused else full_at + cost
        if len(self._full_at) > MAX_ADDRESSES:
            self._full_at.popitem(last=False)
        if is_refused:
            message = f"too many calls without a known key from this address: {HOW_TO_SEND}"
            return ApiError(429, message, retry_after=math.ceil(cost), closes=True).response()
        response = ApiError(401, f"{fault}: {HOW_TO_SEND}").response()
        # In two headers, as Chromium does not find Basic after another scheme.
        response.headers["WWW-Authenticate"] = 'Basic realm="custos"'
        response.headers.append("WWW-Authenticate", "Bearer")
        return response


def key_in(headers: Headers, *, with_password: bool) -> str:
    """Read the key that a call sends: ``Authorization: Bearer KEY``; empty if none.

    ``with_password`` takes a key as the password of HTTP Basic too, for which browsers ask.
    """
    scheme, _, value = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic" and with_password:
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    return ""


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
        access_key.set(None)  # not that of the call before, if one connection pipelines them
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
            content = message.get("body", b"")
            if is_kept:
                answer.extend(content)
            num_held = call_bytes.get()
            if content and num_held:
                # It is in memory until the client has read it, for which the next part waits.
                with suppress(ApiError):  # it is sent; other calls of the key find less room
                    num_held.take(len(content))
                await send({**message, "more_body": True})
                if message.get("more_body", False):
                    return
                message = {"type": "http.response.body"}
            await send(message)

        try:
            refusal = self._refusal(scope, headers)
            await self.service.readers.turn()
            if refusal:
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
