"""The one thread that runs the model."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judging import CustosError, JudgeRequest, Verdict
from judging.judge import Judge
from judging.scoring.engine import Unwanted
from judging.types import Pass
from serve.calls.context import CallBytes, call_bytes
from serve.calls.errors import RETRY_AFTER_S, ApiError
from serve.queue.lanes import SHORT_S, Job, Lanes, Pace, Window
from serve.queue.metrics import QueueState

logger = logging.getLogger("custos.serve")

LINGER_S = 0.004
"""How long to wait for others when a job comes into an empty queue."""
CLOSE_S = 10.0
"""Longest wait for the thread to end."""
MAX_INTERRUPTIONS = 3
"""Most windows that may be interrupted, one within another."""
TICKS = 100
"""Ticks of the watchdog in the longest time without progress."""
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
    """Bytes held for the call, which the job may hold for longer than the call lasts."""
    future: asyncio.Future[Any] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    queued_at: float = field(default_factory=time.monotonic)
    started_at: float = 0.0
    ended_at: float = 0.0
    """0 until it has a result; a job that is dropped has none."""
    is_read: bool = False
    """True once a model has read it; false if a rule decided it, or it failed."""
    num_passed_on: int = 0
    """Characters of its text that its caller has already."""


class Watchdog:
    """Watch that ends the process if the model makes no progress for ``seconds``; 0: never.

    A supervisor can then start it again. What every thread was doing goes to the log. Time is
    counted in ticks of a thread, so that it stands still while the process is stopped, as by
    ``docker pause``.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._works = False
        self._waited = 0.0
        if seconds:
            threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def beat(self) -> None:
        """Take note of progress."""
        self._works, self._waited = True, 0.0

    def rest(self) -> None:
        """Stop waiting for progress: the model has nothing to do."""
        self._works, self._waited = False, 0.0

    @property
    def is_stalled(self) -> bool:
        """Tell whether half of the time has gone without progress."""
        return self._works and self._waited > self.seconds / 2

    def _watch(self) -> None:
        tick = self.seconds / TICKS
        while True:
            before = time.monotonic()
            time.sleep(tick)
            if self._works:
                # If a tick took much longer, the process was stopped and the model could not work.
                self._waited += min(time.monotonic() - before, 2 * tick)
                if self._waited > self.seconds:
                    self._end()

    def _end(self) -> None:
        with tempfile.TemporaryFile() as file:  # a pipe that nobody reads would stop it here
            faulthandler.dump_traceback(file)
            file.seek(0)
            threads = file.read().decode(errors="replace")
        logger.critical("the model makes no progress for %g s; the process ends", self.seconds)
        for line in threads.splitlines():
            logger.critical("    %s", line)
        logging.shutdown()
        os._exit(1)


class Abandoned(Exception):
    """Signal that nobody waits any more for anything of the running window."""


