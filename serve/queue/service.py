"""The service behind every route: judges, the queue in front of them, limits and counters."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

from judging.errors import CustosError
from judging.judge import Judge
from judging.types import JudgeRequest, Verdict
from serve.call_context import access_key, caller_name, request_id
from serve.errors import RETRY_AFTER_S, ApiError
from serve.limits import Limits
from serve.queue.cache_access import CacheAccess
from serve.queue.deadline import Deadline
from serve.queue.estimate import TokenCounter, window_tokens
from serve.queue.intake import Asked, Intake
from serve.queue.lanes import Lanes
from serve.queue.metrics import OUTCOMES, Metrics, QueueState
from serve.queue.quotas import Quotas
from serve.queue.results import text_of, verdict_of
from serve.queue.verdict_cache import VerdictCache, cache_key
from serve.queue.watchdog import Watchdog
from serve.queue.worker import ModelJob, OnText, Worker
from serve.threads import Readers

State = Literal["starting", "ready", "draining"]
T = TypeVar("T")


@dataclass
class Timing:
    """The times of the slowest request of a call, in seconds."""

    queue: float = 0.0
    inference: float = 0.0


class Service:
    """Judges behind one queue and one model thread, for one event loop.

    Args:
        judges: Loaded judges by the name that clients call them. Without, the service is
            ``starting`` until :meth:`open`.
        limits: Limits on what is accepted.
        cache: Keeps verdicts.
        share_cache: Answer one access key with verdicts that were kept for another.
    """

    def __init__(
        self,
        judges: Mapping[str, Judge] | None = None,
        limits: Limits | None = None,
        *,
        cache: VerdictCache | None = None,
        share_cache: bool = False,
    ) -> None:
        self.judges: Mapping[str, Judge] = {}
        self.token_counters: Mapping[str, TokenCounter] = {}
        self.limits = limits or Limits()
        self.state: State = "starting"
        self.metrics = Metrics(self.queue)
        self._cache = CacheAccess(cache, self.metrics.count_cache_fault) if cache else None
        self._share_cache = share_cache
        self._quotas = Quotas(self.limits.key_requests_per_minute)
        self.readers = Readers(self.limits.key_queue_share)
        self.intake = Intake(self.limits.picture_seconds, self.readers)
        self._watchdog = Watchdog(self.limits.stall_s)
        self._counters = defaultdict[str, Counter[str]](Counter)
        self._started_worker: Worker | None = None
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

        Routes call this before they read a body: under too much load, a refusal must cost next to
        nothing.

        Raises:
            ApiError: 503 or 429.
        """
        self._require_open()
        try:
            self._require_quota(1)
            self._worker.require_room(caller_name())
        except ApiError:
            self._count("rejected", 1)
            raise

    async def grade(
        self,
        requests: Sequence[JudgeRequest],
        judges: Sequence[str],
        *,
        deadline: Deadline | None = None,
        timing: Timing | None = None,
    ) -> tuple[Verdict, ...]:
        """Grade checked requests; if the call is cancelled, they leave the queue.

        Args:
            requests: Any number up to the limit; they enter the queue together or not at all.
            judges: Name of the judge of each.
            deadline: Default ``limits.deadline_s`` from now.
            timing: Filled in.

        Returns:
            One verdict per request, in order. A request that the judge cannot take has status
            ``invalid``, and if that is seen beforehand it never enters the queue. One that breaks
            the judge has ``judge_error``. The others are graded all the same.

        Raises:
            ApiError: 429 when the queue is full, 503 when starting or draining or when a model's
                server fails (what is graded by then stays in the cache), 504 past the deadline.
        """
        deadline = deadline or Deadline(self.limits)
        async with deadline.within():
            keys = await self._keys(requests, judges)
            cached = await self._look_up(keys)
            outcomes = await self._prepare(requests, judges, keys, cached)
        jobs = {n: job for n, job in outcomes.items() if isinstance(job, ModelJob)}
        if jobs:
            async with self._queued(list(jobs.values())), deadline.within():
                await asyncio.wait([job.future for job in jobs.values()])
            if timing:
                last = max(jobs.values(), key=lambda job: job.ended_at)
                timing.queue = last.started_at - last.queued_at
                timing.inference = last.ended_at - last.started_at
        self._count("cached", len(requests) - len(outcomes))
        return self._collect(requests, judges, keys, cached, outcomes)

    async def stream(
        self, request: JudgeRequest, judge: str, *, deadline: Deadline | None = None
    ) -> AsyncGenerator[str | Verdict]:
        """Grade one checked request, yielding pieces of its critique, then the verdict.

        In mode ``score`` there are no pieces. Of a pair in both orders only the critique of the
        order given is streamed. The cache is not used. Closing the iterator stops the text.

        Raises:
            ApiError: As :meth:`grade`.
        """
        deadline = deadline or Deadline(self.limits)
        async with deadline.within():
            [outcome] = await self._jobs([request], [judge])
        if isinstance(outcome, Verdict):
            verdict = outcome
        else:
            async with aclosing(self._pieces(outcome, deadline)) as pieces:
                async for piece in pieces:
                    yield piece
            verdict = verdict_of(outcome)
        self.metrics.count_verdict(judge, verdict)
        yield verdict

    async def write(
        self,
        judge: str,
        write: Callable[[OnText], T],
        tokens: int,
        *,
        deadline: Deadline | None = None,
    ) -> AsyncGenerator[str | T]:
        """Write a text on the model thread, yielding its pieces, then what ``write`` returns.

        Args:
            judge: Name of the judge that writes.
            write: Writes the text, given what to call with each piece of it.
            tokens: Estimate of its cost.
            deadline: As for :meth:`grade`.

        Raises:
            ApiError: As :meth:`grade`, and as :func:`serve.queue.results.text_of`.
        """
        caller, call_id = caller_name(), request_id.get()
        job = ModelJob(judge, "text", tokens, write=write, caller=caller, request_id=call_id)
        async with aclosing(self._pieces(job, deadline or Deadline(self.limits))) as pieces:
            async for piece in pieces:
                yield piece
        yield text_of(job)

    def queue(self, caller: str = "") -> QueueState:
        """Return what waits, runs and has happened: of all, or of the access key of a name."""
        counters = {outcome: self._counters[caller][outcome] for outcome in OUTCOMES}
        if self._started_worker:
            return self._started_worker.queue(counters, caller)
        idle = dict.fromkeys(self.judges, 0)
        return QueueState(idle, idle, 0, 0.0, counters)

    @property
    def is_idle(self) -> bool:
        """Return whether every accepted request has been graded."""
        return self._started_worker is None or self._started_worker.is_idle

    @property
    def is_alive(self) -> bool:
        """Return whether the model thread takes work."""
        return self._started_worker is None or self._started_worker.is_alive

    @property
    def is_stalled(self) -> bool:
        """Return whether the model works and has made no progress for long."""
        return self._watchdog.is_stalled

    @property
    def is_stopped(self) -> bool:
        """Return whether nothing runs in the model's code any more."""
        return self._started_worker is None or not self._started_worker.is_alive

    def drain(self) -> None:
        """Accept nothing more; what is in the queue is still graded."""
        self.state = "draining"

    def stop(self) -> None:
        """Answer 503 to everything that has no verdict yet."""
        self.drain()
        if self._started_worker:
            self._started_worker.stop()

    def close(self) -> None:
        """Stop, wait for the model thread, and close the cache."""
        self.stop()
        if self._started_worker:
            self._started_worker.close()
        if self._cache:
            self._cache.close()

    def _count(self, outcome: str, number: int) -> None:
        """Count requests of this call, among all and among those of its key."""
        for name in {"", caller_name()}:
            self._counters[name][outcome] += number

    def _require_open(self) -> None:
        if self.state != "ready":
            raise ApiError(503, f"the service is {self.state}", retry_after=RETRY_AFTER_S)
        if self.is_stalled:
            raise ApiError(503, "the model makes no progress", retry_after=RETRY_AFTER_S)

    def _require_quota(self, num_requests: int) -> None:
        """Refuse (429) a call of a key that has sent enough; calls without keys have no quota."""
        caller = caller_name()
        if caller and (
            seconds := self._quotas.seconds_to_wait(caller, num_requests, time.monotonic())
        ):
            limit = self._quotas.per_minute
            message = f"this key may send {limit} requests in a minute; try again"
            raise ApiError(429, message, retry_after=seconds)

    @property
    def _worker(self) -> Worker:
        if self._started_worker is None:
            lanes = Lanes[ModelJob](
                self.judges,
                max_jobs=self.limits.queue_requests,
                max_tokens=self.limits.queue_tokens,
                window_tokens=window_tokens(self.judges.values()),
                caller_share=self.limits.key_queue_share,
            )
            self._started_worker = Worker(
                self.judges, lanes, self.metrics.count_window, self._watchdog
            )
        return self._started_worker

    async def _prepare(
        self,
        requests: Sequence[JudgeRequest],
        judges: Sequence[str],
        keys: Sequence[bytes | None],
        cached: Mapping[bytes, Verdict],
    ) -> dict[int, ModelJob | Verdict]:
        """Return a job for each request that is not in the cache, or its verdict if it has none."""
        numbers = [number for number, key in enumerate(keys) if key is None or key not in cached]
        outcomes = await self._jobs(
            [requests[number] for number in numbers], [judges[number] for number in numbers]
        )
        return dict(zip(numbers, outcomes, strict=True))

    async def _jobs(
        self, requests: Sequence[JudgeRequest], names: Sequence[str]
    ) -> list[ModelJob | Verdict]:
        asked = [
            Asked(request, name, self.judges[name], self.token_counters[name])
            for request, name in zip(requests, names, strict=True)
        ]
        return await self.intake.jobs(asked)

    @asynccontextmanager
    async def _queued(self, jobs: Sequence[ModelJob]) -> AsyncIterator[None]:
        """Keep the jobs of one call in the queue, and count how the call ends."""
        num_jobs = len(jobs)
        self._require_open()
        try:
            self._require_quota(num_jobs)
            self._worker.submit(jobs)
        except ApiError:
            self._count("rejected", num_jobs)
            raise
        self._quotas.take(caller_name(), num_jobs, time.monotonic())
        self._count("accepted", num_jobs)
        outcome = "abandoned"
        try:
            yield
            outcome = "answered"
        except ApiError:  # the deadline is over
            outcome = "expired"
            raise
        finally:
            self._count(outcome, num_jobs)
            if outcome == "answered":
                for job in jobs:
                    self.metrics.count_wait(job.judge, job.started_at - job.queued_at)
            else:
                self._worker.drop(jobs)

    async def _pieces(self, job: ModelJob, deadline: Deadline) -> AsyncGenerator[str]:
        """Queue a job and yield its text as it is written; then its future has the result."""
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        job.on_text = pieces.put_nowait
        job.future.add_done_callback(lambda _: pieces.put_nowait(None))
        async with self._queued([job]):
            while True:
                # Another task may ask for the next piece, so no timeout may span a yield.
                async with deadline.within():
                    piece = await pieces.get()
                if piece is None:
                    return
                yield piece

    def _collect(
        self,
        requests: Sequence[JudgeRequest],
        judges: Sequence[str],
        keys: Sequence[bytes | None],
        cached: Mapping[bytes, Verdict],
        outcomes: Mapping[int, ModelJob | Verdict],
    ) -> tuple[Verdict, ...]:
        """Return the verdicts of finished jobs and of the cache, and keep the new ones.

        Raises:
            ApiError: If a job has no verdict.
        """
        verdicts: list[Verdict] = []
        new: dict[bytes, Verdict] = {}
        fault: ApiError | None = None
        for number, key in enumerate(keys):
            if number in outcomes:
                outcome = outcomes[number]
                try:
                    verdict = outcome if isinstance(outcome, Verdict) else verdict_of(outcome)
                except ApiError as error:
                    fault = error
                    continue
                if key and verdict.status not in ("invalid", "judge_error"):
                    new[key] = verdict
            else:
                assert key
                verdict = cached[key].model_copy(
                    update={"id": requests[number].id, "judge_name": judges[number]}
                )
            self.metrics.count_verdict(judges[number], verdict)
            verdicts.append(verdict)
        if self._cache:
            self._cache.keep(new, cached)
        if fault:
            raise fault
        return tuple(verdicts)

    async def _keys(
        self, requests: Sequence[JudgeRequest], judges: Sequence[str]
    ) -> list[bytes | None]:
        """Return the key of each request in the cache, ``None`` for what is not kept."""
        if self._cache is None:
            return [None] * len(requests)
        graders = [self.judges[name] for name in judges]
        key = access_key.get()
        salt = key.sha256 if key and not self._share_cache else b""

        def keys() -> list[bytes | None]:
            return [cache_key(*of, salt) for of in zip(graders, requests, strict=True)]

        length = sum(len(image) for request in requests for image in request.images)
        return await self.readers.read(length, keys)

    async def _look_up(self, keys: Sequence[bytes | None]) -> dict[bytes, Verdict]:
        return await self._cache.look_up(list(filter(None, keys))) if self._cache else {}
