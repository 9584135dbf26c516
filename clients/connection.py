"""A connection to an OpenAI-compatible server, with limits and new tries.

Faults that may pass are tried again: connection faults, passed deadlines, replies of another form
than expected, and statuses 408, 409, 429 and 5xx, unless the server sends ``x-should-retry:
false``. The API key is sent but never shown: no message of this module contains it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
import time
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, Self, TypeVar

import httpx
from anyio.from_thread import start_blocking_portal
from pydantic import BaseModel, ValidationError

from judging.errors import CustosError, InvalidRequest
from judging.log_lines import one_line

PASSING_STATUSES = (0, 408, 409, 429)
"""Statuses of faults that may pass; 0 where there is no reply, or one of another form."""
TOO_MUCH_STATUSES = (408, 413, 504)
"""Statuses that say that a call is too large, or takes too long to send or to answer."""
SHOWN_CHARS = 200
MOST_BYTES = 64 * 2**20
"""Most bytes of a reply that is read; a server may send without an end."""

BodyT = TypeVar("BodyT", bound="ReplyBody")
HttpT = TypeVar("HttpT", httpx.AsyncClient, httpx.Client)
ResultT = TypeVar("ResultT")


class ServerRefusal(CustosError):
    """Refusal of every request alike: a wrong key, model or address."""


class RequestRefused(InvalidRequest):
    """Refusal of one request by a server that may take others."""


class TooMuch(RequestRefused):
    """Refusal of a call that may be answered in smaller parts."""


@dataclass(frozen=True)
class ModelServer:
    """A server, the model to ask there, and limits on requests and tries.

    Raises ``CustosError`` if the address is none, or it or the key cannot or should not be sent.
    """

    base_url: str
    """Address with the version, as in ``https://api.openai.com/v1``."""
    model: str
    api_key: str = field(default="", repr=False)
    key_help: str = "--key-env names the variable that holds the key"
    """What to do about a refused key, for the error."""
    concurrency: int = 8
    """Most requests in flight at once."""
    deadline: float = 300.0
    """Seconds that one try may take, its reply included."""
    tries: int = 8
    busy_tries: int | None = None
    """Tries while the server says that it is busy (429); ``None``: as many as others."""
    first_wait: float = 0.5
    """Seconds before the second try, at most; doubled for each further one."""
    longest_wait: float = 60.0
    """Most seconds between two tries, even if the server asks for more."""

    def __post_init__(self) -> None:
        try:
            url = httpx.URL(self.base_url)
        except httpx.InvalidURL:
            raise CustosError("base URL: not an address") from None
        if url.userinfo or url.query:
            raise CustosError("base URL: holds a password or a query; give an API key instead")
        if url.scheme not in ("http", "https") or not url.host:
            raise CustosError(f"base URL '{self.base_url}': expected http:// or https://")
        if not all("!" <= character <= "~" for character in self.api_key):
            raise CustosError("API key: holds characters that cannot be sent (spaces, line ends)")

    def key_refusal(self) -> ServerRefusal:
        """Make the error for the status 401, without the key."""
        problem = "refuses the API key" if self.api_key else "needs an API key"
        return ServerRefusal(f"{self.base_url}: the server {problem} (401); {self.key_help}")


class ReplyBody(BaseModel):
    """The JSON body of a reply to one kind of request."""

    called: ClassVar[str]
    """Name of such a body in error messages."""


