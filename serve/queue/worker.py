"""One model thread, and what goes before it next.

Requests wait in lanes, one for the scores and one for the texts of every judge. The thread takes
the lanes in turn, each time a window of at most ``window_tokens``, so no judge waits for more than
one window of every other. Within a lane the oldest goes first, and answers to its question that
came soon after go with it: together they cost less than apart.

A text takes one forward pass per token. Between two tokens the thread grades a window of waiting
scores, then writes for as long as that took: a long critique at most halves the rate of scores, and
scores at most halve the speed of a text. Texts of one judge are drawn together, up to
``TEXTS_AT_ONCE``; other texts wait for them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from judging import CustosError, Judge, JudgeRequest
from serve.errors import ApiError

logger = logging.getLogger("custos.serve")

LINGER_S = 0.004
RETURN_SHARE = 0.05
"""Most of a window's time for which its callers are waited for before the next begins."""
TEXTS_AT_ONCE = 16
WINDOW_BATCHES = 12
"""Forward passes of a full window."""
KIN_WINDOWS = 4
"""How far behind the oldest score, in windows, its kin are looked for."""
CLOSE_S = 10.0
Kind = Literal["score", "text"]
T = TypeVar("T")


@dataclass(eq=False)
class Job:
    """Something for the model thread to do, and where its result goes."""

    judge: str
    kind: Kind
    tokens: int
    """Estimate of what it costs."""
    request: JudgeRequest | None
    """To be graded; jobs without one are run alone."""
    run: Callable[[Callable[[str], None]], Any] | None = None
    """What else to do, given where its pieces of text go."""
    on_text: Callable[[str], None] | None = None
    """Called on the event loop with each new piece of its text."""
    request_id: str = ""
    """Names the call in the log."""
    future: asyncio.Future[Any] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    queued_at: float = field(default_factory=time.monotonic)
    started_at: float = 0.0
    ended_at: float = 0.0
    dropped: bool = False
    num_told: int = 0
    """Characters of its text passed on already."""


@dataclass(frozen=True)
class Waiting:
    """The queue at one moment."""

    queued: Mapping[str, int]
    running: Mapping[str, int]
    tokens: int


class Abandoned(Exception):
    """Nobody waits for a text any more."""


