"""Replies of ``POST /completions`` and of ``POST /chat/completions``."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from clients.connection import ReplyBody
from judging.errors import CustosError


class Usage(BaseModel):
    """Tokens, as the server counted them."""

    model_config = ConfigDict(frozen=True)

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


class _TextLogprobs(BaseModel):
    top_logprobs: list[dict[str, float]] = []


class TextChoice(BaseModel):
    """One text of ``POST /completions``."""

    text: str
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    logprobs: _TextLogprobs | None = None

    def by_token_id(self) -> dict[int, float]:
        """Return log-probabilities at the first token drawn, empty if none came by token id."""
        logprobs = self.logprobs.top_logprobs if self.logprobs else []
        first = logprobs[0] if logprobs else {}
        return {token_id(token): value for token, value in first.items()}


class Completions(ReplyBody):
    """``POST /completions``: one choice per prompt, in order."""

    called: ClassVar[str] = "completion"
    choices: list[TextChoice] = Field(min_length=1)


class TokenLogprob(BaseModel):
    """A token, as text or as ``token_id:17``, with its log-probability."""

    token: str
    logprob: float


class ChatToken(TokenLogprob):
    """A token of an answer, with the likeliest tokens in its place."""

    top_logprobs: list[TokenLogprob] = []


class _ChatLogprobs(BaseModel):
    content: list[ChatToken] | None = None


class _ChatMessage(BaseModel):
    content: str | None = None


class ChatChoice(BaseModel):
    """One answer of ``POST /chat/completions``."""

    message: _ChatMessage
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    logprobs: _ChatLogprobs | None = None

    @property
    def text(self) -> str:
        """Return the answer, empty if there is none."""
        return self.message.content or ""


class ChatCompletion(ReplyBody):
    """``POST /chat/completions``, with or without log-probabilities."""

    called: ClassVar[str] = "chat completion"
    choices: list[ChatChoice] = Field(min_length=1)
    usage: Usage | None = None
    prompt_token_ids: list[int] | None = None

    def tokens(self) -> list[ChatToken]:
        """Return the tokens drawn, with their alternatives.

        Raises:
            CustosError: If the server gave none.
        """
        logprobs = self.choices[0].logprobs
        if logprobs is None or not logprobs.content:
            raise CustosError("the server gives no log-probabilities; a judge cannot do without")
        return logprobs.content


def token_id(token: str) -> int:
    """Return the id in vLLM's ``token_id:17``, -1 for a token that is given as text."""
    prefix, _, number = token.partition(":")
    return int(number) if prefix == "token_id" and number.isdecimal() else -1
