"""The service behind every route: judges, the queue in front of them, limits and counters."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from clients.connection import RequestRefused
from judging import CustosError, JudgeRequest, Verdict
from judging.errors import FieldError
from judging.files.pictures import PictureSize
from judging.judge import Judge
from serve.calls.context import access_key, caller_name, request_id, require_open
from serve.calls.errors import RETRY_AFTER_S, ApiError
from serve.calls.limits import Limits
from serve.calls.waiting import Deadline, Readers
from serve.pictures.received import RemoteImages
from serve.queue.cache import CacheAccess, VerdictCache, cache_key
from serve.queue.intake import CheckedRequest, Intake, TokenCounter
from serve.queue.lanes import Lanes
from serve.queue.metrics import OUTCOMES, Metrics, QueueState
from serve.queue.worker import ModelJob, OnText, Watchdog, Worker

logger = logging.getLogger("custos.serve")

WINDOW_BATCHES = 12
"""Forward passes of a full window."""
WINDOW_TOKENS = 4096
"""Window of judges that do not say how many tokens a forward pass takes."""

State = Literal["starting", "ready", "draining"]
T = TypeVar("T")


@dataclass
class Timing:
    """The times of the slowest request of a call, in seconds."""

    queue: float = 0.0
    inference: float = 0.0


class Quotas:
    """A limit on the requests of every caller in a minute, without a clock of its own.

    Each caller has an allowance of one minute's requests, which refills all the time. A single call
    with more requests than that needs the whole allowance, and the caller then waits for longer.
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._allowances: dict[str, tuple[float, float]] = {}
        """Requests that a caller may still send, as of a time."""

    def seconds_to_wait(self, caller: str, num_requests: int, now: float) -> int:
        """Count the whole seconds until a caller may send requests; 0 if it may at once."""
        missing = min(num_requests, self.per_minute) - self._left(caller, now)
        return math.ceil(60 * missing / self.per_minute) if missing > 0 else 0

    def take(self, caller: str, num_requests: int, now: float) -> None:
        """Count requests that a caller has sent."""
        self._allowances[caller] = self._left(caller, now) - num_requests, now

    def _left(self, caller: str, now: float) -> float:
        left, at = self._allowances.get(caller, (self.per_minute, now))
        return min(self.per_minute, left + (now - at) * self.per_minute / 60)


