"""Several judges as one: each request goes to the one that knows its rubric best."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

from judging.calibration import calibration_key
from judging.errors import CustosError, FieldError
from judging.judge import WINDOW, Familiarity, Judge
from judging.tasks import get_task
from judging.types import JudgeRequest, Verdict


def choose_judge(judges: Mapping[str, Judge], request: JudgeRequest) -> str:
    """Name of the judge that knows a request's rubric best; of equals the first.

    Raises:
        CustosError: If none takes the task, or there is no such task or variant; it names the
            field.
    """
    task = get_task(request.task)
    task.check(request)
    rubric = task.rubric(request)
    key = calibration_key(task, request)
    familiarities = {
        name: judge.familiarity(task.name, rubric, key) for name, judge in judges.items()
    }
    best = max(familiarities, key=lambda name: familiarities[name])
    if familiarities[best] == Familiarity.NONE:
        raise FieldError("task", f"no judge here takes '{task.name}'")
    return best


class BestJudge:
    """Grades each request with the best of its judges.

    Args:
        judges: At least one, by name.
    """

    def __init__(self, judges: Mapping[str, Judge]) -> None:
        self.judges = judges
        self.name = ", ".join(judges)

    def fingerprint(self, request: JudgeRequest) -> str:
        """That of the judge which grades the request.

        Raises:
            CustosError: As :func:`choose_judge`.
        """
        return self.judges[choose_judge(self.judges, request)].fingerprint(request)

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """One verdict per request, in order; as ``Judge.grade``."""
        stream = iter(requests)
        while window := list(itertools.islice(stream, WINDOW)):
            by_judge: dict[str, list[int]] = {}
            verdicts: dict[int, Verdict] = {}
            for index, request in enumerate(window):
                try:
                    by_judge.setdefault(choose_judge(self.judges, request), []).append(index)
                except CustosError as error:
                    verdicts[index] = Verdict.from_error(error, request)
            for name, own in by_judge.items():
                graded = self.judges[name].grade([window[index] for index in own])
                verdicts.update(zip(own, graded, strict=True))
            yield from (verdicts[index] for index in range(len(window)))
