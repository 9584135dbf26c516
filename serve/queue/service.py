"""What every route shares: the judges, the queue in front of them, limits and counters."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from judging import CustosError, Judge, JudgeRequest, Verdict
from serve.chat.completion import Completion, Message, complete
from serve.errors import RETRY_AFTER_S, ApiError
from serve.limits import Limits
from serve.middleware.envelope import request_id
from serve.queue.metrics import Metrics
from serve.queue.results import completion_of, verdict_of
from serve.queue.verdict_cache import VerdictCache, cache_key
from serve.queue.worker import WINDOW_BATCHES, Job, Scheduler
from serve.requests.checks import estimated_tokens
from serve.requests.remote_images import RemoteImages

if TYPE_CHECKING:
    from judging.scoring.engine import Sampling

State = Literal["starting", "ready", "draining"]
OUTCOMES = ("accepted", "answered", "cached", "rejected", "expired", "abandoned")
WINDOW_TOKENS = 4096
"""Window of judges without such a budget."""


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
    """Requests since the start, by :data:`OUTCOMES`."""


@dataclass
class Timing:
    """How long a call's slowest request took, in seconds."""

    queue: float = 0.0
    inference: float = 0.0


class Service:
    """Judges behind one queue and one model thread, for one event loop.

    Args:
        judges: Loaded judges by the name clients call them; without, the service is ``starting``
            until :meth:`open`.
        limits: Bounds on what is accepted.
        cache: Where verdicts are kept.
        remote_images: Where pictures may be fetched from; without, only data URLs are taken.
        log_contents: Write what is asked and answered to the log.
    """

    def __init__(
        self,
        judges: Mapping[str, Judge] | None = None,
        limits: Limits | None = None,
        *,
        cache: VerdictCache | None = None,
        remote_images: RemoteImages | None = None,
        log_contents: bool = False,
    ) -> None:
        self.judges: Mapping[str, Judge] = {}
        self.token_counters: Mapping[str, Callable[[str], int]] = {}
        self.limits = limits or Limits()
        self.remote_images = remote_images
        self.log_contents = log_contents
        self.state: State = "starting"
        self.metrics = Metrics(self.queue)
        self._cache = cache
        self._cache_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cache")
        self._counters = Counter(dict.fromkeys(OUTCOMES, 0))
        self._started_scheduler: Scheduler | None = None
        if judges is not None:
            self.open(judges)

    def open(self, judges: Mapping[str, Judge]) -> None:
        """Begin to accept requests.

        Raises:
            CustosError: If there is no judge.
        """
        if not judges:
            raise CustosError("a service needs at least one judge")
        self.token_counters = {name: judge.encoder.counter() for name, judge in judges.items()}
        self.judges = judges
        if self.state == "starting":
            self.state = "ready"

    def require_ready(self) -> None:
        """Refuse new work while starting or draining, or when the queue is full.

        Routes ask before they read a body: in a flood, refusing must cost next to nothing.

        Raises:
            ApiError: 503 or 429.
        """
        self._require_open()
        try:
            self._scheduler.require_room()
        except ApiError:
            self._counters["rejected"] += 1
            raise

    async def grade(
        self,
        requests: Sequence[JudgeRequest],
        judges: Sequence[str],
        *,
        deadline: float | None = None,
        timing: Timing | None = None,
    ) -> tuple[Verdict, ...]:
        """Grade checked requests; cancelling the call frees its places in the queue.

        Args:
            requests: Any number up to the limit; they enter the queue together or not at all.
            judges: Name of the judge of each.
            deadline: Seconds from now; default and at most ``limits.deadline_s``.
            timing: Filled in.

        Returns:
            One verdict per request, in order. A request that breaks its judge has status
            ``judge_error``; it never fails its neighbours.

        Raises:
            ApiError: 429 when the queue is full, 503 when starting or draining or when a model's
                server fails (what is graded by then stays in the cache), 504 past the deadline.
        """
        keys = [self._key(name, request) for request, name in zip(requests, judges, strict=True)]
        known = await self._known([key for key in keys if key])
        jobs = [
            self._job(request, name)
            for request, name, key in zip(requests, judges, keys, strict=True)
            if key is None or key not in known
        ]
        if jobs:
            async with self._queued(jobs, deadline) as until, asyncio.timeout_at(until):
                await asyncio.wait([job.future for job in jobs])
        if timing and jobs:
            last = max(jobs, key=lambda job: job.ended_at)
            timing.queue = last.started_at - last.queued_at
            timing.inference = last.ended_at - last.started_at
        graded = iter(jobs)
        verdicts = []
        fresh = {}
        fault: ApiError | None = None
        for request, name, key in zip(requests, judges, keys, strict=True):
            if key and key in known:
                verdict = known[key].model_copy(update={"id": request.id})
            else:
                try:
                    verdict = verdict_of(next(graded))
                except ApiError as error:
                    fault = error
                    continue
                if key and verdict.status != "judge_error":
                    fresh[key] = verdict
            self.metrics.count_verdict(name, verdict)
            verdicts.append(verdict)
        self._counters["cached"] += len(requests) - len(jobs)
        if fresh and self._cache:
            self._cache_thread.submit(self._cache.put, fresh)
        if fault:
            raise fault
        return tuple(verdicts)

    async def stream(
        self, request: JudgeRequest, judge: str, *, deadline: float | None = None
    ) -> AsyncGenerator[str | Verdict]:
        """Grade one checked request, yielding pieces of its critique, then the verdict.

        In mode ``score`` there are no pieces. Of a pair in both orders only the critique of the
        order given is streamed. Never answered from the cache, and raises as :meth:`grade`;
        closing the iterator stops the text.
        """
        job = self._job(request, judge)
        async with aclosing(self._pieces(job, deadline)) as pieces:
            async for piece in pieces:
                yield piece
        verdict = verdict_of(job)
        self.metrics.count_verdict(judge, verdict)
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
    ) -> AsyncGenerator[str | Completion]:
        """Write freely with a judge's backbone, yielding pieces of text, then how it ended.

        Args:
            judge: A zero-shot judge (one without a card).
            messages: The conversation, ending with the user's turn.
            sampling: Budget, temperature and nucleus.
            seed: Of the draws.
            stop: Text that ends it, left out of it.
            deadline: As for :meth:`grade`.

        Raises:
            ApiError: As :meth:`grade`, and as :func:`serve.queue.results.completion_of`.
        """
        model = self.judges[judge]
        size = sum(len(message.text.encode(errors="replace")) for message in messages)
        job = Job(
            judge,
            "text",
            size // 4 + sampling.max_new_tokens,
            None,
            lambda on_text: complete(model, messages, sampling, seed, stop, on_text),
            request_id=request_id.get(),
        )
        async with aclosing(self._pieces(job, deadline)) as pieces:
            async for piece in pieces:
                yield piece
        yield completion_of(job)

    def queue(self) -> QueueState:
        """What waits and runs now, and what happened since the start."""
        if self._started_scheduler is None:
            idle = dict.fromkeys(self.judges, 0)
            return QueueState(idle, idle, 0, dict(self._counters))
        now = self._started_scheduler.waiting()
        return QueueState(now.queued, now.running, now.tokens, dict(self._counters))

    @property
    def is_idle(self) -> bool:
        """Whether every accepted request has been graded."""
        return self._started_scheduler is None or self._started_scheduler.is_idle

    @property
    def is_alive(self) -> bool:
        """Whether the model thread takes work."""
        return self._started_scheduler is None or self._started_scheduler.is_alive

    def drain(self) -> None:
        """Accept nothing more; what is in the queue is still graded."""
        self.state = "draining"

    def close(self) -> None:
        """Drop what waits; let a running window end; keep the cache whole."""
        self.state = "draining"
        if self._started_scheduler:
            self._started_scheduler.close()
        self._cache_thread.shutdown()
        if self._cache:
            self._cache.close()

    def _require_open(self) -> None:
        if self.state != "ready":
            raise ApiError(503, f"the service is {self.state}", retry_after=RETRY_AFTER_S)

    @property
    def _scheduler(self) -> Scheduler:
        if self._started_scheduler is None:
            self._started_scheduler = Scheduler(
                self.judges,
                max_requests=self.limits.queue_requests,
                max_tokens=self.limits.queue_tokens,
                window_tokens=max(map(_window_tokens, self.judges.values())),
                on_window=self.metrics.count_window,
            )
        return self._started_scheduler

    def _job(self, request: JudgeRequest, judge: str) -> Job:
        kind: Literal["score", "text"] = "text" if request.mode == "critique" else "score"
        tokens = estimated_tokens(request)
        return Job(judge, kind, tokens, request, request_id=request_id.get())

    @asynccontextmanager
    async def _queued(self, jobs: Sequence[Job], deadline: float | None) -> AsyncIterator[float]:
        """Hold places for the jobs of one call, and count how it ends.

        Yields the time of the event loop at which its deadline is over; a ``TimeoutError`` becomes
        the answer 504.
        """
        num_jobs = len(jobs)
        self._require_open()
        try:
            self._scheduler.submit(jobs)
        except ApiError:
            self._counters["rejected"] += num_jobs
            raise
        self._counters["accepted"] += num_jobs
        outcome = "abandoned"
        seconds = min(deadline or self.limits.deadline_s, self.limits.deadline_s)
        try:
            yield asyncio.get_running_loop().time() + seconds
            outcome = "answered"
        except TimeoutError:
            outcome = "expired"
            raise ApiError(
                504, f"not answered within {seconds:g} seconds; the deadline is over"
            ) from None
        finally:
            self._counters[outcome] += num_jobs
            if outcome == "answered":
                for job in jobs:
                    waited = max(0.0, job.started_at - job.queued_at)
                    self.metrics.queue_seconds.labels(job.judge).observe(waited)
            else:
                self._scheduler.drop(jobs)

    async def _pieces(self, job: Job, deadline: float | None) -> AsyncGenerator[str]:
        """Queue a job and yield its text as it is written; its result is in its future after."""
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        job.on_text = pieces.put_nowait
        job.future.add_done_callback(lambda _: pieces.put_nowait(None))
        async with self._queued([job], deadline) as until:
            while True:
                # The next piece may be asked for by another task: no timeout spans a yield.
                async with asyncio.timeout_at(until):
                    piece = await pieces.get()
                if piece is None:
                    return
                yield piece

    def _key(self, judge: str, request: JudgeRequest) -> bytes | None:
        return cache_key(self.judges[judge], request) if self._cache else None

    async def _known(self, keys: Sequence[bytes]) -> dict[bytes, Verdict]:
        if not keys or self._cache is None:
            return {}
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._cache_thread, self._cache.get, keys)


def _window_tokens(judge: Judge) -> int:
    budget = getattr(getattr(judge, "engine", None), "token_budget", None)
    return WINDOW_BATCHES * budget if budget else WINDOW_TOKENS
