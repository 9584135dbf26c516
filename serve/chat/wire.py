"""Replies as they go over the wire: one JSON object, or server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from serve.chat.errors import error_body
from serve.errors import ApiError

DONE = "data: [DONE]\n\n"


@dataclass(frozen=True)
class Piece:
    """A piece of a reply."""

    text: str
    logprobs: Mapping[str, float] | None = None
    """Log-probability of every word that could have stood here; ``None``: nothing else could."""
    word: str = ""
    """Which of them does."""


@dataclass(frozen=True)
class Ending:
    """How a reply ended."""

    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    completion_tokens: int


Reply = AsyncGenerator[Piece | Ending]


@dataclass(frozen=True)
class Envelope:
    """What every reply and every chunk of it carries."""

    model: str
    fingerprint: str
    num_top: int | None
    """How many alternatives to list with each piece; ``None``: no log-probabilities at all."""
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def fields(self, kind: str) -> dict[str, Any]:
        """The common fields."""
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }

    def logprobs(self, pieces: list[Piece]) -> dict[str, Any] | None:
        """``logprobs`` of a choice: one entry a piece."""
        if self.num_top is None:
            return None
        return {"content": [_entry(piece, self.num_top) for piece in pieces], "refusal": None}


async def whole(envelope: Envelope, reply: Reply) -> dict[str, Any]:
    """The reply as one object."""
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
        "logprobs": envelope.logprobs(pieces),
        "finish_reason": ending.finish_reason,
    }
    return {
        **envelope.fields("chat.completion"),
        "choices": [choice],
        "usage": _usage(ending),
    }


async def begun(reply: Reply) -> Reply:
    """A reply that has its first piece, so that what fails before it still has a status."""
    first = await anext(reply)

    async def joined() -> Reply:
        async with aclosing(reply):
            yield first
            async for part in reply:
                yield part

    return joined()


async def events(envelope: Envelope, reply: Reply, *, with_usage: bool) -> AsyncGenerator[str]:
    """The reply as server-sent events; a fault after the first ends it with an error event."""

    def event(choices: list[dict[str, Any]], **more: Any) -> str:
        chunk = {**envelope.fields("chat.completion.chunk"), "choices": choices, **more}
        return _event(chunk)

    def choice(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None, **more}

    unknown: dict[str, Any] = {"usage": None} if with_usage else {}
    async with aclosing(reply):
        try:
            is_first = True
            async for part in reply:
                if isinstance(part, Ending):
                    yield event([choice({}, finish_reason=part.finish_reason)], **unknown)
                    if with_usage:
                        yield event([], usage=_usage(part))
                    continue
                delta = {"content": part.text}
                if is_first:
                    delta = {"role": "assistant", **delta}
                    is_first = False
                yield event([choice(delta, logprobs=envelope.logprobs([part]))], **unknown)
        except ApiError as error:
            yield _event(error_body(error))
            return
    yield DONE


def _event(body: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"


def _usage(ending: Ending) -> dict[str, int]:
    return {
        "prompt_tokens": ending.prompt_tokens,
        "completion_tokens": ending.completion_tokens,
        "total_tokens": ending.prompt_tokens + ending.completion_tokens,
    }


def _entry(piece: Piece, num_top: int) -> dict[str, Any]:
    logprobs = piece.logprobs or {piece.text: 0.0}
    best = sorted(logprobs.items(), key=lambda item: -item[1])[:num_top]
    return {
        **_token(piece.text, logprobs[piece.word or piece.text]),
        "top_logprobs": [_token(word, logprob) for word, logprob in best],
    }


def _token(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}
