"""A client of chat models, and many requests as one job that can be stopped and continued.

Replies of ``POST /completions`` and ``POST /chat/completions`` are checked here, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from clients.connection import (
    ModelServer,
    ReplyBody,
    ServerConnection,
    ServerRefusal,
    run_coroutine,
    run_together,
)
from clients.messages import ChatItem, Decoding, item_key, request_body
from judging.errors import CustosError
from judging.files.kept_work import KeptFile, KeptLine, Origin, append_lines, locked

TokenCount = Annotated[int, Field(ge=0, le=2**53)]
"""A count that a price can be multiplied with."""
Logprob = Annotated[float, Field(ge=-1e9, le=1, allow_inf_nan=False)]
"""A log-probability; some servers write -9999 for none, and rounding may make one positive."""


class Usage(BaseModel, frozen=True):
    """Tokens, as the server counted them."""

    prompt_tokens: TokenCount = 0
    completion_tokens: TokenCount = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


class _TextLogprobs(BaseModel):
    top_logprobs: list[dict[str, Logprob]] = []


class TextChoice(BaseModel):
    """One text of ``POST /completions``."""

    text: str
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    logprobs: _TextLogprobs | None = None

    def by_token_id(self) -> dict[int, float]:
        """Return log-probabilities at the first token drawn, empty if none came by token id."""
        logprobs = self.logprobs.top_logprobs if self.logprobs else []
        return {token_id(token): value for token, value in (logprobs or [{}])[0].items()}


class Completions(ReplyBody):
    """``POST /completions``: one choice per prompt, in order."""

    called: ClassVar[str] = "completion"
    choices: list[TextChoice] = Field(min_length=1)


class TokenLogprob(BaseModel):
    """A token, as text or as ``token_id:17``, with its log-probability."""

    token: str
    logprob: Logprob


class ChatToken(TokenLogprob):
    """A token of an answer, with the likeliest tokens in its place; it may be among them or not."""

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

        Raises ``CustosError`` if the server gave none.
        """
        logprobs = self.choices[0].logprobs
        if logprobs is None or not logprobs.content:
            raise CustosError("the server gives no log-probabilities; a judge cannot do without")
        return logprobs.content


def token_id(token: str) -> int:
    """Read the id in vLLM's ``token_id:17``; -1 for a token that is given as text."""
    number = re.fullmatch(r"token_id:(\d{1,9})", token)
    return int(number[1]) if number else -1


@dataclass(frozen=True)
class Prices:
    """Price of a million tokens, in any currency."""

    prompt: float = 0.0
    completion: float = 0.0

    def cost(self, usage: Usage) -> float:
        """Compute the price of some tokens."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


class Reply(BaseModel, frozen=True):
    """A model's answer. Its ``text`` is empty if the model wrote nothing; that is no failure."""

    text: str
    finish_reason: str | None = None
    usage: Usage | None = None
    """``None`` if the server did not count."""


def ask_all(
    server: ModelServer,
    decoding: Decoding,
    items: Iterable[ChatItem],
    done: Callable[[ChatItem, Reply | CustosError], None],
) -> None:
    """Ask a server for the answer to every item, never more at once than its settings allow.

    ``done`` is called with each item and its answer, or why there is none, as they come. If this
    is interrupted, it has been called for every answer that arrived. Raises ``ServerRefusal`` as
    soon as the server refuses all items alike.
    """
    remaining = iter(items)

    async def ask(connection: ServerConnection, item: ChatItem) -> Reply:
        name = f"item '{item.id}'"
        try:
            body = request_body(item, server.model, decoding)
        except CustosError as error:
            raise CustosError(f"{name}: {error}") from None
        completion = await connection.post("chat/completions", body, ChatCompletion, name)
        choice = completion.choices[0]
        return Reply(text=choice.text, finish_reason=choice.finish_reason, usage=completion.usage)

    async def work(connection: ServerConnection) -> None:
        for item in remaining:
            outcome: Reply | CustosError
            try:
                outcome = await ask(connection, item)
            except ServerRefusal:
                raise
            except CustosError as error:
                outcome = error
            done(item, outcome)

    async def work_together() -> None:
        async with ServerConnection(server) as connection:
            await run_together(work(connection) for _ in range(server.concurrency))

    run_coroutine(work_together())


REQUEST_FAILED = "request failed"


class KeptAnswer(KeptLine):
    """A line of the answers file: an answer, and the item that it is an answer to."""

    id: str
    reply: Reply

    @property
    def origin(self) -> Origin:
        """Return the item's id and its key."""
        return self.id, self.key