class Worker:
    """Thread that runs jobs, in the order that :class:`Lanes` gives.

    A window of waiting jobs can interrupt the running one: between two layers of the model, and
    between two tokens of a text. Scores that are due earlier interrupt scores, and texts that are
    due earlier interrupt texts. Scores also interrupt a text whenever :class:`Pace` says that it is
    their turn.

    A worker is made and used on one event loop, on which ``on_window`` is called after each window
    with judge, number of jobs and seconds. The watchdog hears of every step of the model.
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
        self._put_off: set[ModelJob] = set()
        """Jobs of running windows that go back to the queue before the model gets them."""
        self._windows: list[Window[ModelJob]] = []
        """Windows that run. Each has interrupted the one before it."""
        self._interrupting = threading.RLock()
        """Held to run an interrupting window: of the threads that compute passes, only one does so
        at a time. That window may itself be interrupted in the same thread."""
        self._interrupted_s = 0.0
        """Seconds of all windows that interrupted another."""
        self._rests_since = time.monotonic()
        """When the last window ended; only read while nothing runs and nothing waits."""
        self._closed = False
        for judge in judges.values():
            judge.call_between_layers(self._let_others_go_first)
        self._thread = threading.Thread(target=self._work, name="judge", daemon=True)
        self._thread.start()

    # On the event loop.

    def submit(self, caller: str, jobs: Sequence[ModelJob]) -> None:
        """Queue the jobs of one call, all or none; without jobs, only see if one would fit.

        Raises ``ApiError`` 429 with the seconds after which there should be room.
        """
        num_jobs, tokens = len(jobs) or 1, sum(job.tokens for job in jobs) or 1
        with self._changed:
            has_share = self._lanes.has_share(caller, num_jobs, tokens)
            has_room = self._lanes.has_room(num_jobs, tokens)
            if not (has_share and (has_room or self._lanes.is_owed(caller, num_jobs, tokens))):
                seconds = self._pace.retry_after(self._lanes.tokens, self._lanes.window_tokens)
                whose = "" if has_share else " of this key"
                message = f"too many requests{whose} are waiting; try again"
                raise ApiError(429, message, retry_after=seconds)
            if not (self._lanes.num_jobs or self._running):
                rested_s = time.monotonic() - self._rests_since
                self._lanes.let_pass(rested_s * self._pace.tokens_per_second)
                self._rests_since += rested_s
            self._lanes.add(jobs)
            self._changed.notify()

    def drop(self, jobs: Sequence[ModelJob]) -> None:
        """Take the jobs of one call out of the queue; results of running ones are not used."""
        for job in jobs:
            job.is_dropped = True
            job.future.cancel()
        with self._changed:
            self._lanes.remove(jobs)

    def queue(self, counters: Mapping[str, int], caller: str = "") -> QueueState:
        """Count what waits and what runs, of all callers or of the one that is named."""
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
        """Tell whether the thread still takes jobs."""
        return self._thread.is_alive()

    @property
    def is_idle(self) -> bool:
        """Tell whether no job waits and none runs."""
        with self._changed:
            return not (self._lanes.num_jobs or self._running)

    def stop(self) -> None:
        """Refuse all that waits or runs, and let the thread end after its window."""
        with self._changed:
            self._closed = True
            jobs = [*self._lanes, *self._running]
            self._lanes.remove(list(self._lanes))
            self._changed.notify()
        error = ApiError(503, "the service has stopped", retry_after=RETRY_AFTER_S)
        _settle([(job, error) for job in jobs])

    def close(self) -> None:
        """Wait until the thread has ended, for a limited time."""
        self._thread.join(CLOSE_S)

    # On the model thread.

    def _work(self) -> None:
        while (window := self._next_window()) is not None:
            if window:
                self._run(window)

    def _next_window(self) -> Window[ModelJob] | None:
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
        return self._closed or self._lanes.tokens >= self._lanes.window_tokens

    def _start(self, window: Window[ModelJob]) -> Window[ModelJob]:
        self._running += window
        for job in window:
            if job.num_held:
                job.num_held.hold()
        return window

    def _let_others_go_first(self) -> None:
        """Run the waiting jobs that go before the running window, which then goes on.

        Called before every layer of the model and after every token of a text. Raises ``Abandoned``
        if nobody waits for the running window any more.
        """
        self.watchdog.beat()
        if not self._interrupting.acquire(blocking=False):
            return
        try:
            # The model also runs without a window, as when it is warmed up.
            while 0 < len(self._windows) <= MAX_INTERRUPTIONS:
                window, start = self._windows[-1], time.monotonic()
                if self._closed or all(job.is_dropped for job in window):
                    raise Abandoned
                if not self._lanes.num_jobs:
                    return
                with self._changed:
                    others = self._start(self._take_before(window, start))
                if not others:
                    return
                interrupted_s = self._interrupted_s
                self._run(others)
                end = time.monotonic()
                self._interrupted_s = interrupted_s + end - start
                if window[0].kind == "text" and others[0].kind == "score":
                    self._pace.count_interruption(start, end)
        finally:
            self._interrupting.release()

    def _take_before(self, window: Window[ModelJob], now: float) -> Window[ModelJob]:
        """Take out the window that goes before the running one; empty if none does."""
        if window[0].kind == "score":
            return self._lanes.take(["score"], window.due)
        if self._pace.may_interrupt_text(now) and (scores := self._lanes.take(["score"])):
            return scores
        if len(self._windows) == MAX_INTERRUPTIONS:  # the last place is for scores
            return Window()
        return self._lanes.take(["text"], window.due)

    def _run(self, window: Window[ModelJob]) -> None:
        start, interrupted_s = time.monotonic(), self._interrupted_s
        for job in window:
            job.started_at = start
        self.watchdog.beat()
        self._windows.append(window)
        try:
            self._settle_all(window)
        finally:
            self._windows.pop()
            with self._changed:
                returned = [job for job in window if job in self._put_off and not job.is_dropped]
                if not self._closed:
                    self._lanes.put_back(returned)
                self._put_off.difference_update(window)
                self._running = [job for job in self._running if job not in window]
                is_idle = not self._running
                self._rests_since = time.monotonic()
            for job in window:
                if job.num_held:
                    job.num_held.release()
            if is_idle:  # otherwise it has interrupted another, which goes on
                self.watchdog.rest()
        now = time.monotonic()
        seconds = now - start - (self._interrupted_s - interrupted_s)
        ended = [job for job in window if job.ended_at]
        if window[0].kind == "score":
            with self._changed:
                if ended and self._interrupted_s == interrupted_s:
                    self._pace.count_scores(
                        now,
                        seconds,
                        num_jobs=len(ended),
                        tokens=sum(job.tokens for job in ended if job.is_read),
                        num_waiting=self._lanes.num_jobs,
                    )
                    self._lanes.short_tokens = self._pace.short_tokens(self._lanes.window_tokens)
                if speed := self._pace.tokens_per_second:
                    # Jobs that were dropped have taken time too.
                    run = [job for job in window if job not in returned]
                    self._lanes.charge_taken(run, seconds * speed)
        if ended:
            self._call(self.on_window, window[0].judge, len(ended), seconds)

    def _settle_all(self, window: list[ModelJob]) -> None:
        """Give every job its result; if jobs fail together, try each half again."""
        window = [job for job in window if not (job.is_dropped or job in self._put_off)]
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
            # Not in the except block, where the error's traceback would still hold the memory of
            # the model, of which there may have been too little.
            message = "%d requests failed together; trying halves: %s"
            logger.warning(message, len(window), fault)
            self._settle_all(window[: len(window) // 2])
            self._settle_all(window[len(window) // 2 :])
            return
        now = time.monotonic()
        for job in window:
            if not (job.is_dropped or job in self._put_off):
                job.ended_at = now
        done = [each for each in zip(window, results, strict=True) if each[0].ended_at]
        for job, result in done:
            job.is_read = isinstance(result, Verdict) and result.posterior is not None
        self._call(_settle, done)

    def _results(self, window: list[ModelJob]) -> list[Any]:
        if write := window[0].write:
            return [write(lambda piece: self._pass_on(window[0], piece))]
        requests = [job.request for job in window if job.request]
        judge = self.judges[window[0].judge]
        jobs = {id(job.request): job for job in window}
        callers = {job.caller for job in window}
        may_end_from = window[0].started_at + SHORT_S

        def is_wanted(request: JudgeRequest) -> bool:
            self.watchdog.beat()
            job = jobs[id(request)]
            is_late = job is not window[0] and time.monotonic() > may_end_from
            if is_late and self._others_wait(callers):
                self._put_off.add(job)
            return not (job.is_dropped or job in self._put_off)

        if window[0].kind == "score":
            return list(judge.grade(requests, is_wanted=is_wanted))
        num_written = dict.fromkeys(jobs, 0)

        def on_text(request: JudgeRequest, presentation: Pass, piece: str) -> None:
            job, num_new = jobs[id(request)], 0
            if presentation.order == "given":
                num_written[id(request)] += len(piece)
                num_new = num_written[id(request)] - job.num_passed_on  # halves write texts again
            self._pass_on(job, piece[-num_new:] if num_new > 0 else "")
            if job.is_dropped:
                raise Unwanted

        return list(judge.grade(requests, on_text=on_text))

    def _others_wait(self, callers: set[str]) -> bool:
        with self._changed:
            return not self._lanes.callers <= callers

    def _pass_on(self, job: ModelJob, piece: str) -> None:
        """Pass on a piece of a text, and let scores go first when it is their turn."""
        if piece and job.on_text and not job.is_dropped:
            job.num_passed_on += len(piece)
            self._call(job.on_text, piece)
        self._let_others_go_first()

    def _call(self, function: Callable[..., None], *values: Any) -> None:
        """Call a function on the event loop, unless that has ended."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *values)


def _settle(results: Sequence[tuple[ModelJob, Any]]) -> None:
    for job, result in results:
        if job.future.done():
            continue
        if isinstance(result, Exception):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)
