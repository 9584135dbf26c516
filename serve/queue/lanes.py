"""The order in which jobs go to the model: bookkeeping without threads and without a clock.

Jobs wait in lanes, one for the scores and one for the texts of every judge. The model gets a window
at a time: jobs of one lane, either scores of at most ``window_tokens`` (unless the first job alone
has more) or at most ``TEXTS_AT_ONCE`` texts. Callers share the model evenly (:class:`Lanes`); the
lanes of one caller take turns, and in a lane its oldest job goes first. Later jobs about the same
question go with an earlier one, as together they cost less than apart.

Nobody shall wait for all rows of another caller. While several callers wait, a window of scores
takes ``SHORT_S`` at most, unless all of it is due before their jobs, and one that is longer ends
when another caller comes. On a CPU, a window that is due earlier even interrupts a long row,
between two layers of the model. A text may be interrupted by scores (:class:`Pace`), and by texts
that are due earlier.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Generic, Literal, TypeVar, get_args

from judging import JudgeRequest

TEXTS_AT_ONCE = 16
"""Most texts of a judge that are written side by side."""
RELATED_WINDOWS = 4
"""How far behind the first job, in windows, jobs about the same question are looked for."""
SHORT_S = 0.25
"""Most seconds of a window of scores while several callers wait."""
SAVED_WINDOWS = 16
"""Most of the model, in windows, that a caller saves up while it is away."""
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
    """Estimate of its cost (:func:`serve.queue.intake.request_tokens`)."""
    request: JudgeRequest | None = None
    """What to grade. A job without a request writes free text, and the model runs it alone."""
    caller: str = ""
    """Name of the access key of its call; empty if calls need none."""
    is_dropped: bool = False
    """Nobody waits for it any more."""


JobT = TypeVar("JobT", bound=Job)


@dataclass(frozen=True, order=True)
class Turn(Generic[JobT]):
    """A waiting job and when it is due: turns sort by tokens, then by the earlier caller."""

    due: float
    """Tokens that its caller will have been charged after the job."""
    number: int
    """Place of its caller in the lane."""
    job: JobT = field(compare=False)


class Window(list[JobT]):
    """Jobs that the model gets at once, and when they are due: earlier windows may interrupt."""

    due = math.inf


class Lane(Generic[JobT]):
    """The jobs of one kind that wait for one judge, by caller, the oldest first."""

    def __init__(self) -> None:
        self.queues: dict[str, deque[JobT]] = {}

    def __iter__(self) -> Iterator[JobT]:
        return (job for queue in self.queues.values() for job in queue)

    def first(self, charged: Mapping[str, float]) -> Turn[JobT]:
        """Find the first turn of a lane that has jobs."""
        return min(
            Turn(charged[caller] + queue[0].tokens, number, queue[0])
            for number, (caller, queue) in enumerate(self.queues.items())
        )

    def in_turns(self, charged: Mapping[str, float]) -> list[Turn[JobT]]:
        """Order the jobs by their turns, given what each caller has been charged."""
        turns = []
        for number, (caller, queue) in enumerate(self.queues.items()):
            due = charged[caller]
            for job in queue:
                due += job.tokens
                turns.append(Turn(due, number, job))
        return sorted(turns)

    def remove(self, jobs: Collection[JobT]) -> None:
        """Take out jobs."""
        for caller in {job.caller for job in jobs}:
            rest = deque(job for job in self.queues[caller] if job not in jobs)
            if rest:
                self.queues[caller] = rest
            else:
                del self.queues[caller]


class Lanes(Generic[JobT]):
    """The jobs that wait for the model.

    At most ``max_jobs`` jobs and ``max_tokens`` tokens wait, of which one named caller's jobs may
    take ``caller_share``. A full queue still takes the jobs of a named caller who has less than an
    even part of it. A window of scores has at most ``window_tokens``.

    Callers are charged the tokens that the model reads for them, at first as estimated and then by
    the time that they took (:meth:`charge_taken`). It is the turn of the caller whose charge, with
    its next job, is lowest. So while callers compete, one that uses less than an even part of the
    model waits for the running window and for no other. A caller that was away has saved up its
    part, but no more than ``SAVED_WINDOWS``; it goes first until that is used up (start-time fair
    queueing; Goyal, Vin and Cheng, SIGCOMM 1996).

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
        self._charged: dict[str, float] = {}
        self._virtual_time = 0.0
        """Highest charge that a caller had when its turn came, plus the tokens of idle time."""

    def __iter__(self) -> Iterator[JobT]:
        return (job for lane in self._lanes.values() for job in lane)

    def has_room(self, num_jobs: int, tokens: int) -> bool:
        """Tell whether jobs may be added; an empty queue takes jobs of any number and size."""
        return not self.num_jobs or (
            self.num_jobs + num_jobs <= self.max_jobs and self.tokens + tokens <= self.max_tokens
        )

    def has_share(self, caller: str, num_jobs: int, tokens: int) -> bool:
        """Tell whether a caller may add jobs beside its own that wait.

        A caller without waiting jobs may add any number, as may one without a name.
        """
        own_jobs, own_tokens = self._waiting(caller)
        return not (caller and own_jobs) or (
            own_jobs + num_jobs <= self.caller_share * self.max_jobs
            and own_tokens + tokens <= self.caller_share * self.max_tokens
        )

    def is_owed(self, caller: str, num_jobs: int, tokens: int) -> bool:
        """Tell whether a named caller has, with these jobs, no more than an even part of the queue.

        Then even a full queue takes them, as others have more than their part.
        """
        callers = {*self.callers, caller}
        own_jobs, own_tokens = self._waiting(caller)
        return bool(caller) and (
            (own_jobs + num_jobs) * len(callers) <= self.max_jobs
            and (own_tokens + tokens) * len(callers) <= self.max_tokens
        )

    def _waiting(self, caller: str) -> tuple[int, int]:
        """Count the jobs of a caller that wait, and their tokens."""
        waiting = [job for lane in self._lanes.values() for job in lane.queues.get(caller, ())]
        return len(waiting), sum(job.tokens for job in waiting)

    @property
    def callers(self) -> set[str]:
        """Name the callers whose jobs wait."""
        return {caller for lane in self._lanes.values() for caller in lane.queues}

    def add(self, jobs: Iterable[JobT]) -> None:
        """Put each job behind the others of its caller in its lane."""
        for job in jobs:
            self._charged[job.caller] = max(self._charged.get(job.caller, 0.0), self._earliest)
            self._lanes[job.judge, job.kind].queues.setdefault(job.caller, deque()).append(job)
            self.num_jobs += 1
            self.tokens += job.tokens

    def put_back(self, jobs: Sequence[JobT]) -> None:
        """Put jobs back in front, as the model did not get to them, and take back the charge."""
        for job in reversed(jobs):
            self.add([job])
            self._lanes[job.judge, job.kind].queues[job.caller].rotate()
            charged = self._charged[job.caller] - job.tokens
            self._charged[job.caller] = max(charged, self._earliest)

    def charge_taken(self, jobs: Collection[JobT], tokens: float) -> None:
        """Charge callers the ``tokens`` that fit in the time their jobs took, not the estimates.

        Digits have four times the tokens that their length suggests, and a rule may take seconds.
        The correction is bounded, because a machine may stand still, which is no caller's fault.
        """
        estimate = sum(job.tokens for job in jobs)
        most = SAVED_WINDOWS * self.short_tokens
        for job in jobs:
            difference = min(tokens - estimate, most) * job.tokens / estimate
            charged = self._charged.get(job.caller, self._earliest) + difference
            self._charged[job.caller] = max(charged, self._earliest)

    def let_pass(self, tokens: float) -> None:
        """Note how many tokens the model could have read while it had nothing to do.

        They count as had by all. So a caller that asks for a little, but all the time, has saved up
        as much as one that comes for the first time.
        """
        self._virtual_time += tokens

    @property
    def _earliest(self) -> float:
        """Compute the lowest charge that a caller may begin with."""
        return self._virtual_time - SAVED_WINDOWS * self.short_tokens

    def remove(self, jobs: Iterable[JobT]) -> None:
        """Take out those of the jobs that still wait."""
        removed = set(jobs)
        for lane in {(job.judge, job.kind) for job in removed}:
            self._remove(lane, removed)

    def take(
        self, kinds: Sequence[Kind] = get_args(Kind), before: float = math.inf
    ) -> Window[JobT]:
        """Take out the next window of jobs of these kinds; it is empty if there are none.

        ``before`` is when the running window was due; only jobs that are due earlier are taken.
        """
        first = {
            key: turn
            for key, lane in self._lanes.items()
            if key[1] in kinds and lane.queues and (turn := lane.first(self._charged)).due < before
        }
        if not first:
            return Window()
        caller = min(first.values()).job.caller
        # Of its lanes, the one that has waited longest; else its short jobs would always go first.
        key = next(key for key, turn in first.items() if turn.job.caller == caller)
        turns = [turn for turn in self._lanes[key].in_turns(self._charged) if turn.due < before]
        # Jobs due before those of all other callers are read together, which takes less time.
        others_due = min(before, self._others_due(caller))
        first_jobs = [turn.job for turn in turns if turn.due < others_due]
        tokens = sum(job.tokens for job in first_jobs)
        most = min(self.window_tokens, max(self.short_tokens, tokens))
        jobs = _scores(turns, most) if key[1] == "score" else _texts([each.job for each in turns])
        window = Window(jobs)
        # Texts are not put off one by one, so others go first if due before the last of them.
        window.due = turns[0 if key[1] == "score" else len(jobs) - 1].due
        self._virtual_time = max(self._virtual_time, self._charged[caller])
        for job in window:
            self._charged[job.caller] += job.tokens
        self._remove(key, set(window))
        self._lanes.move_to_end(key)
        return window

    def _others_due(self, caller: str) -> float:
        """Find when the first job of another caller is due."""
        return min(
            (
                self._charged[other] + queue[0].tokens
                for lane in self._lanes.values()
                for other, queue in lane.queues.items()
                if other != caller
            ),
            default=math.inf,
        )

    def _remove(self, lane: tuple[str, Kind], jobs: Collection[JobT]) -> None:
        removed = {job for job in self._lanes[lane] if job in jobs}
        self._lanes[lane].remove(removed)
        self.num_jobs -= len(removed)
        self.tokens -= sum(job.tokens for job in removed)
        if not self.num_jobs:  # forget callers who are as good as new
            self._charged = {each: n for each, n in self._charged.items() if n > self._earliest}


