"""Free text from a plain backbone, asked for by its own name."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from serve.chat.completion import Completion, Message
from serve.chat.messages import ChatRequest
from serve.chat.wire import Ending, Piece, Reply
from serve.errors import ApiError
from serve.limits import MAX_SEED
from serve.queue.service import Service

if TYPE_CHECKING:
    from judging.scoring.engine import Sampling

MAX_NEW_TOKENS = 4096
"""A larger ``max_tokens`` is taken as this; a reply that reaches it says ``length``."""
DEFAULT_NEW_TOKENS = 512


def sampling_of(asked: ChatRequest) -> tuple[Sampling, str | None]:
    """How a text is to be drawn, and what ends it.

    Raises:
        ApiError: 422 for what would change the text and cannot be done.
    """
    from judging.scoring.engine import Sampling

    if asked.wants_json:
        raise ApiError(422, "this model cannot promise a JSON object", "response_format")
    for name in ("presence_penalty", "frequency_penalty"):
        if getattr(asked, name):
            raise ApiError(422, "not supported here", name)
    if asked.logprobs:
        raise ApiError(422, "only judges give log-probabilities, those of their labels", "logprobs")
    if not 0 <= (asked.seed or 0) <= MAX_SEED:
        raise ApiError(422, f"expected 0 to {MAX_SEED}", "seed")
    stops = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
    if len(stops) > 1 or "" in stops:
        raise ApiError(422, "expected one text that is not empty", "stop")
    most = asked.max_completion_tokens or asked.max_tokens or DEFAULT_NEW_TOKENS
    sampling = Sampling(
        max_new_tokens=min(most, MAX_NEW_TOKENS),
        temperature=1.0 if asked.temperature is None else asked.temperature,
        top_p=asked.top_p or 1.0,
    )
    return sampling, stops[0] if stops else None


async def written(
    asked: ChatRequest,
    messages: list[Message],
    service: Service,
    judge: str,
    deadline: float | None,
) -> Reply:
    """The text piece by piece, then how it ended.

    Raises:
        ApiError: As ``Service.complete`` and :func:`sampling_of`.
    """
    sampling, stop = sampling_of(asked)
    texts = service.complete(
        judge, messages, sampling, seed=asked.seed or 0, stop=stop, deadline=deadline
    )
    async with aclosing(texts):
        async for part in texts:
            if isinstance(part, Completion):
                yield Ending(part.finish_reason, part.prompt_tokens, part.completion_tokens)
            else:
                yield Piece(part)
