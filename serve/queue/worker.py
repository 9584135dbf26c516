"""The one thread that runs the model."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judging.errors import CustosError
from judging.judge import Judge
from judging.types import JudgeRequest, Pass
from serve.call_context import CallBytes, call_bytes
from serve.errors import RETRY_AFTER_S, ApiError
from serve.queue.lanes import Job, Lanes, Pace
from serve.queue.metrics import QueueState
from serve.queue.watchdog import Watchdog

logger = logging.getLogger("custos.serve")

LINGER_S = 0.004
"""How long to wait for others when a job comes into an empty queue."""
CLOSE_S = 10.0
OnText = Callable[[str], None]


@dataclass(eq=False)
class ModelJob(Job):
    """A job and where its result goes."""

    write: Callable[[OnText], Any] | None = None
    """For a job without a request: writes a text, given what to call with each piece of it."""
    on_text: OnText | None = None
    """Called on the event loop with each new piece of its text."""
    request_id: str = ""
    """Names the call in the log."""
    num_held: CallBytes | None = field(default_factory=call_bytes.get)
    """Bytes held for the call, of which this may be the last to let go."""
    future: asyncio.Future[Any] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    queued_at: float = field(default_factory=time.monotonic)
    started_at: float = 0.0
    ended_at: float = 0.0
    """0 if it was dropped before the model had it."""
    num_passed_on: int = 0
    """Characters of its text that its caller has already."""


class Abandoned(Exception):
    """Nobody waits any more for the texts that are being written."""


class Worker:
    """Runs jobs in a thread of its own, in the order that :class:`Lanes` gives.

    A text takes one forward pass per token. Between two tokens the thread grades a window of
    waiting scores whenever :class:`Pace` says that it is their turn; other texts wait.

    Made and used on one event loop.

    Args:
        judges: By name.
        lanes: Empty.
        on_window: Called on the event loop after each window: judge, number of jobs, seconds.
        watchdog: Hears of every step of the model.
    """

    def __init__(
        self,
        judges: Mapping[str, Judge],
        lanes: Lanes[ModelJob],
        on_window: Callable[[str, int, float], None],
        watchdog: Watchdog,
    ) -> None:
        self.judges = judges
        self.on_window = on_window
        self.watchdog = watchdog
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        """Held to read or change the lanes, what is running, and whether the worker is closed."""
        self._lanes = lanes
        self._pace = Pace()
        self._running: list[ModelJob] = []
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="judge", daemon=True)
        self._thread.start()

    # On the event loop.

    def submit(self, jobs: Sequence[ModelJob]) -> None:
        """Queue the jobs of one call, all or none.

        Raises:
            ApiError: 429 with the seconds after which there should be room.
        """
        with self._changed:
            self._require_room(jobs[0].caller, len(jobs), sum(job.tokens for job in jobs))
            self._lanes.add(jobs)
            self._changed.notify()

    def require_room(self, caller: str) -> None:
        """Refuse a caller's call if :meth:`submit` would refuse it however small it is.

        Raises:
            ApiError: As :meth:`submit`.
        """
        with self._changed:
            self._require_room(caller, 1, 1)

    def drop(self, jobs: Sequence[ModelJob]) -> None:
        """Take the jobs of one call out of the queue; results of running ones are not used."""
        for job in jobs:
            job.is_dropped = True
            job.future.cancel()
        with self._changed:
            self._lanes.remove(jobs)

    def queue(self, counters: Mapping[str, int], caller: str = "") -> QueueState:
        """Return what waits and what runs.

        Args:
            counters: Requests since the start, by outcome.
            caller: Name of an access key, to count its jobs alone.
        """
        with self._changed:
            waiting, running = (
                [job for job in jobs if not caller or job.caller == caller]
                for jobs in (self._lanes, self._running)
            )
        now = time.monotonic()
        oldest_s = now - min((job.queued_at for job in waiting), default=now)
        queued, runs = (
            {**dict.fromkeys(self.judges, 0), **Counter(job.judge for job in jobs)}
            for jobs in (waiting, running)
        )
        return QueueState(queued, runs, sum(job.tokens for job in waiting), oldest_s, counters)

    @property
    def is_alive(self) -> bool:
        """Return whether the thread still takes jobs."""
        return self._thread.is_alive()

    @property
    def is_idle(self) -> bool:
        """Return whether no job waits and none runs."""
        with self._changed:
            return not (self._lanes.num_jobs or self._running)

    def stop(self) -> None:
        """Refuse all that waits or runs, and let the thread end after its window."""
        with self._changed:
            self._closed = True
            jobs = [*self._lanes.clear(), *self._running]
            self._changed.notify()
        for job in jobs:
            _settle(job, ApiError(503, "the service has stopped", retry_after=RETRY_AFTER_S))

    def close(self) -> None:
        """Wait until the thread has ended, but not longer than ``CLOSE_S``."""
        self._thread.join(CLOSE_S)

    def _require_room(self, caller: str, num_jobs: int, tokens: int) -> None:
        has_share = self._lanes.has_share(caller, num_jobs, tokens)
        if not (has_share and self._lanes.has_room(num_jobs, tokens)):
            seconds = self._pace.retry_after(self._lanes.tokens, self._lanes.window_tokens)
            whose = "" if has_share else " of this key"
            message = f"too many requests{whose} are waiting; try again"
            raise ApiError(429, message, retry_after=seconds)

    # On the model thread.

    def _work(self) -> None:
        while (window := self._next_window()) is not None:
            if window:
                self._run(window)

    def _next_window(self) -> list[ModelJob] | None:
        """Wait for jobs and take a window of them; return ``None`` when closed."""
        with self._changed:
            while not (self._lanes.num_jobs or self._closed):
                self._changed.wait()
                # Others are likely to follow the first that comes into an empty queue.
                self._changed.wait_for(self._has_full_window, LINGER_S)
            self._changed.wait_for(
                lambda: (
                    self._has_full_window() or self._pace.are_callers_back(self._lanes.num_jobs)
                ),
                self._pace.seconds_for_callers(time.monotonic()),
            )
            return None if self._closed else self._start(self._lanes.take())

    def _has_full_window(self) -> bool:
        return self._closed or self._lanes.has_full_window

    def _start(self, window: list[ModelJob]) -> list[ModelJob]:
        self._running += window
        for job in window:
            if job.num_held:
                job.num_held.hold()
        return window

    def _run(self, window: list[ModelJob]) -> None:
        start = time.monotonic()
        for job in window:
            job.started_at = start
        self.watchdog.beat()
        try:
            self._settle_all(window)
        finally:
            with self._changed:
                self._running = [job for job in self._running if job not in window]
                is_idle = not self._running
            for job in window:
                if job.num_held:
                    job.num_held.release()
            if is_idle:  # otherwise scores have interrupted a text, which goes on
                self.watchdog.rest()
        ended = [job for job in window if job.ended_at]
        if not ended:
            return
        now = time.monotonic()
        if window[0].kind == "score":
            with self._changed:
                self._pace.count_scores(
                    now,
                    now - start,
                    num_jobs=len(ended),
                    tokens=sum(job.tokens for job in ended),
                    num_waiting=self._lanes.num_jobs,
                )
        self._call(self.on_window, window[0].judge, len(ended), now - start)

    def _settle_all(self, window: list[ModelJob]) -> None:
        """Give every job its result; if jobs fail together, try each half again."""
        window = [job for job in window if not job.is_dropped]
        if not window:
            return
        results: list[Any] = []
        fault = ""
        try:
            results = self._results(window)
        except Abandoned:
            return
        except ApiError as error:
            results = [error]
        except CustosError as error:  # the same for all, as when the model's server is down
            for job in window:
                logger.warning("request %s: %s", job.request_id, error)
            results = [error] * len(window)
        except Exception as error:
            if len(window) == 1:
                logger.exception("request %s failed", window[0].request_id)
                results = [error.with_traceback(None)]
            else:
                fault = f"{type(error).__name__}: {error}"
        if fault:
            # Only now: as long as an error is handled, its traceback holds the model's memory, of
            # which there may have been too little.
            message = "%d requests failed together; trying halves: %s"
            logger.warning(message, len(window), fault)
            self._settle_all(window[: len(window) // 2])
            self._settle_all(window[len(window) // 2 :])
            return
        now = time.monotonic()
        for job in window:
            job.ended_at = now
        self._call(_settle_each, window, results)

    def _results(self, window: list[ModelJob]) -> list[Any]:
        if write := window[0].write:
            return [write(lambda piece: self._pass_on(window[0], window, piece))]
        requests = [job.request for job in window if job.request]
        judge = self.judges[window[0].judge]
        jobs = {id(job.request): job for job in window}

        def is_wanted(request: JudgeRequest) -> bool:
            self.watchdog.beat()
            return not jobs[id(request)].is_dropped

        if window[0].kind == "score":
            return list(judge.grade(requests, is_wanted=is_wanted))
        num_written = dict.fromkeys(jobs, 0)

        def on_text(request: JudgeRequest, presentation: Pass, piece: str) -> None:
            job = jobs[id(request)]
            if presentation.order != "given":
                return self._pass_on(job, window, "")
            num_written[id(request)] += len(piece)
            num_new = num_written[id(request)] - job.num_passed_on  # text comes again in halves
            self._pass_on(job, window, piece[-num_new:] if num_new > 0 else "")

        return list(judge.grade(requests, on_text=on_text))

    def _pass_on(self, job: ModelJob, window: list[ModelJob], piece: str) -> None:
        """Pass on a piece of a text, and let scores go first when it is their turn.

        Raises:
            Abandoned: If nobody waits for any text of the window.
        """
        self.watchdog.beat()
        if self._closed or all(job.is_dropped for job in window):
            raise Abandoned
        if piece and job.on_text and not job.is_dropped:
            job.num_passed_on += len(piece)
            self._call(job.on_text, piece)
        start = time.monotonic()
        if not self._pace.may_interrupt_text(start):
            return
        with self._changed:
            scores = self._start(self._lanes.take(["score"]))
        if scores:
            self._run(scores)
            self._pace.count_interruption(start, time.monotonic())

    def _call(self, function: Callable[..., None], *values: Any) -> None:
        """Call a function on the event loop, unless that has ended."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *values)


def _settle_each(jobs: Sequence[ModelJob], results: Sequence[Any]) -> None:
    for job, result in zip(jobs, results, strict=True):
        _settle(job, result)


def _settle(job: ModelJob, result: Any) -> None:
    if job.future.done():
        return
    if isinstance(result, Exception):
        job.future.set_exception(result)
    else:
        job.future.set_result(result)