def _scores(turns: Sequence[Turn[JobT]], most: int) -> list[JobT]:
    """Choose jobs of ``most`` tokens: the one in turn, related ones, the next in turn, and so on.

    Related jobs take at most half of the window, and the others take the rest in order. So a crowd
    of jobs about one question at most about doubles another job's wait. No job is taken that is due
    more than a window after the charge of the first job's caller: its caller has had more.
    """
    begin = turns[0].due - turns[0].job.tokens
    jobs_by_subject: dict[object, list[JobT]] = {}
    for turn in takewhile(lambda turn: turn.due <= begin + RELATED_WINDOWS * most, turns):
        jobs_by_subject.setdefault(_subject(turn.job), []).append(turn.job)
    window: dict[JobT, None] = {}
    tokens = related_tokens = 0
    for turn in turns:
        if turn.job in window:
            continue
        if window and (tokens + turn.job.tokens > most or turn.due > begin + most):
            break
        window[turn.job] = None
        tokens += turn.job.tokens
        for job in jobs_by_subject.get(_subject(turn.job), ()):
            if job not in window:
                related_tokens += job.tokens
                if related_tokens > most // 2 or tokens + job.tokens > most:
                    break
                window[job] = None
                tokens += job.tokens
    return list(window)


def _texts(jobs: Sequence[JobT]) -> list[JobT]:
    """Choose a window: the first jobs with a request, or a single job without one.

    All results come when the longest text is done, so the texts are of like length.
    """
    first = jobs[0]

    def goes_along(job: JobT) -> bool:
        is_alike = first.tokens <= 2 * job.tokens and job.tokens <= 2 * first.tokens
        return is_alike and bool(first.request and job.request)

    return [first, *takewhile(goes_along, jobs[1:TEXTS_AT_ONCE])]


