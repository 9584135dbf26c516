"""Turns of a conversation, for the judge's own prompts, chat models and chat clients alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

START_TOKEN, END_TOKEN = "<|im_start|>", "<|im_end|>"
"""Control tokens around every turn of a prompt."""


class Message(BaseModel):
    """One turn of a conversation; its pictures come before its text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[str, ...] = ()
    """File paths, data URLs or web addresses."""


def conversation(
    instruction: str, texts: Sequence[str], images: tuple[str, ...] = ()
) -> tuple[Message, ...]:
    """Return the instruction and a user's turn for every text; the first one has the pictures."""
    first, *others = (Message(role="user", text=text) for text in texts)
    first = first.model_copy(update={"images": images})
    return (Message(role="system", text=instruction), first, *others)