class _Fault(Exception):
    """The failure of one try, with the status that a reply had or would have had."""

    def __init__(self, message: str, status: int = 0, headers: httpx.Headers | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or httpx.Headers()

    @property
    def may_pass(self) -> bool:
        """Tell whether a later try may succeed."""
        is_passing = self.status in PASSING_STATUSES or self.status >= 500
        return is_passing and self.headers.get("x-should-retry") != "false"


class ServerConnection:
    """Sends requests to one server. Use it as an asynchronous context manager."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        # Of a compressed reply a few bytes may become gigabytes.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if server.api_key:
            headers["Authorization"] = f"Bearer {server.api_key}"
        # Without a limit: time spent waiting for a connection would count as the server's time.
        limits = httpx.Limits(max_connections=None)
        self.gate = asyncio.Semaphore(server.concurrency)
        """Semaphore for callers that ask for more at once than the server's settings allow."""
        self._http = http_client(
            httpx.AsyncClient, server.base_url, headers=headers, timeout=None, limits=limits
        )

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._http.__aexit__(*exception)

    async def get(self, path: str, seconds: float) -> httpx.Response:
        """Read a path once, whatever its status.

        Raises ``httpx.TransportError`` if no whole reply comes in time, and ``httpx.DecodingError``
        if it is one that is not read.
        """
        try:
            return await self._reply("GET", path, seconds)
        except TimeoutError:
            raise httpx.ReadTimeout(f"no answer within {seconds:g} s") from None

    async def _reply(
        self, method: str, path: str, seconds: float, content: bytes | None = None
    ) -> httpx.Response:
        """Read a whole reply within a time; ``httpx.DecodingError`` if large or compressed."""
        async with (
            asyncio.timeout(seconds),
            self._http.stream(method, path, content=content) as reply,
        ):
            if (encoding := reply.headers.get("content-encoding", "identity")) != "identity":
                encoding = self.redacted(encoding)
                raise httpx.DecodingError(f"the reply is compressed ({encoding}), unasked")
            body = bytearray()
            async for chunk in reply.aiter_raw():
                body += chunk
                if len(body) > MOST_BYTES:
                    most = f"{MOST_BYTES // 2**20} MiB"
                    raise httpx.DecodingError(f"the reply has more than {most}")
            return httpx.Response(
                reply.status_code,
                headers=reply.headers,
                content=bytes(body),
                request=reply.request,
                extensions=reply.extensions,
            )

    async def post(
        self, path: str, body: bytes, body_type: type[BodyT], name: str, *, has_parts: bool = False
    ) -> BodyT:
        """Send JSON and return the reply, after as many tries as the settings allow.

        ``name`` is that of the request in error messages; ``has_parts`` says that the caller can
        send the call in smaller parts.

        Raises:
            ServerRefusal: If the server refuses the key, or has no such model or address.
            TooMuch: If it has parts, and is too large or takes too long.
            RequestRefused: If the server refuses this request.
            CustosError: If the last try failed too.
        """
        number = 1
        while True:
            try:
                return await self._try(path, body, body_type)
            except _Fault as fault:
                if has_parts and fault.status in TOO_MUCH_STATUSES:
                    raise TooMuch(f"{name}: {fault}") from None
                if not fault.may_pass:
                    raise RequestRefused(f"{name}: {fault}") from None
                is_busy = fault.status == httpx.codes.TOO_MANY_REQUESTS
                if number >= ((is_busy and self.server.busy_tries) or self.server.tries):
                    tries = f"{number} tries" if number > 1 else "1 try"
                    raise CustosError(f"{name}: {fault} ({tries})") from None
                wait = self._wait(number, _seconds(fault.headers.get("retry-after", "")))
            await asyncio.sleep(wait)
            number += 1

    async def _try(self, path: str, body: bytes, body_type: type[BodyT]) -> BodyT:
        deadline, base_url = self.server.deadline, self.server.base_url
        try:
            response = await self._reply("POST", path, deadline, body)
        except TimeoutError:
            message = f"no answer within {deadline:g} s"
            raise _Fault(message, httpx.codes.REQUEST_TIMEOUT) from None
        except httpx.DecodingError as error:
            raise _Fault(str(error), httpx.codes.REQUEST_ENTITY_TOO_LARGE) from None
        except httpx.RequestError as error:
            raise _Fault(self.redacted(f"{type(error).__name__} {error}")) from None
        status = response.status_code
        # As UTF-8 whatever the reply says: some of Python's encodings raise other errors.
        text = self.redacted(response.content.decode(errors="replace"))
        if status == 401:  # the reply may repeat a part of the key, so it is not shown
            raise self.server.key_refusal()
        if status == 404:
            model = self.server.model and f"no model '{self.server.model}' or "
            raise ServerRefusal(f"{base_url}: {model}no such address (404): {text}")
        if response.has_redirect_location:
            address = self.redacted(response.headers["location"])
            raise ServerRefusal(
                f"{base_url}: the server redirects to '{address}' ({status}); give the address of "
                "that server"
            )
        if status != 200:
            raise _Fault(f"the server answered {status}: {text}", status, response.headers)
        try:
            return body_type.model_validate_json(response.content)
        except ValidationError:
            raise _Fault(f"the answer is not a {body_type.called}: {text}") from None

    def _wait(self, number: int, requested: float | None) -> float:
        jitter = random.random()
        if requested is None:
            wait = self.server.first_wait * 2.0 ** (number - 1) * (1 + jitter) / 2
        else:  # not sooner than the server asks, and not all requests at the same moment
            wait = requested + jitter * self.server.first_wait
        return min(wait, self.server.longest_wait)

    def redacted(self, text: str) -> str:
        """Return text from outside on one line, without the key, cut to a readable length."""
        if self.server.api_key:
            text = text.replace(self.server.api_key, "[API key]")
        return one_line(" ".join(text.split())[:SHOWN_CHARS])


def http_client(kind: type[HttpT], base_url: str, **options: Any) -> HttpT:
    """Make a client of httpx for the paths after an address.

    Certificates, which take a while to read, are for https alone. The proxies that the environment
    names are not asked for this machine: they cannot reach it. Raises ``CustosError`` for a proxy
    that cannot be used.
    """
    server = httpx.URL(base_url)
    verify = httpx.create_ssl_context() if server.scheme == "https" else False
    try:
        trust_env = not is_loopback(server.host)
        return kind(base_url=base_url, verify=verify, trust_env=trust_env, **options)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise CustosError(
            f"{base_url}: the proxy that the environment names (ALL_PROXY, HTTP_PROXY, "
            f"HTTPS_PROXY) cannot be used: {error}; unset it, or name the host in NO_PROXY"
        ) from None


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host. Of names only ``localhost`` is trusted."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _seconds(retry_after: str) -> float | None:
    """Return the seconds of a ``Retry-After`` header, a number or a date; ``None`` for neither."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def run_coroutine(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end, in another thread if this one runs a loop, as in a notebook.

    What interrupts this thread cancels the coroutine.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with start_blocking_portal() as other_thread:
        result: ResultT = other_thread.call(lambda: work)
        return result


async def run_together(works: Iterable[Coroutine[Any, Any, ResultT]]) -> list[ResultT]:
    """Run coroutines side by side; the first error stops the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
