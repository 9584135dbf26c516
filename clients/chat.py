"""A client of chat models: conversations to answers, many at once, with their price."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from clients.completions import ChatCompletion, Usage
from clients.connection import ModelServer, ServerConnection, ServerRefusal
from clients.messages import ChatItem, Decoding, request_body
from judging.errors import CustosError


@dataclass(frozen=True)
class Prices:
    """Price of a million tokens, in any currency."""

    prompt: float = 0.0
    completion: float = 0.0

    def cost(self, usage: Usage) -> float:
        """Return the price of some tokens."""
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
        """Return the answer to one conversation, after as many tries as the settings allow.

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

        Args:
            items: Items to ask, read as needed.
            done: Called with each item and its answer, or why there is none, as they come. If this
                method is cancelled, it has been called for every answer that arrived.

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

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.server.concurrency):
                    group.create_task(work())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
