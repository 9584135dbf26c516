"""Replies as they are sent: one JSON object, or server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from serve.chat.errors import error_body
from serve.errors import ApiError


@dataclass(frozen=True)
class Piece:
    """A piece of a reply."""

    text: str
    logprobs: Mapping[str, float] | None = None
    """Log-probability of every word that could have stood here; ``None``: nothing else could."""
    word: str = ""
    """The word among them that stands here."""


@dataclass(frozen=True)
class Ending:
    """The end of a reply."""

    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    completion_tokens: int

    def usage(self) -> dict[str, int]:
        """Return the object ``usage``."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }


Reply = AsyncGenerator[Piece | Ending]
PacedReply = AsyncGenerator[Piece | Ending | None]
"""A reply with ``None`` where nothing has come for a while."""


@dataclass(frozen=True)
class ReplyFrame:
    """Fields of every reply, and of every chunk of a streamed one."""

    model: str
    fingerprint: str
    num_top: int | None
    """How many alternatives to list with each piece; ``None``: no log-probabilities at all."""
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def body(self, object_type: str, choices: Sequence[Any], **more: Any) -> dict[str, Any]:
        """Return a reply or a chunk with its choices."""
        return {
            "id": self.id,
            "object": object_type,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
            **more,
        }

    def logprobs(self, pieces: list[Piece]) -> dict[str, Any] | None:
        """Return ``logprobs`` of a choice: one entry per piece."""
        if self.num_top is None:
            return None
        return {"content": [_entry(piece, self.num_top) for piece in pieces], "refusal": None}


async def as_object(frame: ReplyFrame, reply: Reply) -> dict[str, Any]:
    """Return a reply as one object."""
    pieces: list[Piece] = []
    ending: Ending | None = None
    async with aclosing(reply):
        async for part in reply:
            if isinstance(part, Ending):
                ending = part
            else:
                pieces.append(part)
    assert ending
    message = {
        "role": "assistant",
        "content": "".join(piece.text for piece in pieces),
        "refusal": None,
    }
    choice = {
        "index": 0,
        "message": message,
        "logprobs": frame.logprobs(pieces),
        "finish_reason": ending.finish_reason,
    }
    return frame.body("chat.completion", [choice], usage=ending.usage())


async def with_first_part(reply: PacedReply) -> PacedReply:
    """Wait for the first part of a reply, so that an error before it still has its status.

    Returns:
        The reply, with that part.
    """
    first = await anext(reply)

    async def parts() -> PacedReply:
        async with aclosing(reply):
            yield first
            async for part in reply:
                yield part

    return parts()


async def as_events(
    frame: ReplyFrame, reply: PacedReply, *, with_usage: bool
) -> AsyncGenerator[bytes]:
    """Yield a reply as server-sent events; an error becomes the last of them.

    Where there is nothing to say yet, a comment keeps the connection open.

    Args:
        frame: Put around each chunk.
        reply: Its pieces and its ending.
        with_usage: Add a chunk with the numbers of tokens.
    """

    def event(choices: list[dict[str, Any]], **more: Any) -> bytes:
        return _event(frame.body("chat.completion.chunk", choices, **more))

    def choice(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None, **more}

    no_usage: dict[str, Any] = {"usage": None} if with_usage else {}
    role = {"role": "assistant"}
    async with aclosing(reply):
        try:
            async for part in reply:
                if part is None:
                    yield KEEPALIVE_COMMENT
                    continue
                if isinstance(part, Ending):
                    yield event([choice({}, finish_reason=part.finish_reason)], **no_usage)
                    if with_usage:
                        yield event([], usage=part.usage())
                    continue
                delta = {**role, "content": part.text}
                role = {}  # only the first chunk names it
                yield event([choice(delta, logprobs=frame.logprobs([part]))], **no_usage)
        except ApiError as error:
            yield _event(error_body(error))
            return
    yield format_sse_event(data_str="[DONE]")


def _event(body: Mapping[str, Any]) -> bytes:
    # In ASCII, as many clients take further characters of Unicode (U+2028) for the end of a line.
    return format_sse_event(data_str=json.dumps(body))


def _entry(piece: Piece, num_top: int) -> dict[str, Any]:
    logprobs = piece.logprobs or {piece.text: 0.0}
    top = sorted(logprobs.items(), key=lambda item: -item[1])[:num_top]
    return {
        **_token(piece.text, logprobs[piece.word or piece.text]),
        "top_logprobs": [_token(word, logprob) for word, logprob in top],
    }


def _token(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}
