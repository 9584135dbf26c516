"""Free text from an untrained backbone, for clients that want a chat model rather than a judge.

They ask for the backbone by its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from judging.errors import CustosError, FieldError
from judging.judge import Judge
from judging.messages import Message
from serve.chat.messages import ChatRequest
from serve.chat.wire import Ending, Piece, Reply
from serve.errors import ApiError
from serve.limits import MAX_SEED
from serve.queue.deadline import Deadline
from serve.queue.estimate import TokenCounter, picture_tokens, text_tokens
from serve.queue.service import Service

if TYPE_CHECKING:
    from judging.scoring.engine import Sampling

MAX_NEW_TOKENS = 4096
"""A larger ``max_tokens`` is taken as this. A reply that reaches it ends with ``length``."""
DEFAULT_NEW_TOKENS = 512
MAX_STOP_CHARS = 1000


@dataclass(frozen=True)
class Completion:
    """A free text and how it ended."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: Literal["stop", "length"]


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
    if len(stops) > 1 or not all(0 < len(stop) <= MAX_STOP_CHARS for stop in stops):
        raise ApiError(422, f"expected one text of 1 to {MAX_STOP_CHARS:,} characters", "stop")
    budget = chat.max_completion_tokens or chat.max_tokens or DEFAULT_NEW_TOKENS
    temperature = 1.0 if chat.temperature is None else chat.temperature
    sampling = Sampling(
        max_new_tokens=min(budget, MAX_NEW_TOKENS),
        temperature=0.0 if chat.top_p == 0 else temperature,  # a nucleus of the likeliest token
        top_p=chat.top_p or 1.0,
    )
    return sampling, stops[0] if stops else None


async def free_reply(
    chat: ChatRequest,
    conversation: list[Message],
    service: Service,
    judge: str,
    deadline: Deadline,
) -> Reply:
    """Yield the text piece by piece, then how it ended.

    Raises:
        ApiError: As ``Service.write`` and :func:`sampling_of`.
    """
    sampling, stop = sampling_of(chat)
    writer = service.judges[judge]
    async with deadline.within():
        count = service.token_counters[judge]
        length = sum(len(turn.text) for turn in conversation)
        await service.readers.read(
            length, _check_length, conversation, writer.backbone.context, count
        )
        conversation = await _with_small_pictures(conversation, service, writer)
        pictures = [source for turn in conversation for source in turn.images]
        tokens = await service.readers.read(
            sum(map(len, pictures)), picture_tokens, pictures, writer
        )
    tokens += text_tokens(turn.text for turn in conversation) + sampling.max_new_tokens
    write = partial(complete, writer, conversation, sampling, chat.seed or 0, stop)
    parts = service.write(judge, write, tokens, deadline=deadline)
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, Completion):
                yield Ending(part.finish_reason, part.prompt_tokens, part.completion_tokens)
            else:
                yield Piece(part)


def _check_length(conversation: Sequence[Message], context: int, count: TokenCounter) -> None:
    """Check, before the model sees them, that the texts alone are not longer than it reads.

    Raises:
        ApiError: 422 if they are.
    """
    texts = [turn.text for turn in conversation]
    if sum(len(text.encode(errors="replace")) for text in texts) >= context:  # a byte a token
        _require_fit(sum(map(count, texts)), context)


def _require_fit(num_tokens: int, context: int) -> None:
    if num_tokens >= context:
        raise ApiError(422, f"{num_tokens:,} tokens, but the model reads {context:,}", "messages")


async def _with_small_pictures(
    conversation: Sequence[Message], service: Service, judge: Judge
) -> list[Message]:
    """Return a conversation with pictures that the model thread reads in next to no time.

    Raises:
        ApiError: 422 if a picture cannot be read.
    """
    try:
        return [
            turn.model_copy(
                update={"images": await service.intake.small_pictures(turn.images, judge)}
            )
            for turn in conversation
        ]
    except FieldError as error:
        raise ApiError(422, f"{error.field}: {error.message}", "messages") from None


def complete(
    judge: Judge,
    conversation: Sequence[Message],
    sampling: Sampling,
    seed: int,
    stop: str | None,
    on_text: Callable[[str], None],
) -> Completion:
    """Continue a conversation with a judge's backbone.

    Args:
        judge: An untrained judge, as an adapter knows how to judge, but not how to chat.
        conversation: The messages so far; control tokens in them are plain text.
        sampling: Budget, temperature and nucleus.
        seed: Seed of the sampling.
        stop: Text that ends the answer and is left out of it.
        on_text: Called with each new piece of the answer.

    Raises:
        ApiError: 422 if the conversation is longer than the model reads.
        RequestRefused: If the model's server cannot read the conversation.
        CustosError: If the model's server fails.
    """
    from judging.messages import END_TOKEN
    from judging.scoring.engine import texts_in_order

    prompt = judge.encoder.encode_conversation(conversation)
    num_tokens, max_tokens = len(prompt.suffix_ids), judge.backbone.context
    _require_fit(num_tokens, max_tokens)
    budget = min(sampling.max_new_tokens, max_tokens - num_tokens)
    batches = judge.engine.generate(
        [prompt],
        judge.encoder,
        stop or END_TOKEN,
        [seed],
        replace(sampling, max_new_tokens=budget),
        lambda _, piece: on_text(piece),
    )
    [text] = texts_in_order(batches)
    if isinstance(text, CustosError):
        raise text
    finish_reason: Literal["stop", "length"] = "stop" if text.finished else "length"
    return Completion(text.text, num_tokens, len(text.tokens), finish_reason)
