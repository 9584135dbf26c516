"""A client of chat models: conversations to answers, many at once, with their price.

Replies of ``POST /completions`` and ``POST /chat/completions`` are checked here, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from clients.connection import (
    ModelServer,
    ReplyBody,
    ServerConnection,
    ServerRefusal,
    run_coroutine,
    run_together,
)
from clients.messages import ChatItem, Decoding, request_body
from judging.errors import CustosError

TokenCount = Annotated[int, Field(ge=0, le=2**53)]
"""A count that a price can be multiplied with."""
Logprob = Annotated[float, Field(ge=-1e9, le=1, allow_inf_nan=False)]
"""A log-probability; some servers write -9999 for none, and rounding may make one positive."""


class Usage(BaseModel):
    """Tokens, as the server counted them."""

    model_config = ConfigDict(frozen=True)

    prompt_tokens: TokenCount = 0
    completion_tokens: TokenCount = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


class _TextLogprobs(BaseModel):
    top_logprobs: list[dict[str, Logprob]] = []


class TextChoice(BaseModel):
    """One text of ``POST /completions``."""

    text: str
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    logprobs: _TextLogprobs | None = None

    def by_token_id(self) -> dict[int, float]:
        """Return log-probabilities at the first token drawn, empty if none came by token id."""
        logprobs = self.logprobs.top_logprobs if self.logprobs else []
        return {token_id(token): value for token, value in (logprobs or [{}])[0].items()}


class Completions(ReplyBody):
    """``POST /completions``: one choice per prompt, in order."""

    called: ClassVar[str] = "completion"
    choices: list[TextChoice] = Field(min_length=1)


class TokenLogprob(BaseModel):
    """A token, as text or as ``token_id:17``, with its log-probability."""

    token: str
    logprob: Logprob


class ChatToken(TokenLogprob):
    """A token of an answer, with the likeliest tokens in its place; it may be among them or not."""

    top_logprobs: list[TokenLogprob] = []


class _ChatLogprobs(BaseModel):
    content: list[ChatToken] | None = None


class _ChatMessage(BaseModel):
    content: str | None = None


class ChatChoice(BaseModel):
    """One answer of ``POST /chat/completions``."""

    message: _ChatMessage
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    logprobs: _ChatLogprobs | None = None

    @property
    def text(self) -> str:
        """The answer, empty if there is none."""
        return self.message.content or ""


class ChatCompletion(ReplyBody):
    """``POST /chat/completions``, with or without log-probabilities."""

    called: ClassVar[str] = "chat completion"
    choices: list[ChatChoice] = Field(min_length=1)
    usage: Usage | None = None
    prompt_token_ids: list[int] | None = None

    def tokens(self) -> list[ChatToken]:
        """Return the tokens drawn, with their alternatives.

        Raises:
            CustosError: If the server gave none.
        """
        logprobs = self.choices[0].logprobs
        if logprobs is None or not logprobs.content:
            raise CustosError("the server gives no log-probabilities; a judge cannot do without")
        return logprobs.content


def token_id(token: str) -> int:
    """Read the id in vLLM's ``token_id:17``; -1 for a token that is given as text."""
    number = re.fullmatch(r"token_id:(\d{1,9})", token)
    return int(number[1]) if number else -1


@dataclass(frozen=True)
class Prices:
    """Price of a million tokens, in any currency."""

    prompt: float = 0.0
    completion: float = 0.0

    def cost(self, usage: Usage) -> float:
        """Compute the price of some tokens."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


class Reply(BaseModel):
    """A model's answer. Its ``text`` is empty if the model wrote nothing; that is no failure."""

    model_config = ConfigDict(frozen=True)

    text: str
    finish_reason: str | None = None
    usage: Usage | None = None
    """``None`` if the server did not count."""


class ChatClient(ServerConnection):
    """Asks one model on one server. Use it as an asynchronous context manager."""

    def __init__(self, server: ModelServer, decoding: Decoding) -> None:
        super().__init__(server)
        self.decoding = decoding

    async def complete(self, item: ChatItem) -> Reply:
        """Ask for the answer to one conversation, as often as the settings allow.

        Raises:
            ServerRefusal: If the server refuses the key, or has no such model or address.
            CustosError: If a picture is unreadable, the server refuses the request or the last try
                fails; the message names the item.
        """
        name = f"item '{item.id}'"
        try:
            body = request_body(item, self.server.model, self.decoding)
        except CustosError as error:
            raise CustosError(f"{name}: {error}") from None
        completion = await self.post("chat/completions", body, ChatCompletion, name)
        choice = completion.choices[0]
        return Reply(text=choice.text, finish_reason=choice.finish_reason, usage=completion.usage)

    async def complete_all(
        self, items: Iterable[ChatItem], done: Callable[[ChatItem, Reply | CustosError], None]
    ) -> None:
        """Ask for every item, never more at once than the server's settings allow.

        ``done`` is called with each item and its answer, or why there is none, as they come. If
        this method is cancelled, it has been called for every answer that arrived.

        Raises:
            ServerRefusal: As soon as the server refuses all items alike.
        """
        remaining = iter(items)

        async def work() -> None:
            for item in remaining:
                outcome: Reply | CustosError
                try:
                    outcome = await self.complete(item)
                except ServerRefusal:
                    raise
                except CustosError as error:
                    outcome = error
                done(item, outcome)

        await run_together(work() for _ in range(self.server.concurrency))


def ask_all(
    server: ModelServer,
    decoding: Decoding,
    items: Iterable[ChatItem],
    done: Callable[[ChatItem, Reply | CustosError], None],
) -> None:
    """Ask a server for every item, as :meth:`ChatClient.complete_all`."""

    async def ask() -> None:
        async with ChatClient(server, decoding) as client:
            await client.complete_all(items, done)

    run_coroutine(ask())
