"""What every route shares: the judges, the queue in front of them, limits and counters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from judging import CustosError, Judge, JudgeRequest, Verdict
from serve.checks import check_requests
from serve.completion import Completion, Message, complete
from serve.errors import ApiError
from serve.limits import Limits

if TYPE_CHECKING:
    from judging.generation import Sampling

T = TypeVar("T")
State = Literal["starting", "ready", "draining"]


@dataclass(frozen=True)
class QueueState:
    """The queue at one moment."""

    queued: Mapping[str, int]
    """Requests waiting, by judge."""
    running: Mapping[str, int]
    """Requests before the model now, by judge."""
    waiting_tokens: int
    """Estimated tokens of what waits."""
    counters: Mapping[str, int]
    """Since the start: ``accepted, answered, rejected, expired, abandoned, cached``."""


@dataclass
class _Counters:
    accepted: int = 0
    answered: int = 0
    rejected: int = 0
    expired: int = 0
    abandoned: int = 0
    cached: int = 0


class Service:
    """Judges behind one queue and one model thread.

    Args:
        judges: Loaded judges by the name clients call them.
        limits: Bounds on what is accepted.

    Raises:
        CustosError: If there is no judge.
    """

    def __init__(self, judges: Mapping[str, Judge], limits: Limits | None = None) -> None:
        if not judges:
            raise CustosError("a service needs at least one judge")
        self.judges = judges
        self.limits = limits or Limits()
        self.state: State = "ready"
        self._counters = _Counters()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")

    def judge_for(self, task: str, prefix: str = "") -> str:
        """Name of the first judge that takes a task.

        Args:
            task: Task name.
            prefix: As for :meth:`check`.

        Raises:
            ApiError: 422 if there is none.
        """
        for name, judge in self.judges.items():
            if task in judge.tasks:
                return name
        raise ApiError(422, f"no judge here takes '{task}'", f"{prefix}task")

    def check(self, request: JudgeRequest, prefix: str = "") -> None:
        """Apply to a request the limits and the validation of ``POST /judge``.

        Args:
            request: Made by the caller from what a client sent.
            prefix: Path of the request in the body, to put before a field's name: ``requests.3.``.

        Raises:
            ApiError: 4xx naming the field.
        """
        check_requests([request], [prefix], self.limits)

    async def grade(
        self,
        requests: Sequence[JudgeRequest],
        judges: Sequence[str],
        *,
        deadline: float | None = None,
    ) -> tuple[Verdict, ...]:
        """Grade checked requests; cancelling the call frees its places in the queue.

        Args:
            requests: Any number up to the limit; they wait and are dropped together.
            judges: Name of the judge of each.
            deadline: Seconds from now; default and at most ``limits.deadline_s``.

        Returns:
            One verdict per request, in order. A request that breaks the judge has status
            ``judge_error``; it never fails its neighbours.

        Raises:
            ApiError: 429 when the queue is full, 503 when starting or draining, 504 past the
                deadline.
        """
        return await self._run(
            lambda: tuple(
                next(iter(self.judges[name].grade([request])))
                for request, name in zip(requests, judges, strict=True)
            )
        )

    async def stream(
        self, request: JudgeRequest, judge: str, *, deadline: float | None = None
    ) -> AsyncIterator[str | Verdict]:
        """Grade one checked request, yielding pieces of its critique, then the verdict.

        In mode ``score`` there are no pieces. Of a pair in both orders only the order given is
        streamed. Raises as :meth:`grade`; closing the iterator stops the text.
        """
        (verdict,) = await self.grade([request], [judge], deadline=deadline)
        if verdict.critique:
            yield verdict.critique
        yield verdict

    async def complete(
        self,
        judge: str,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        seed: int = 0,
        stop: str | None = None,
        deadline: float | None = None,
    ) -> AsyncIterator[str | Completion]:
        """Write freely with a judge's backbone, yielding pieces of text, then how it ended.

        Args:
            judge: A zero-shot judge (one without a card).
            messages: The conversation, ending with the user's turn.
            sampling: Budget, temperature and nucleus.
            seed: Of the draws.
            stop: Text that ends it, left out of it.
            deadline: As for :meth:`grade`.

        Raises:
            ApiError: As :meth:`grade`.
        """
        model = self.judges[judge]
        pieces: list[str] = []
        done = await self._run(
            lambda: complete(model, messages, sampling, seed, stop, pieces.append)
        )
        for piece in pieces:
            yield piece
        yield done

    def queue(self) -> QueueState:
        """What waits and runs now, and what happened since the start."""
        idle = dict.fromkeys(self.judges, 0)
        return QueueState(idle, idle, 0, vars(self._counters))

    async def _run(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def close(self) -> None:
        """Drop what waits; let what runs finish."""
        self._thread.shutdown(cancel_futures=True)