class Service:
    """Judges behind one queue and one model thread, for one event loop.

    Judges have the names that clients call them; without any, the service is ``starting`` until
    :meth:`open`. Without ``remote_images`` only data URLs of pictures are taken. ``share_cache``
    answers one access key with verdicts that were kept for another.
    """

    def __init__(
        self,
        judges: Mapping[str, Judge] | None = None,
        limits: Limits | None = None,
        *,
        cache: VerdictCache | None = None,
        remote_images: RemoteImages | None = None,
        share_cache: bool = False,
    ) -> None:
        self.judges: Mapping[str, Judge] = {}
        self.token_counters: Mapping[str, TokenCounter] = {}
        self.limits = limits or Limits()
        self.metrics = Metrics(self.queue)
        self.readers = Readers(self.limits.key_queue_share)
        self.intake = Intake(self.limits.picture_seconds, self.readers)
        self.remote_images = remote_images
        self._is_draining = False
        self._cache = CacheAccess(cache, self.metrics.count_cache_fault) if cache else None
        self._share_cache = share_cache
        rate = self.limits.key_requests_per_minute
        self._quotas = Quotas(rate) if rate else None
        self._watchdog = Watchdog(self.limits.stall_s)
        self._counters = defaultdict[str, Counter[str]](Counter)
        self._started_worker: Worker | None = None
        if judges is not None:
            self.open(judges)

    def open(self, judges: Mapping[str, Judge]) -> None:
        """Begin to accept requests; raise ``CustosError`` if there is no judge."""
        if not judges:
            raise CustosError("a service needs at least one judge")
        self.token_counters = {name: judge.encoder.counter() for name, judge in judges.items()}
        self.judges = judges

    @property
    def state(self) -> State:
        """Tell whether the service takes requests."""
        if self._is_draining:
            return "draining"
        return "ready" if self.judges else "starting"

    @property
    def health(self) -> str:
        """Give the state of the service, ``stalled`` or ``stopped`` if that of its model is."""
        if self._watchdog.is_stalled:
            return "stalled"
        is_stopped = self._started_worker and not self._started_worker.is_alive
        return "stopped" if is_stopped else self.state

    def admit(self, jobs: Sequence[ModelJob] = ()) -> None:
        """Queue the jobs of one call, all or none; without jobs, only see if one would be taken.

        Routes do the latter before they read a body: under too much load, a refusal must cost next
        to nothing. Raises ``ApiError`` 503 if the service does not take requests, 429 if the caller
        has sent too many in a minute or the queue is full.
        """
        caller, num_jobs = caller_name(), len(jobs) or 1
        if self.state != "ready":
            raise ApiError(503, f"the service is {self.state}", retry_after=RETRY_AFTER_S)
        if self._watchdog.is_stalled:
            raise ApiError(503, "the model makes no progress", retry_after=RETRY_AFTER_S)
        quotas = self._quotas if caller else None  # calls without keys have none
        now = time.monotonic()
        try:
            if quotas and (seconds := quotas.seconds_to_wait(caller, num_jobs, now)):
                message = f"this key may send {quotas.per_minute} requests in a minute; try again"
                raise ApiError(429, message, retry_after=seconds)
            self._worker.submit(caller, jobs)
        except ApiError:
            self._count("rejected", num_jobs)
            raise
        if jobs:
            if quotas:
                quotas.take(caller, num_jobs, now)
            self._count("accepted", num_jobs)

    def checked(
        self,
        request: JudgeRequest,
        judge: str,
        images: tuple[str, ...] | None = None,
        sizes: tuple[PictureSize, ...] = (),
    ) -> CheckedRequest:
        """Name the judge of a request that is resolved and within limits; put its pictures in."""
        if images not in (None, request.images):  # a copy keeps which fields the client has set
            request = request.model_copy(update={"images": images})
        return CheckedRequest(request, judge, self.judges[judge], sizes)

    async def grade(
        self,
        requests: Sequence[CheckedRequest],
        deadline: Deadline,
        timing: Timing | None = None,
    ) -> tuple[Verdict, ...]:
        """Grade requests, a verdict for each in order; if the call is cancelled, they are dequeued.

        They enter the queue together or not at all. A request that the judge cannot take has status
        ``invalid``, and if that is seen beforehand it never enters the queue. One that breaks the
        judge has ``judge_error``. The others are graded all the same. ``timing`` is filled in.
        Raises ``ApiError`` as :meth:`admit`; 503 when a model's server fails (what is graded by
        then stays in the cache), 504 past the deadline.
        """
        async with deadline.within():
            keys = await self._keys(requests)
            cached = await self._cache.look_up(list(filter(None, keys))) if self._cache else {}
            numbers = [n for n, key in enumerate(keys) if key is None or key not in cached]
            prepared = await self.intake.jobs([requests[n] for n in numbers], self.token_counters)
        jobs = [job for job in prepared if isinstance(job, ModelJob)]
        if jobs:
            async with self._queued(jobs), deadline.within():
                await asyncio.wait([job.future for job in jobs])
            if timing:
                last = max(jobs, key=lambda job: job.ended_at)
                timing.queue = last.started_at - last.queued_at
                timing.inference = last.ended_at - last.started_at
        self._count("cached", len(requests) - len(prepared))
        return self._collect(requests, keys, cached, dict(zip(numbers, prepared, strict=True)))

    async def stream(
        self, request: CheckedRequest, deadline: Deadline
    ) -> AsyncGenerator[str | Verdict]:
        """Grade one request, yielding pieces of its critique, then the verdict.

        In mode ``score`` there are no pieces. Of a pair in both orders only the critique of the
        order given is streamed. The cache is not used. Closing the iterator stops the text. Raises
        ``ApiError`` as :meth:`grade`.
        """
        async with deadline.within():
            [outcome] = await self.intake.jobs([request], self.token_counters)
        if isinstance(outcome, ModelJob):
            async with aclosing(self._pieces(outcome, deadline)) as pieces:
                async for piece in pieces:
                    yield piece
            outcome = _verdict_of(outcome)
        self.metrics.count_verdict(request.name, outcome)
        yield outcome

    async def write(
        self, judge: str, write: Callable[[OnText], T], tokens: int, deadline: Deadline
    ) -> AsyncGenerator[str | T]:
        """Write a text on the model thread, yielding its pieces, then what ``write`` returns.

        ``write`` is given what to call with each piece, and costs about ``tokens``. Raises
        ``ApiError`` as :meth:`grade`; 422 if the model cannot read its messages.
        """
        caller, call_id = caller_name(), request_id.get()
        job = ModelJob(judge, "text", tokens, write=write, caller=caller, request_id=call_id)
        async with aclosing(self._pieces(job, deadline)) as pieces:
            async for piece in pieces:
                yield piece
        yield _text_of(job)

    def queue(self, caller: str = "") -> QueueState:
        """Count what waits, runs and has happened: of all, or of the access key of a name."""
        counters = {outcome: self._counters[caller][outcome] for outcome in OUTCOMES}
        if self._started_worker:
            return self._started_worker.queue(counters, caller)
        idle = dict.fromkeys(self.judges, 0)
        return QueueState(idle, idle, 0, 0.0, counters)

    @property
    def is_idle(self) -> bool:
        """Tell whether every accepted request has been graded."""
        return self._started_worker is None or self._started_worker.is_idle

    def drain(self) -> None:
        """Accept nothing more; what is in the queue is still graded."""
        self._is_draining = True

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

    @asynccontextmanager
    async def _queued(self, jobs: Sequence[ModelJob]) -> AsyncIterator[None]:
        """Keep the jobs of one call in the queue, and count how the call ends."""
        self.admit(jobs)
        outcome = "abandoned"
        try:
            yield
            outcome = "answered"
        except ApiError:  # the deadline is over
            outcome = "expired"
            raise
        finally:
            self._count(outcome, len(jobs))
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

    async def _keys(self, requests: Sequence[CheckedRequest]) -> list[bytes | None]:
        """Hash each request to its key in the cache, ``None`` for what is not kept."""
        if self._cache is None:
            return [None] * len(requests)
        key = access_key.get()
        salt = key.sha256 if key and not self._share_cache else b""
        length = sum(each.length for each in requests)
        return await self.readers.read(length, _keys_of, requests, salt)

    def _collect(
        self,
        requests: Sequence[CheckedRequest],
        keys: Sequence[bytes | None],
        cached: Mapping[bytes, Verdict],
        outcomes: Mapping[int, ModelJob | Verdict],
    ) -> tuple[Verdict, ...]:
        """Collect the verdicts of finished jobs and of the cache, and keep the new ones.

        Raises ``ApiError`` if a job has no verdict.
        """
        verdicts: list[Verdict] = []
        new: dict[bytes, Verdict] = {}
        fault: ApiError | None = None
        for number, (checked, key) in enumerate(zip(requests, keys, strict=True)):
            if number in outcomes:
                outcome = outcomes[number]
                try:
                    verdict = outcome if isinstance(outcome, Verdict) else _verdict_of(outcome)
                except ApiError as error:
                    fault = error
                    continue
                if key and verdict.status not in ("invalid", "judge_error"):
                    new[key] = verdict
            else:
                assert key
                named = {"id": checked.request.id, "judge_name": checked.name}
                verdict = cached[key].model_copy(update=named)
            self.metrics.count_verdict(checked.name, verdict)
            verdicts.append(verdict)
        if self._cache:
            self._cache.keep(new, cached)
        if fault:
            raise fault
        return tuple(verdicts)


