"""The order in which jobs go to the model: bookkeeping without threads and without a clock.

Jobs wait in lanes, one for the scores and one for the texts of every judge. Lanes take turns. A
turn is a window: the jobs that the model gets at once, at most ``window_tokens`` of scores (unless
the first job alone has more) or ``TEXTS_AT_ONCE`` texts. So a lane with jobs waits for at most one
window of every other lane, not counting scores that interrupt a text (:class:`Pace`). Within a lane
callers share the model evenly (:class:`Lane`), and of each caller's jobs the oldest goes first.
Where several callers wait, a window of scores takes ``SHORT_S`` at most, and one that is longer
ends when another caller comes: rows of one question cost less in one window, but nobody shall wait
for all those of another.
Later jobs about the same question go with it, as together they cost less than apart.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, get_args

from judging import JudgeRequest

TEXTS_AT_ONCE = 16
"""Most texts of a judge that are written side by side."""
RELATED_WINDOWS = 4
"""How far behind the oldest job, in windows, jobs about the same question are looked for."""
SHORT_S = 0.5
"""Seconds of a window of scores while other callers wait."""
RETURN_SHARE = 0.05
"""Longest wait for the next requests of a window's callers, as a share of the window's time."""
MAX_RETRY_AFTER_S = 60
Kind = Literal["score", "text"]


@dataclass(eq=False)
class Job:
    """A piece of work for the model."""

    judge: str
    kind: Kind
    tokens: int
    """Estimate of its cost (:mod:`serve.queue.estimate`)."""
    request: JudgeRequest | None = None
    """What to grade. A job without a request writes free text, and the model runs it alone."""
    caller: str = ""
    """Name of the access key of its call; empty if calls need none."""
    is_dropped: bool = False
    """Nobody waits for it any more."""


JobT = TypeVar("JobT", bound=Job)


class Lane(Generic[JobT]):
    """The jobs of one kind that wait for one judge; their callers share the model evenly.

    The model's tokens are charged to the caller that they are read for. The turn is always that
    of the caller with the fewest, those of its next job included: of equals the shorter job goes
    first. A caller without jobs saves nothing up: when it comes back, it has at least as many as
    one of those who wait. All begin anew when nobody waits.
    """

    def __init__(self) -> None:
        self._queues: dict[str, deque[JobT]] = {}
        self._charged: dict[str, int] = {}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[JobT]:
        return (job for queue in self._queues.values() for job in queue)

    @property
    def callers(self) -> Collection[str]:
        """List the callers whose jobs wait."""
        return self._queues.keys()

    def of_caller(self, caller: str) -> Collection[JobT]:
        """List the jobs of one caller, the oldest first."""
        return self._queues.get(caller, ())

    def add(self, job: JobT) -> None:
        """Put a job behind the others of its caller."""
        if job.caller not in self._queues:
            fewest = min((self._charged[caller] for caller in self._queues), default=0)
            self._charged[job.caller] = max(self._charged.get(job.caller, 0), fewest)
            self._queues[job.caller] = deque()
        self._queues[job.caller].append(job)

    def put_back(self, jobs: Sequence[JobT]) -> None:
        """Put jobs of one window before the others of their callers, and take back the charge."""
        for job in reversed(jobs):
            others = (self._charged[each] for each in self._queues if each != job.caller)
            fewest = min(others, default=0)
            self.add(job)
            self._queues[job.caller].rotate()
            self._charged[job.caller] = max(self._charged[job.caller] - job.tokens, fewest)

    def in_turns(self) -> list[JobT]:
        """Order the jobs by their turns."""
        turns: list[tuple[int, int, JobT, Iterator[JobT]]] = []

        def await_turn(charged: int, number: int, queue: Iterator[JobT]) -> None:
            if (job := next(queue, None)) is not None:
                heapq.heappush(turns, (charged + job.tokens, number, job, queue))

        for number, (caller, queue) in enumerate(self._queues.items()):
            await_turn(self._charged[caller], number, iter(queue))
        jobs: list[JobT] = []
        while turns:
            charged, number, job, rest = heapq.heappop(turns)
            jobs.append(job)
            await_turn(charged, number, rest)
        return jobs

    def charge(self, jobs: Iterable[JobT]) -> None:
        """Charge the tokens of jobs that the model gets."""
        for job in jobs:
            self._charged[job.caller] += job.tokens

    def remove(self, jobs: Collection[JobT]) -> None:
        """Take out jobs."""
        for caller in {job.caller for job in jobs}:
            rest = deque(job for job in self._queues[caller] if job not in jobs)
            if rest:
                self._queues[caller] = rest
            else:
                del self._queues[caller]
        if not self._queues:
            self._charged.clear()


class Lanes(Generic[JobT]):
    """The jobs that wait for the model.

    At most ``max_jobs`` jobs and ``max_tokens`` tokens wait, of which one named caller's jobs may
    take ``caller_share``; above that, each named caller has room for an even part of the queue. A
    window of scores has ``window_tokens``.

    Attributes:
        short_tokens: Most tokens of a window of scores while several callers wait.
        num_jobs: Jobs waiting.
        tokens: Tokens waiting.
    """

    def __init__(
        self,
        judges: Iterable[str],
        *,
        max_jobs: int,
        max_tokens: int,
        window_tokens: int,
        caller_share: float = 1.0,
    ) -> None:
        self.max_jobs = max_jobs
        self.max_tokens = max_tokens
        self.window_tokens = window_tokens
        self.caller_share = caller_share
        self.short_tokens = window_tokens
        self.num_jobs = 0
        self.tokens = 0
        # In the order of their turns: the lane that had the last turn comes last.
        self._lanes = OrderedDict[tuple[str, Kind], Lane[JobT]](
            ((judge, kind), Lane()) for judge in judges for kind in get_args(Kind)
        )

    def __iter__(self) -> Iterator[JobT]:
        return (job for lane in self._lanes.values() for job in lane)

    def has_room(self, num_jobs: int = 1, tokens: int = 1) -> bool:
        """Tell whether jobs may be added; an empty queue takes jobs of any number and size."""
        return not self.num_jobs or (
            self.num_jobs + num_jobs <= self.max_jobs and self.tokens + tokens <= self.max_tokens
        )

    def has_share(self, caller: str, num_jobs: int = 1, tokens: int = 1) -> bool:
        """Tell whether a caller may add jobs beside its own that wait.

        A caller of which none waits may add any number, as may one without a name.
        """
        own_jobs, own_tokens = self._waiting(caller)
        return not (caller and own_jobs) or (
            own_jobs + num_jobs <= self.caller_share * self.max_jobs
            and own_tokens + tokens <= self.caller_share * self.max_tokens
        )

    def is_owed(self, caller: str, num_jobs: int = 1, tokens: int = 1) -> bool:
        """Tell whether a named caller has less than an even part of the queue with these jobs.

        It may then add them to a full queue too, as others have more than their part.
        """
        callers = {*self.callers, caller}
        own_jobs, own_tokens = self._waiting(caller)
        return bool(caller) and (
            (own_jobs + num_jobs) * len(callers) <= self.max_jobs
            and (own_tokens + tokens) * len(callers) <= self.max_tokens
        )

    def _waiting(self, caller: str) -> tuple[int, int]:
        """Count the jobs of a caller that wait, and their tokens."""
        waiting = [job for lane in self._lanes.values() for job in lane.of_caller(caller)]
        return len(waiting), sum(job.tokens for job in waiting)

    @property
    def has_full_window(self) -> bool:
        """Tell whether enough tokens wait for a full window."""
        return self.tokens >= self.window_tokens

    @property
    def callers(self) -> set[str]:
        """Name the callers whose jobs wait."""
        return {caller for lane in self._lanes.values() for caller in lane.callers}

    def put_back(self, jobs: Sequence[JobT]) -> None:
        """Put jobs of one window, which the model did not get to, where they were."""
        if jobs:
            self._lanes[jobs[0].judge, jobs[0].kind].put_back(jobs)
            self.num_jobs += len(jobs)
            self.tokens += sum(job.tokens for job in jobs)

    def add(self, jobs: Iterable[JobT]) -> None:
        """Put each job into its lane."""
        for job in jobs:
            self._lanes[job.judge, job.kind].add(job)
            self.num_jobs += 1
            self.tokens += job.tokens

    def remove(self, jobs: Iterable[JobT]) -> None:
        """Take out those of the jobs that still wait."""
        removed = set(jobs)
        for lane in {(job.judge, job.kind) for job in removed}:
            self._remove(lane, removed)

    def take(self, kinds: Sequence[Kind] = get_args(Kind)) -> list[JobT]:
        """Take out the window of the lane of these kinds whose turn it is; empty without jobs."""
        lane = next((lane for lane, jobs in self._lanes.items() if lane[1] in kinds and jobs), None)
        if lane is None:
            return []
        jobs = self._lanes[lane].in_turns()
        most = self.window_tokens if len(self.callers) == 1 else self.short_tokens
        window = _scores(jobs, most) if lane[1] == "score" else _texts(jobs)
        self._lanes[lane].charge(window)
        self._remove(lane, set(window))
        self._lanes.move_to_end(lane)
        return window

    def _remove(self, lane: tuple[str, Kind], jobs: Collection[JobT]) -> None:
        removed = {job for job in self._lanes[lane] if job in jobs}
        self._lanes[lane].remove(removed)
        self.num_jobs -= len(removed)
        self.tokens -= sum(job.tokens for job in removed)


def _scores(jobs: Sequence[JobT], most: int) -> list[JobT]:
    """Choose a window of tokens: the job in turn, the related ones, the next in turn, and so on.

    Related jobs take at most half of the window, and the others take the rest in order. So a
    crowd of jobs about one question at most about doubles another job's wait.
    """
    jobs_by_subject: dict[object, list[JobT]] = {}
    tokens = related_tokens = 0
    for job in jobs:
        if tokens > RELATED_WINDOWS * most:
            break
        tokens += job.tokens
        jobs_by_subject.setdefault(_subject(job), []).append(job)
    window: dict[JobT, None] = {}
    tokens = 0
    for next_job in jobs:
        if next_job in window:
            continue
        if window and tokens + next_job.tokens > most:
            break
        window[next_job] = None
        tokens += next_job.tokens
        for job in jobs_by_subject.get(_subject(next_job), ()):
            if job not in window:
                related_tokens += job.tokens
                if related_tokens > most // 2 or tokens + job.tokens > most:
                    break
                window[job] = None
                tokens += job.tokens
    return list(window)


def _texts(jobs: Sequence[JobT]) -> list[JobT]:
    """Choose a window: the first jobs with a request, or a single job without one."""
    window = [jobs[0]]
    for job in jobs[1:TEXTS_AT_ONCE]:
        if not (window[0].request and job.request):
            break
        window.append(job)
    return window


def _subject(job: Job) -> object:
    return job.request and (job.request.question, job.request.images)


class Pace:
    """The speed of the model, and the short wait before a window that it makes worth while.

    All times are seconds of one clock, which the caller reads.

    Attributes:
        tokens_per_second: Speed of recent windows of scores; 0 before the first.
    """

    def __init__(self) -> None:
        self.tokens_per_second = 0.0
        self._expected_jobs = 0
        self._expected_until = 0.0
        self._scores_allowed_from = 0.0

    def count_scores(
        self, now: float, seconds: float, *, num_jobs: int, tokens: int, num_waiting: int
    ) -> None:
        """Note a window of scores that ended ``now``, and the number of jobs that wait then."""
        speed = tokens / max(seconds, 1e-6)
        self.tokens_per_second = 0.8 * (self.tokens_per_second or speed) + 0.2 * speed
        # Callers who get an answer often send their next request at once. Together with those who
        # wait they fill one window; apart they would take turns in two, each slower per job.
        self._expected_jobs = num_waiting + num_jobs
        self._expected_until = now + RETURN_SHARE * seconds

    def short_tokens(self, most: int) -> int:
        """Count the tokens of a window that takes ``SHORT_S``; ``most`` before the first."""
        if not self.tokens_per_second:
            return most
        return min(most, max(1, round(SHORT_S * self.tokens_per_second)))

    def seconds_for_callers(self, now: float) -> float:
        """Decide how long to wait for the callers of the last window."""
        return max(0.0, self._expected_until - now)

    def are_callers_back(self, num_waiting: int) -> bool:
        """Tell whether as many jobs wait as the last window had and left waiting together."""
        return num_waiting >= self._expected_jobs

    def may_interrupt_text(self, now: float) -> bool:
        """Decide whether it is the turn of scores while a text is being written."""
        return now >= self._scores_allowed_from

    def count_interruption(self, start: float, end: float) -> None:
        """Let the text go on for as long as the scores between its tokens took.

        So a text at most halves the rate of scores, and scores at most halve the speed of a text.
        """
        self._scores_allowed_from = end + (end - start)

    def retry_after(self, tokens: int, window_tokens: int) -> int:
        """Estimate the whole seconds after which tokens that wait now should have been read."""
        speed = self.tokens_per_second or window_tokens  # At first, assume one window per second.
        return max(1, min(MAX_RETRY_AFTER_S, round(tokens / speed)))
