"""Free text from a plain backbone, for clients that want a chat model rather than a judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from judging import CustosError, Judge
from judging.messages import Message
from serve.errors import ApiError

if TYPE_CHECKING:
    from judging.scoring.engine import Sampling


@dataclass(frozen=True)
class Completion:
    """A free text and how it ended."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: Literal["stop", "length"]


def complete(
    judge: Judge,
    messages: Sequence[Message],
    sampling: Sampling,
    seed: int,
    stop: str | None,
    on_text: Callable[[str], None],
) -> Completion:
    """Write on after a conversation with a judge's backbone.

    Args:
        judge: A zero-shot judge: an adapter knows how to judge, not how to chat.
        messages: The conversation; control tokens in it are plain text.
        sampling: Budget, temperature and nucleus.
        seed: Of the draws.
        stop: Text that ends the answer and is left out of it.
        on_text: Called with each new piece.

    Raises:
        ApiError: 422 if the conversation is longer than the model reads.
        RequestRefused: If the model's server cannot read the conversation.
        CustosError: If the model's server fails.
    """
    from judging.scoring.engine import texts_in_order
    from judging.scoring.prompts import END_TOKEN

    prompt = judge.encoder.encode_conversation(messages)
    room = judge.backbone.context - len(prompt.suffix_ids)
    if room < 1:
        raise ApiError(
            422,
            f"{len(prompt.suffix_ids):,} tokens, but the model reads {judge.backbone.context:,}",
            "messages",
        )
    sampling = replace(sampling, max_new_tokens=min(sampling.max_new_tokens, room))
    batches = judge.engine.generate(
        [prompt],
        judge.encoder,
        stop or END_TOKEN,
        [seed],
        sampling,
        lambda _, piece: on_text(piece),
    )
    [text] = texts_in_order(batches)
    if isinstance(text, CustosError):
        raise text
    return Completion(
        text.text,
        len(prompt.suffix_ids),
        len(text.tokens),
        "stop" if text.finished else "length",
    )
