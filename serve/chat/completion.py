"""Free text from a plain backbone, for clients that want a chat model rather than a judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from judging import CustosError, Judge
from serve.errors import ApiError

if TYPE_CHECKING:
    from judging.scoring.engine import Sampling
    from judging.scoring.prompts import EncodedPrompt, Encoder


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation; its pictures come before its text."""

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[str, ...] = ()
    """Data URLs that :func:`serve.requests.images.num_pixels` has passed."""


@dataclass(frozen=True)
class Completion:
    """A free text and how it ended."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: Literal["stop", "length"]


def complete(
    judge: Judge,
    messages: Sequence[Turn],
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

    prompt = encode_messages(judge.encoder, messages)
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


def encode_messages(encoder: Encoder, messages: Sequence[Turn]) -> EncodedPrompt:
    """Encode a conversation up to where the assistant's next turn begins."""
    import torch

    from judging.scoring.prompts import EncodedPrompt, read_image

    backbone = encoder.backbone
    conversation: list[dict[str, Any]] = [
        {
            "role": message.role,
            "content": [
                *({"type": "image", "image": read_image(source)} for source in message.images),
                {"type": "text", "text": message.text},
            ],
        }
        for message in messages
    ]
    has_pictures = any(message.images for message in messages)
    encoded = backbone.processor.apply_chat_template(
        [conversation],
        tokenize=True,
        return_dict=True,
        add_generation_prompt=True,
        sanitize_control_tokens=True,
        processor_kwargs={} if has_pictures else {"return_tensors": None},
    )
    ids = tuple(encoded["input_ids"][0])
    vision = (
        {key: torch.as_tensor(encoded[key]) for key in ("pixel_values", "image_grid_thw")}
        if has_pictures
        else {}
    )
    positions = backbone.positions(ids, vision.get("image_grid_thw"))
    return EncodedPrompt((), ids, positions, vision, False)
