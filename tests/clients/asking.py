"""One request to a fake server with a key."""

from __future__ import annotations

import asyncio
from typing import Any

from clients.chat import ChatClient, Reply
from clients.connection import ModelServer
from clients.messages import ChatItem, Decoding
from judging.messages import Message
from tests.clients.fake_server import FakeServer

KEY = "sk-do-not-show-me-0123456789"


def item(id: str = "q1", text: str = "Hello?", images: tuple[str, ...] = ()) -> ChatItem:
    return ChatItem(id=id, messages=(Message(role="user", text=text, images=images),))


def server(fake: FakeServer, **options: Any) -> ModelServer:
    given: dict[str, Any] = {"api_key": KEY, "first_wait": 0.01, "tries": 3, "deadline": 20.0}
    return ModelServer(fake.url, "m", **(given | options))


def ask(to: ModelServer, what: ChatItem | None = None, **decoding: Any) -> Reply:
    async def once() -> Reply:
        async with ChatClient(to, Decoding(**decoding)) as client:
            return await client.complete(what or item())

    return asyncio.run(once())