class Scheduler:
    """Grades jobs in a thread of its own.

    Args:
        judges: By name.
        max_requests: Most jobs waiting.
        max_tokens: Most estimated tokens waiting; a call that finds the queue empty enters anyway.
        window_tokens: Most estimated tokens handed to a judge at once.
        on_window: Told after each window: judge, jobs, seconds.
    """

    def __init__(
        self,
        judges: Mapping[str, Judge],
        *,
        max_requests: int,
        max_tokens: int,
        window_tokens: int,
        on_window: Callable[[str, int, float], None],
    ) -> None:
        self.judges = judges
        self.max_requests = max_requests
        self.max_tokens = max_tokens
        self.window_tokens = window_tokens
        self.on_window = on_window
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        lanes = ((name, kind) for name in judges for kind in get_args(Kind))  # last taken, last
        self._lanes = OrderedDict[tuple[str, Kind], deque[Job]]((lane, deque()) for lane in lanes)
        self._running: list[Job] = []
        self._num_waiting = 0
        self._tokens_waiting = 0
        self._tokens_per_second = 0.0
        self._closed = False
        self._scores_next_at = 0.0
        self._expected = 0
        self._expected_by = 0.0
        self._thread = threading.Thread(target=self._work, name="judge", daemon=True)
        self._thread.start()

    # On the event loop.

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue the jobs of one call, all or none.

        Raises:
            ApiError: 429 with the seconds after which there should be room.
        """
        tokens = sum(job.tokens for job in jobs)
        with self._changed:
            if self._num_waiting:
                self._require_room(len(jobs), tokens)
            for job in jobs:
                self._lanes[job.judge, job.kind].append(job)
            self._num_waiting += len(jobs)
            self._tokens_waiting += tokens
            self._changed.notify()

    def require_room(self) -> None:
        """Refuse what could not enter, however small, as :meth:`submit` does."""
        with self._changed:
            self._require_room(1, 1)

    def _require_room(self, num_jobs: int, tokens: int) -> None:
        if (
            self._num_waiting + num_jobs > self.max_requests
            or self._tokens_waiting + tokens > self.max_tokens
        ):
            raise ApiError(
                429, "too many requests are waiting; try again", retry_after=self._seconds_left
            )

    def drop(self, jobs: Sequence[Job]) -> None:
        """Take the jobs of one call out of the queue; the results of running ones are not used."""
        for job in jobs:
            job.dropped = True
            job.future.cancel()
        with self._changed:
            for key in {(job.judge, job.kind) for job in jobs}:
                self._lanes[key] = deque(job for job in self._lanes[key] if not job.dropped)
            left = [job for lane in self._lanes.values() for job in lane]
            self._num_waiting = len(left)
            self._tokens_waiting = sum(job.tokens for job in left)

    def waiting(self) -> Waiting:
        """What waits and what runs."""
        queued = dict.fromkeys(self.judges, 0)
        running = dict.fromkeys(self.judges, 0)
        with self._changed:
            for (name, _), lane in self._lanes.items():
                queued[name] += len(lane)
            for job in self._running:
                running[job.judge] += 1
            return Waiting(queued, running, self._tokens_waiting)

    @property
    def is_alive(self) -> bool:
        """Whether the thread still takes work."""
        return self._thread.is_alive()

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        with self._changed:
            return not (self._num_waiting or self._running)

    def close(self) -> None:
        """Refuse what waits, stop texts, let a running window end."""
        with self._changed:
            self._closed = True
            for lane in self._lanes.values():
                for job in lane:
                    _settle(job, ApiError(503, "the service has stopped", retry_after=1))
                lane.clear()
            self._num_waiting = self._tokens_waiting = 0
            self._changed.notify()
        self._thread.join(CLOSE_S)

    @property
    def _seconds_left(self) -> int:
        rate = self._tokens_per_second or self.window_tokens
        return max(1, min(60, round(self._tokens_waiting / rate)))

    # On the model thread.

    def _work(self) -> None:
        while (window := self._next_window()) is not None:
            if window:
                self._run(window)

    def _next_window(self) -> list[Job] | None:
        """Wait for work; ``None`` when closed."""
        with self._changed:
            while not (self._num_waiting or self._closed):
                self._changed.wait()
                if not self._closed and self._tokens_waiting < self.window_tokens:
                    # First into an empty queue: others are likely on their way.
                    self._changed.wait_for(self._is_full_window, LINGER_S)
            # Callers who were just answered come back. Together with those who wait they fill one
            # window; apart they would fill two in turn, each dearer a row, and wait for both.
            self._changed.wait_for(self._are_back, max(0.0, self._expected_by - time.monotonic()))
            return None if self._closed else self._take(("score", "text"))

    def _are_back(self) -> bool:
        return self._is_full_window() or self._num_waiting >= self._expected

    def _is_full_window(self) -> bool:
        return self._closed or self._tokens_waiting >= self.window_tokens

    def _take(self, kinds: Sequence[Kind]) -> list[Job]:
        """The next lane's window; empty if no such lane has work. Called under the lock."""
        for key, lane in self._lanes.items():
            if key[1] in kinds and lane:
                break
        else:
            return []
        self._lanes.move_to_end(key)
        window = self._scores(lane) if key[1] == "score" else self._texts(lane)
        self._num_waiting -= len(window)
        self._tokens_waiting -= sum(job.tokens for job in window)
        self._running += window
        return window

    def _texts(self, lane: deque[Job]) -> list[Job]:
        window = [lane.popleft()]
        while lane and window[0].request and lane[0].request and len(window) < TEXTS_AT_ONCE:
            window.append(lane.popleft())
        return window

    def _scores(self, lane: deque[Job]) -> list[Job]:
        """A window of the lane: its oldest job, those that ask the same, the next oldest, ...

        Those that were not the oldest take half of it at most: no crowd of kin can keep a job
        waiting for more than twice its turn.
        """
        most, kin = self.window_tokens, self._kin(lane)
        window: dict[int, Job] = {}
        tokens = kin_tokens = 0
        for oldest in lane:
            if id(oldest) in window:
                continue
            if window and tokens + oldest.tokens > most:
                break
            window[id(oldest)] = oldest
            tokens += oldest.tokens
            for job in kin.get(_asked(oldest), ()):
                if id(job) not in window:
                    kin_tokens += job.tokens
                    if kin_tokens > most // 2 or tokens + job.tokens > most:
                        break
                    window[id(job)] = job
                    tokens += job.tokens
        left = [job for job in lane if id(job) not in window]
        lane.clear()
        lane.extend(left)
        return list(window.values())

    def _kin(self, lane: deque[Job]) -> dict[Any, list[Job]]:
        """The older jobs of a lane by what they ask."""
        kin: dict[Any, list[Job]] = {}
        tokens = 0
        for job in lane:
            if tokens > KIN_WINDOWS * self.window_tokens:
                break
            tokens += job.tokens
            kin.setdefault(_asked(job), []).append(job)
        return kin

    def _run(self, window: list[Job]) -> None:
        start = time.monotonic()
        for job in window:
            job.started_at = start
        try:
            self._settle_all(window)
        finally:
            with self._changed:
                self._running = [job for job in self._running if job not in window]
        window = [job for job in window if job.ended_at]  # others had been dropped
        if not window:
            return
        seconds = time.monotonic() - start
        tokens = sum(job.tokens for job in window)
        if window[0].kind == "score":
            rate = tokens / max(seconds, 1e-6)
            self._tokens_per_second = 0.8 * (self._tokens_per_second or rate) + 0.2 * rate
            with self._changed:
                self._expected = self._num_waiting + len(window)
                self._expected_by = time.monotonic() + RETURN_SHARE * seconds
        self._call(self.on_window, window[0].judge, len(window), seconds)

    def _settle_all(self, window: list[Job]) -> None:
        """Give every job its result; of jobs that fail together each half is tried again."""
        window = [job for job in window if not job.dropped]
        if not window:
            return
        try:
            results = self._results(window)
        except Abandoned:
            return
        except ApiError as error:
            results = [error]
        except CustosError as error:  # of all alike, as when the model's server is down
            for job in window:
                logger.warning("request %s: %s", job.request_id, error)
            results = [error] * len(window)
        except Exception as error:
            if len(window) > 1:
                logger.warning("%d requests failed together; trying halves", len(window))
                self._settle_all(window[: len(window) // 2])
                self._settle_all(window[len(window) // 2 :])
                return
            logger.exception("request %s failed", window[0].request_id)
            results = [error]
        ended = time.monotonic()
        for job in window:
            job.ended_at = ended
        self._call(_settle_each, window, results)

    def _results(self, window: list[Job]) -> list[Any]:
        if run := window[0].run:
            return [run(lambda piece: self._written(window[0], window, piece))]
        requests = [job.request for job in window if job.request]
        judge = self.judges[window[0].judge]
        if window[0].kind == "score":
            return list(judge.grade(requests))
        jobs = {id(job.request): job for job in window}
        drawn = dict.fromkeys(jobs, 0)

        def on_text(request: JudgeRequest, one: Any, piece: str) -> None:
            job = jobs[id(request)]
            if one.order != "given":
                return self._written(job, window, "")
            drawn[id(request)] += len(piece)
            unseen = drawn[id(request)] - job.num_told  # after a failure text comes again
            self._written(job, window, piece[-unseen:] if unseen > 0 else "")

        return list(judge.grade(requests, on_text=on_text))

    def _written(self, job: Job, window: list[Job], piece: str) -> None:
        """Pass on a piece of a text, and let scores go first when it is their turn."""
        if self._closed or all(job.dropped for job in window):
            raise Abandoned
        if piece and job.on_text and not job.dropped:
            job.num_told += len(piece)
            self._call(job.on_text, piece)
        start = time.monotonic()
        if start < self._scores_next_at:
            return
        with self._changed:
            scores = self._take(("score",))
        if scores:
            self._run(scores)
            end = time.monotonic()
            self._scores_next_at = end + (end - start)

    def _call(self, function: Callable[..., None], *values: Any) -> None:
        """Call a function on the event loop, unless that has ended."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *values)


def _asked(job: Job) -> Any:
    return job.request and (job.request.question, job.request.images)


def _settle_each(jobs: Sequence[Job], results: Sequence[Any]) -> None:
    for job, result in zip(jobs, results, strict=True):
        _settle(job, result)


def _settle(job: Job, result: Any) -> None:
    if job.future.done():
        return
    if isinstance(result, Exception):
        job.future.set_exception(result)
    else:
        job.future.set_result(result)
