"""Talking to any server that speaks OpenAI's chat completions.

Faults that may pass are tried again: connection faults, passed deadlines, answers that are no chat
completion, and statuses 408, 409, 429 and 5xx, unless the server says ``x-should-retry: false``.
The API key is sent and never shown: no message that leaves this module holds it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import ClassVar, Self, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clients.messages import ChatItem, Decoding, request_body
from judging.errors import CustosError

PASSING_STATUSES = (408, 409, 429)
SHOWN_CHARS = 200

A = TypeVar("A", bound="ReplyBody")


class ServerRefusal(CustosError):
    """The server would refuse every request alike: a wrong key, model or address."""


class RequestRefused(CustosError):
    """The server refuses this request; it may well take others."""


@dataclass(frozen=True)
class ModelServer:
    """A server, the model to ask there, and how patiently.

    Raises:
        CustosError: If the address is no HTTP address or may hold a secret, or if the key has
            characters that cannot be sent.
    """

    base_url: str
    """With the version, as in ``https://api.openai.com/v1``."""
    model: str
    api_key: str = field(default="", repr=False)
    concurrency: int = 8
    """Most requests in flight at once."""
    deadline: float = 300.0
    """Seconds that one try may take, answer included."""
    tries: int = 8
    first_wait: float = 0.5
    """Seconds before the second try, at most; doubled for each further one."""
    longest_wait: float = 60.0
    """Most seconds between two tries, whatever the server asks for."""

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


class Usage(BaseModel):
    """Tokens, as the server counted them."""

    model_config = ConfigDict(frozen=True)

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True)
class Prices:
    """Price of a million tokens, in any currency."""

    prompt: float = 0.0
    completion: float = 0.0

    def cost(self, usage: Usage) -> float:
        """What some tokens cost."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


class Reply(BaseModel):
    """A model's answer. An empty ``text`` means that the model said nothing, not that it failed."""

    model_config = ConfigDict(frozen=True)

    text: str
    finish_reason: str | None = None
    usage: Usage | None = None
    """``None`` if the server did not count."""


class ReplyBody(BaseModel):
    """What a server answers to one kind of request."""

    called: ClassVar[str]
    """To say that an answer is none."""


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(ReplyBody):
    called = "chat completion"
    choices: list[_Choice] = Field(min_length=1)
    usage: Usage | None = None


class _Fault(Exception):
    """One try that came to nothing."""

    def __init__(self, message: str, may_pass: bool = True, wait: float | None = None) -> None:
        super().__init__(message)
        self.may_pass = may_pass
        self.wait = wait