def _subject(job: Job) -> object:
    return job.request and (job.request.question, job.request.images)


class Pace:
    """Speed of the model, and what follows from it: short waits and interruptions of texts.

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
        """Note a window of scores that ended ``now``, and the number of jobs that wait then.

        ``tokens`` are those that a model read. Without any the window says nothing about the speed:
        long rows that a rule decides at once would make it look a thousand times as fast.
        """
        if tokens:
            speed = tokens / max(seconds, 1e-6)
            self.tokens_per_second = 0.8 * (self.tokens_per_second or speed) + 0.2 * speed
        # Callers who get an answer often send their next request at once. Together with those who
        # wait they fill one window; apart they would take turns in two, each slower per job.
        self._expected_jobs = num_waiting + num_jobs
        self._expected_until = now + RETURN_SHARE * seconds

    def short_tokens(self, most: int) -> int:
        """Estimate the tokens of a window that takes ``SHORT_S``; ``most`` before the first one."""
        if not self.tokens_per_second:
            return most
        return min(most, max(1, round(SHORT_S * self.tokens_per_second)))

    def seconds_for_callers(self, now: float) -> float:
        """Decide how long to wait for the callers of the last window."""
        return max(0.0, self._expected_until - now)

    def are_callers_back(self, num_waiting: int) -> bool:
        """Tell whether as many jobs wait as the last window had, plus those it left waiting."""
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
        """Estimate in how many whole seconds the waiting tokens should have been read."""
        speed = self.tokens_per_second or window_tokens  # At first, assume one window per second.
        return max(1, min(MAX_RETRY_AFTER_S, round(tokens / speed)))