def _keys_of(requests: Sequence[CheckedRequest], salt: bytes) -> list[bytes | None]:
    keys: list[bytes | None] = []
    for each in requests:
        require_open()
        keys.append(cache_key(each.judge, each.request, salt))
    return keys


def window_tokens(judges: Iterable[Judge]) -> int:
    """Choose how many tokens to give a judge at once: the most that suits one of the judges."""
    budgets = (getattr(judge.engine, "token_budget", None) for judge in judges)
    return max(WINDOW_BATCHES * budget if budget else WINDOW_TOKENS for budget in budgets)


# A fault's text may come from another server, or show paths of this one, so it goes to the log.


def _verdict_of(job: ModelJob) -> Verdict:
    """Read the verdict of a job with a request, under the name that clients call its judge.

    Raises ``ApiError`` 503 if the service or the model's server ended, so that a client asks again
    instead of keeping a verdict without a label.
    """
    assert job.request
    error = job.future.exception()
    if isinstance(error, CustosError | ApiError):
        raise _refusal(job, error)
    if error:
        message = f"internal error; {_log_entry(job)}"
        return Verdict(
            id=job.request.id, status="judge_error", message=message, judge_name=job.judge
        )
    verdict: Verdict = job.future.result().model_copy(update={"judge_name": job.judge})
    if verdict.status not in ("invalid", "judge_error") or verdict.field_error:
        return verdict
    logger.warning("request %s: %s", job.request_id, verdict.message)
    message = f"the judge could not grade this; {_log_entry(job)}"
    return verdict.model_copy(update={"message": message})


def _text_of(job: ModelJob) -> Any:
    """Return what the function of a job without a request returned, or raise an ``ApiError``."""
    error = job.future.exception()
    if error is None:
        return job.future.result()
    if isinstance(error, RequestRefused):
        raise ApiError(422, f"the model cannot read this; {_log_entry(job)}", "messages")
    if isinstance(error, FieldError):
        raise ApiError(422, f"{error.field}: {error.message}", "messages")
    raise _refusal(job, error)


def _refusal(job: ModelJob, error: BaseException) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, CustosError):
        message = f"the model's server fails; {_log_entry(job)}"
        return ApiError(503, message, retry_after=RETRY_AFTER_S)
    return ApiError(500, f"internal error; {_log_entry(job)}")


def _log_entry(job: ModelJob) -> str:
    return f"the log has it under request {job.request_id}"
