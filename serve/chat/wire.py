"""Replies and errors as OpenAI's clients expect them: JSON objects, or server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from serve.calls.errors import ApiError

RETRY_STATUSES = (408, 409, 429, 503, 504)
"""Statuses after which trying again may help. A request that breaks the judge, or on which it has
no verdict, would be graded again for nothing: OpenAI's clients try three times."""
CODES = {404: "model_not_found", 429: "overloaded", 503: "unavailable", 504: "deadline_exceeded"}


class OpenAIRoute(APIRoute):
    """A route whose errors have OpenAI's form; ``x-should-retry`` marks what would fail again."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the route's handler, so that its errors become answers."""
        handle = super().get_route_handler()

        async def handle_with_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except ApiError as error:
                response = JSONResponse(error_body(error), error.status, error.headers)
                if error.status not in RETRY_STATUSES:
                    response.headers["x-should-retry"] = "false"
                return response

        return handle_with_errors


def error_body(error: ApiError) -> dict[str, Any]:
    """Build ``{"error": {"message", "type", "param", "code"}}``."""
    error_type = "server_error" if error.status >= 500 else "invalid_request_error"
    return {
        "error": {
            "message": error.message,
            "type": "rate_limit_error" if error.status == 429 else error_type,
            "param": error.field,
            "code": CODES.get(error.status),
        }
    }


@dataclass(frozen=True)
class Piece:
    """A piece of a reply."""

    text: str
    logprobs: Mapping[str, float] | None = None
    """Log-probability of every text that could have stood here; ``None``: nothing else could."""


@dataclass(frozen=True)
class Ending:
    """The end of a reply."""

    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    completion_tokens: int

    def usage(self) -> dict[str, int]:
        """Build the object ``usage``."""
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
    num_copies: int = 1
    """How many choices there are, all alike."""
    tool: str | None = None
    """Name of the tool whose arguments the text is."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent beside the reply."""
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def body(self, object_type: str, choices: Sequence[Any], **more: Any) -> dict[str, Any]:
        """Build a reply or a chunk with its choices."""
        return {
            "id": self.id,
            "object": object_type,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
            **more,
        }

    def choices(self, content: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Build the choices: one for each copy."""
        return [{"index": index, **content} for index in range(self.num_copies)]

    def message(self, text: str, *, is_first: bool = True) -> dict[str, Any]:
        """Build what a message, or a piece of one, says: text, or the call of a tool."""
        if self.tool is None:
            return {"content": text}
        function = {"name": self.tool, "arguments": text} if is_first else {"arguments": text}
        call = {"id": f"call_{self.id.removeprefix('chatcmpl-')}", "type": "function"}
        return {"tool_calls": [{"index": 0, **(call if is_first else {}), "function": function}]}

    def finish_reason(self, ending: Ending) -> str:
        """Say how the reply ended."""
        is_call = self.tool and ending.finish_reason == "stop"
        return "tool_calls" if is_call else ending.finish_reason

    def logprobs(self, pieces: list[Piece]) -> dict[str, Any] | None:
        """Build ``logprobs`` of a choice: one entry per piece."""
        if self.num_top is None:
            return None
        entries = []
        for piece in pieces:
            logprobs = piece.logprobs or {piece.text: 0.0}
            top = sorted(logprobs.items(), key=lambda item: -item[1])[: self.num_top]
            token = _token(piece.text, logprobs[piece.text])
            entries.append({**token, "top_logprobs": [_token(*each) for each in top]})
        return {"content": entries, "refusal": None}


def _token(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}


async def whole(reply: Reply) -> tuple[list[Piece], Ending]:
    """Wait for all pieces of a reply and its end."""
    async with aclosing(reply):
        parts = [part async for part in reply]
    ending = parts.pop()
    assert isinstance(ending, Ending)
    return [part for part in parts if isinstance(part, Piece)], ending


async def as_object(frame: ReplyFrame, reply: Reply) -> dict[str, Any]:
    """Collect a reply in one object."""
    pieces, ending = await whole(reply)
    said = frame.message("".join(piece.text for piece in pieces))
    choice = {
        "message": {"role": "assistant", "content": None, "refusal": None, **said},
        "logprobs": frame.logprobs(pieces),
        "finish_reason": frame.finish_reason(ending),
    }
    return frame.body("chat.completion", frame.choices(choice), usage=ending.usage())


async def as_events(
    frame: ReplyFrame, reply: PacedReply, *, with_usage: bool
) -> AsyncGenerator[bytes]:
    """Yield a reply as server-sent events; an error becomes the last of them.

    Where there is nothing to say yet, a comment keeps the connection open. The data are ASCII, as
    many clients take further characters of Unicode (U+2028) for the end of a line.
    ``with_usage`` adds a chunk with the numbers of tokens.
    """

    def event(choices: list[dict[str, Any]], **more: Any) -> bytes:
        body = frame.body("chat.completion.chunk", choices, **more)
        return format_sse_event(data_str=json.dumps(body))

    def choices(delta: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        return frame.choices({"delta": delta, "logprobs": None, "finish_reason": None, **more})

    no_usage: dict[str, Any] = {"usage": None} if with_usage else {}
    role = {"role": "assistant"}
    async with aclosing(reply):
        try:
            async for part in reply:
                if part is None:
                    yield KEEPALIVE_COMMENT
                elif isinstance(part, Ending):
                    yield event(choices({}, finish_reason=frame.finish_reason(part)), **no_usage)
                    if with_usage:
                        yield event([], usage=part.usage())
                else:
                    delta = {**role, **frame.message(part.text, is_first=bool(role))}
                    role = {}  # only the first chunk names it
                    yield event(choices(delta, logprobs=frame.logprobs([part])), **no_usage)
        except ApiError as error:
            yield format_sse_event(data_str=json.dumps(error_body(error)))
            return
    yield format_sse_event(data_str="[DONE]")
