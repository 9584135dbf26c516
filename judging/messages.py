"""Turns of a conversation, for the judge's own prompts, chat models and chat clients alike."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    """One turn of a conversation; its pictures come before its text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[str, ...] = ()
    """File paths, data URLs or web addresses."""