class Reject(BaseModel):
    """A line of the rejects file: an item without a usable answer, and the reason."""

    id: str
    reason: str
    """One of a few reasons, so that rejects can be counted by it."""
    detail: str


@dataclass
class JobResult:
    """The answers of a job, those of earlier runs included."""

    replies: dict[str, Reply] = field(default_factory=dict)
    """Item id to answer."""
    rejects: list[Reject] = field(default_factory=list)
    """Items without an answer."""
    num_reused: int = 0
    """Answers that an earlier run received."""

    @property
    def usage(self) -> Usage:
        """Return the tokens of all answers that the server counted."""
        return sum((reply.usage for reply in self.replies.values() if reply.usage), Usage())

    def account(self, prices: Prices | None) -> dict[str, Any]:
        """Return tokens and cost for a manifest: ``reused, usage, uncounted, cost``."""
        return {
            "reused": self.num_reused,
            "usage": self.usage.model_dump(),
            "uncounted": sum(reply.usage is None for reply in self.replies.values()),
            "cost": prices.cost(self.usage) if prices else None,
        }


@dataclass(frozen=True)
class JobProgress:
    """Counts of a job's items and tokens while it runs."""

    num_items: int
    num_done: int
    """Items with an answer, and items that failed."""
    num_failed: int
    usage: Usage
    """Tokens of all answers so far."""


OnProgress = Callable[[JobProgress], None]


class ChatJob:
    """Items to ask a model, and the file that keeps its answers.

    ``answers`` is a JSONL file of ``KeptAnswer``, in order of completion, that grows line by line;
    it is to be ``locked`` meanwhile. ``on_progress`` is called at the start and whenever an item is
    done. Raises ``CustosError`` if two items have the same id.
    """

    def __init__(
        self,
        items: Sequence[ChatItem],
        model: str,
        decoding: Decoding,
        answers: Path,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._keys: dict[str, str] = {}
        for item in items:
            if item.id in self._keys:
                raise CustosError(f"id '{item.id}' is given to more than one item")
            self._keys[item.id] = item_key(item, model, decoding)
        self._file = KeptFile(answers, KeptAnswer)
        self._on_progress = on_progress
        kept = self._file.matching(self._keys.items())
        self.result = JobResult({line.id: line.reply for line in kept})
        self.result.num_reused = len(self.result.replies)
        self.remaining = [item for item in items if item.id not in self.result.replies]
        """Items that have no answer yet."""
        self._usage = self.result.usage
        self._show()

    def save(self, replies: Mapping[str, Reply]) -> None:
        """Write answers, by item id, to the file, and count them."""
        self._file.append(
            KeptAnswer(id=name, key=self._keys[name], reply=reply)
            for name, reply in replies.items()
        )
        self.result.replies.update(replies)
        self._usage += sum((reply.usage for reply in replies.values() if reply.usage), Usage())
        self._show()

    def reject(self, reject: Reject) -> None:
        """Count an item that failed in this run."""
        self.result.rejects.append(reject)
        self._show()

    def _show(self) -> None:
        if self._on_progress is not None:
            num_failed = len(self.result.rejects)
            num_done = len(self.result.replies) + num_failed
            self._on_progress(JobProgress(len(self._keys), num_done, num_failed, self._usage))


def run_job(
    items: Sequence[ChatItem],
    server: ModelServer,
    decoding: Decoding,
    *,
    answers: Path,
    rejects: Path,
    on_progress: OnProgress | None = None,
) -> JobResult:
    """Ask a server for every item that has no answer yet, as a :class:`ChatJob`.

    If the job is stopped by Ctrl-C, a kill or a refusal, every answer that arrived is kept. The
    next call asks only for the others, and again for items that failed: ``rejects`` lists those of
    this run. An item whose messages, pictures, model or decoding changed is asked again. Raises
    ``ServerRefusal`` if the server refuses all items alike; ``CustosError`` if two items have the
    same id, or another process runs this job.
    """
    rejects.parent.mkdir(parents=True, exist_ok=True)
    with locked(answers):
        job = ChatJob(items, server.model, decoding, answers, on_progress)
        rejects.unlink(missing_ok=True)

        def done(item: ChatItem, outcome: Reply | CustosError) -> None:
            if isinstance(outcome, Reply):
                job.save({item.id: outcome})
                return
            reject = Reject(id=item.id, reason=REQUEST_FAILED, detail=str(outcome))
            append_lines(rejects, [reject])
            job.reject(reject)

        ask_all(server, decoding, job.remaining, done)
    return job.result
