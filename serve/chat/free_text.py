"""Free text from an untrained backbone, for clients that ask for it by its own name."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from judging.messages import Message
from serve.chat.completion import Completion, complete
from serve.chat.messages import ChatRequest
from serve.chat.wire import Ending, Piece, Reply
from serve.errors import ApiError
from serve.limits import MAX_SEED
from serve.queue.estimate import text_tokens
from serve.queue.service import Service

if TYPE_CHECKING:
    from judging.scoring.engine import Sampling

MAX_NEW_TOKENS = 4096
"""A larger ``max_tokens`` is taken as this. A reply that reaches it ends with ``length``."""
DEFAULT_NEW_TOKENS = 512


def sampling_of(chat: ChatRequest) -> tuple[Sampling, str | None]:
    """Return how a text is to be sampled, and the text that ends it.

    Raises:
        ApiError: 422 for an option that would change the text and is not supported.
    """
    from judging.scoring.engine import Sampling

    if chat.wants_json:
        raise ApiError(422, "this model cannot promise a JSON object", "response_format")
    for name in ("presence_penalty", "frequency_penalty"):
        if getattr(chat, name):
            raise ApiError(422, "not supported here", name)
    if chat.logprobs:
        raise ApiError(422, "only judges give log-probabilities, those of their labels", "logprobs")
    if not 0 <= (chat.seed or 0) <= MAX_SEED:
        raise ApiError(422, f"expected 0 to {MAX_SEED}", "seed")
    stops = [chat.stop] if isinstance(chat.stop, str) else chat.stop or []
    if len(stops) > 1 or "" in stops:
        raise ApiError(422, "expected one text that is not empty", "stop")
    budget = chat.max_completion_tokens or chat.max_tokens or DEFAULT_NEW_TOKENS
    sampling = Sampling(
        max_new_tokens=min(budget, MAX_NEW_TOKENS),
        temperature=1.0 if chat.temperature is None else chat.temperature,
        top_p=chat.top_p or 1.0,
    )
    return sampling, stops[0] if stops else None


async def free_reply(
    chat: ChatRequest,
    conversation: list[Message],
    service: Service,
    judge: str,
    deadline: float | None,
) -> Reply:
    """Yield the text piece by piece, then how it ended.

    Raises:
        ApiError: As ``Service.write`` and :func:`sampling_of`.
    """
    sampling, stop = sampling_of(chat)
    write = partial(complete, service.judges[judge], conversation, sampling, chat.seed or 0, stop)
    tokens = text_tokens(turn.text for turn in conversation) + sampling.max_new_tokens
    parts = service.write(judge, write, tokens, deadline=deadline)
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, Completion):
                yield Ending(part.finish_reason, part.prompt_tokens, part.completion_tokens)
            else:
                yield Piece(part)
