"""What every route shares: the judges, the queue in front of them, limits and counters."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

from judging import CustosError, Judge, JudgeRequest, Verdict
from serve.call_context import access_key, caller_name, request_id
from serve.errors import RETRY_AFTER_S, ApiError
from serve.limits import Limits
from serve.queue.estimate import request_tokens, window_tokens
from serve.queue.lanes import Lanes
from serve.queue.metrics import OUTCOMES, Metrics, QueueState
from serve.queue.quotas import Quotas
from serve.queue.results import text_of, verdict_of
from serve.queue.verdict_cache import VerdictCache, cache_key
from serve.queue.worker import ModelJob, OnText, Worker

State = Literal["starting", "ready", "draining"]
T = TypeVar("T")


@dataclass
class Timing:
    """How long the slowest request of a call took, in seconds."""

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
        self.token_counters: Mapping[str, Callable[[str], int]] = {}
        self.limits = limits or Limits()
        self.state: State = "starting"
        self.metrics = Metrics(self.queue)
        self._cache = cache
        self._share_cache = share_cache
        self._quotas = Quotas(self.limits.key_requests_per_minute)
        self._cache_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cache")
        self._counters = Counter(dict.fromkeys(OUTCOMES, 0))
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
        """Grade checked requests; if the call is cancelled, they leave the queue.

        Args:
            requests: Any number up to the limit; they enter the queue together or not at all.
            judges: Name of the judge of each.
            deadline: Seconds from now; default and at most ``limits.deadline_s``.
            timing: Filled in.

        Returns:
            One verdict per request, in order. A request that the judge cannot take has status
            ``invalid``, one that breaks it ``judge_error``; the others are graded all the same.

        Raises:
            ApiError: 429 when the queue is full, 503 when starting or draining or when a model's
                server fails (what is graded by then stays in the cache), 504 past the deadline.
        """
        keys = [self._key(name, request) for request, name in zip(requests, judges, strict=True)]
        cached = await self._look_up([key for key in keys if key])
        jobs = {
            number: await self._job(requests[number], judges[number])
            for number, key in enumerate(keys)
            if key is None or key not in cached
        }
        if jobs:
            async with self._queued(list(jobs.values()), deadline) as end, asyncio.timeout_at(end):
                await asyncio.wait([job.future for job in jobs.values()])
            if timing:
                last = max(jobs.values(), key=lambda job: job.ended_at)
                timing.queue = last.started_at - last.queued_at
                timing.inference = last.ended_at - last.started_at
        self._counters["cached"] += len(requests) - len(jobs)
        return self._collect(requests, judges, keys, cached, jobs)

    async def stream(
        self, request: JudgeRequest, judge: str, *, deadline: float | None = None
    ) -> AsyncGenerator[str | Verdict]:
        """Grade one checked request, yielding pieces of its critique, then the verdict.

        In mode ``score`` there are no pieces. Of a pair in both orders only the critique of the
        order given is streamed. The cache is not used. Closing the iterator stops the text.

        Raises:
            ApiError: As :meth:`grade`.
        """
        job = await self._job(request, judge)
        async with aclosing(self._pieces(job, deadline)) as pieces:
            async for piece in pieces:
                yield piece
        verdict = verdict_of(job)
        self.metrics.count_verdict(judge, verdict)
        yield verdict

    async def write(
        self,
        judge: str,
        write: Callable[[OnText], T],
        tokens: int,
        *,
        deadline: float | None = None,
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
        job = ModelJob(
            *(judge, "text", tokens),
            write=write,
            caller=caller_name(),
            request_id=request_id.get(),
        )
        async with aclosing(self._pieces(job, deadline)) as pieces:
            async for piece in pieces:
                yield piece
        yield text_of(job)

    def queue(self) -> QueueState:
        """Return what waits and runs now, and what happened since the start."""
        if self._started_worker is None:
            idle = dict.fromkeys(self.judges, 0)
            return QueueState(idle, idle, 0, dict(self._counters))
        waiting = self._started_worker.waiting()
        return QueueState(waiting.queued, waiting.running, waiting.tokens, dict(self._counters))

    @property
    def is_idle(self) -> bool:
        """Return whether every accepted request has been graded."""
        return self._started_worker is None or self._started_worker.is_idle

    @property
    def is_alive(self) -> bool:
        """Return whether the model thread takes work."""
        return self._started_worker is None or self._started_worker.is_alive

    def drain(self) -> None:
        """Accept nothing more; what is in the queue is still graded."""
        self.state = "draining"

    def close(self) -> None:
        """Drop what waits, let a running window end, and close the cache."""
        self.state = "draining"
        if self._started_worker:
            self._started_worker.close()
        self._cache_thread.shutdown()
        if self._cache:
            self._cache.close()

    def _require_open(self) -> None:
        if self.state != "ready":
            raise ApiError(503, f"the service is {self.state}", retry_after=RETRY_AFTER_S)

    def _require_quota(self, num_requests: int) -> None:
        """Refuse a call of a key that has sent enough; calls without keys have no quota.

        Raises:
            ApiError: 429.
        """
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
            self._started_worker = Worker(self.judges, lanes, self.metrics.count_window)
        return self._started_worker

    async def _job(self, request: JudgeRequest, name: str) -> ModelJob:
        kind: Literal["score", "text"] = "text" if request.mode == "critique" else "score"
        judge = self.judges[name]
        if request.images:  # reading their headers takes milliseconds that other calls need
            tokens = await asyncio.to_thread(request_tokens, request, judge)
        else:
            tokens = request_tokens(request, judge)
        return ModelJob(
            *(name, kind, tokens, request), caller=caller_name(), request_id=request_id.get()
        )

    @asynccontextmanager
    async def _queued(
        self, jobs: Sequence[ModelJob], deadline: float | None
    ) -> AsyncIterator[float]:
        """Keep the jobs of one call in the queue, and count how the call ends.

        Yields:
            The time of the event loop at which its deadline is over. A ``TimeoutError`` becomes the
            answer 504.
        """
        num_jobs = len(jobs)
        self._require_open()
        try:
            self._require_quota(num_jobs)
            self._worker.submit(jobs)
        except ApiError:
            self._counters["rejected"] += num_jobs
            raise
        self._quotas.take(caller_name(), num_jobs, time.monotonic())
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
                    self.metrics.count_wait(job.judge, job.started_at - job.queued_at)
            else:
                self._worker.drop(jobs)

    async def _pieces(self, job: ModelJob, deadline: float | None) -> AsyncGenerator[str]:
        """Queue a job and yield its text as it is written; then its future has the result."""
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        job.on_text = pieces.put_nowait
        job.future.add_done_callback(lambda _: pieces.put_nowait(None))
        async with self._queued([job], deadline) as end:
            while True:
                # Another task may ask for the next piece, so no timeout may span a yield.
                async with asyncio.timeout_at(end):
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
        jobs: Mapping[int, ModelJob],
    ) -> tuple[Verdict, ...]:
        """Return the verdicts of finished jobs and of the cache, and keep the new ones.

        Raises:
            ApiError: If a job has no verdict.
        """
        verdicts: list[Verdict] = []
        new: dict[bytes, Verdict] = {}
        fault: ApiError | None = None
        for number, key in enumerate(keys):
            if number in jobs:
                try:
                    verdict = verdict_of(jobs[number])
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
        if new and self._cache:
            self._cache_thread.submit(self._cache.put, new)
        if fault:
            raise fault
        return tuple(verdicts)

    def _key(self, judge: str, request: JudgeRequest) -> bytes | None:
        if self._cache is None:
            return None
        key = access_key.get()
        salt = key.sha256 if key and not self._share_cache else b""
        return cache_key(self.judges[judge], request, salt)

    async def _look_up(self, keys: Sequence[bytes]) -> dict[bytes, Verdict]:
        if not keys or self._cache is None:
            return {}
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._cache_thread, self._cache.get, keys)