class ServerConnection:
    """Sends requests to one server. Use it as an asynchronous context manager."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        headers = {"Content-Type": "application/json"}
        if server.api_key:
            headers["Authorization"] = f"Bearer {server.api_key}"
        limits = httpx.Limits(max_connections=None)  # waiting for one would count as the server's
        self.gate = asyncio.Semaphore(server.concurrency)
        """For callers with more to ask than the server's settings allow at once."""
        self._http = httpx.AsyncClient(headers=headers, timeout=None, limits=limits)

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.__aexit__(kind, error, traceback)

    async def post(self, path: str, body: bytes, kind: type[A], name: str) -> A:
        """Ask once, trying again as often as the server's settings allow.

        Args:
            path: After the base URL, as in ``chat/completions``.
            body: JSON.
            kind: What the answer must be.
            name: What is asked for, to name in an error.

        Raises:
            ServerRefusal: If the server refuses the key, or has no such model or address.
            RequestRefused: If the server refuses this request.
            CustosError: If the last try failed too.
        """
        number = 1
        while True:
            try:
                return await self._try(path, body, kind)
            except _Fault as fault:
                if not fault.may_pass:
                    raise RequestRefused(f"{name}: {fault}") from None
                if number == self.server.tries:
                    tries = f"{number} tries" if number > 1 else "1 try"
                    raise CustosError(f"{name}: {fault} ({tries})") from None
                wait = self._wait(number, fault.wait)
            await asyncio.sleep(wait)
            number += 1

    async def _try(self, path: str, body: bytes, kind: type[A]) -> A:
        deadline = self.server.deadline
        url = f"{self.server.base_url.rstrip('/')}/{path}"
        try:
            async with asyncio.timeout(deadline):
                response = await self._http.post(url, content=body)
        except TimeoutError:
            raise _Fault(f"no answer within {deadline:g} s") from None
        except httpx.RequestError as error:
            raise _Fault(self._shown(f"{type(error).__name__} {error}")) from None
        self._check(response)
        try:
            return kind.model_validate_json(response.content)
        except ValidationError:
            shown = self._shown(response.text)
            raise _Fault(f"the answer is not a {kind.called}: {shown}") from None

    def _check(self, response: httpx.Response) -> None:
        status, said = response.status_code, self._shown(response.text)
        if status == 200:
            return
        if status == 401:  # the answer may repeat a part of the key, so it is not shown
            raise ServerRefusal(f"{self.server.base_url}: the server refuses the API key (401)")
        if status == 404:
            raise ServerRefusal(
                f"{self.server.base_url}: no model '{self.server.model}' or no such address "
                f"(404): {said}"
            )
        may_pass = status in PASSING_STATUSES or status >= 500
        raise _Fault(
            f"the server answered {status}: {said}",
            may_pass and response.headers.get("x-should-retry") != "false",
            _seconds(response.headers.get("retry-after")),
        )

    def _wait(self, number: int, asked: float | None) -> float:
        jitter = random.random()
        if asked is None:
            wait = self.server.first_wait * 2.0 ** (number - 1) * (1 + jitter) / 2
        else:  # never sooner than asked, and not all at the same moment
            wait = asked + jitter * self.server.first_wait
        return min(wait, self.server.longest_wait)

    def _shown(self, text: str) -> str:
        """Outside text on one line, without the key, cut to a readable length."""
        if self.server.api_key:
            text = text.replace(self.server.api_key, "[API key]")
        return " ".join(text.split())[:SHOWN_CHARS]


class ChatClient(ServerConnection):
    """Asks one model on one server. Use it as an asynchronous context manager."""

    def __init__(self, server: ModelServer, decoding: Decoding) -> None:
        super().__init__(server)
        self.decoding = decoding

    async def complete(self, item: ChatItem) -> Reply:
        """Ask once, trying again as often as the server's settings allow.

        Raises:
            ServerRefusal: If the server refuses the key, or has no such model or address.
            CustosError: Naming the item, if a picture is unreadable, the server refuses the request
                or the last try failed too.
        """
        name = f"item '{item.id}'"
        try:
            body = request_body(item, self.server.model, self.decoding)
        except CustosError as error:
            raise CustosError(f"{name}: {error}") from None
        completion = await self.post("chat/completions", body, _Completion, name)
        choice = completion.choices[0]
        text = choice.message.content or ""
        return Reply(text=text, finish_reason=choice.finish_reason, usage=completion.usage)

    async def complete_all(
        self, items: Iterable[ChatItem], done: Callable[[ChatItem, Reply | CustosError], None]
    ) -> None:
        """Ask for every item, never more at once than the server's settings allow.

        Args:
            items: Read as needed.
            done: Called with each item and its answer, or why there is none, as they come. When
                this is cancelled, it has been called for every answer that arrived.

        Raises:
            ServerRefusal: As soon as the server refuses them all.
        """
        waiting = iter(items)

        async def work() -> None:
            for item in waiting:
                outcome: Reply | CustosError
                try:
                    outcome = await self.complete(item)
                except ServerRefusal:
                    raise
                except CustosError as error:
                    outcome = error
                done(item, outcome)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.server.concurrency):
                    group.create_task(work())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None


def _seconds(retry_after: str | None) -> float | None:
    """Seconds to wait by a ``Retry-After`` header, a number or a date; ``None`` for neither."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return None
