"""Several judges as one: each request goes to the judge that knows its rubric best."""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum

from judging.errors import CustosError, FieldError
from judging.judge import Judge
from judging.progress import in_batches
from judging.scoring.ask_model import CHUNK
from judging.tasks import get_task
from judging.types import JudgeRequest, Verdict
from judging.verdicts.calibration import calibration_key


class Familiarity(IntEnum):
    """A judge's familiarity with a rubric; more is better."""

    NONE = 0
    """It does not take the task."""
    OTHER_RUBRIC = 1
    """It was trained for the task, under other rubrics."""
    ZERO_SHOT = 2
    OTHER_REFERENCE_MODE = 3
    """It takes a request with one reference in the other reference mode, for which it was
    trained."""
    TRAINED = 4
    CALIBRATED = 5


def familiarity(judge: Judge, task: str, rubric: str, key: str | None = None) -> Familiarity:
    """Tell how well a judge knows a rubric; ``key`` is its calibration's, by default a label's."""
    if task not in judge.tasks:
        return Familiarity.NONE
    if judge.calibration and (key or f"{task}/{rubric}") in judge.calibration.rubrics:
        return Familiarity.CALIBRATED
    card = judge.card_for(task)
    if card is None:
        return Familiarity.ZERO_SHOT
    is_trained = rubric in card.tasks[task]
    return Familiarity.TRAINED if is_trained else Familiarity.OTHER_RUBRIC


def choose_judge(judges: Mapping[str, Judge], request: JudgeRequest) -> str:
    """Return the name of the judge that knows a request's rubric best; of equals the first.

    Raises ``FieldError`` if no judge takes it.
    """
    task = get_task(request.task)
    levels: dict[str, Familiarity] = {}
    refusals: list[CustosError] = []
    for name, judge in judges.items():
        if task.name not in judge.tasks:
            continue
        try:
            resolved = judge.resolve(request)
        except CustosError as error:
            refusals.append(error)
            continue
        rubric = task.rubric(resolved)
        levels[name] = (
            familiarity(judge, task.name, rubric, calibration_key(task, resolved))
            if rubric == task.rubric(request)
            else Familiarity.OTHER_REFERENCE_MODE
        )
    if levels:
        return max(levels, key=lambda name: levels[name])
    if refusals:
        raise refusals[0]
    if len(request.responses) != task.num_responses:
        task.check(request)
    known = sorted({name for judge in judges.values() for name in judge.tasks})
    leave = f" (custos serve --allow-unmeasured {task.name} lets them try)" * task.asks_leave
    message = f"no judge here takes '{task.name}'{leave}; they take {', '.join(known)}"
    raise FieldError("task", message)


class BestJudge:
    """Grader that gives each request to the judge that knows its rubric best."""

    def __init__(self, judges: Mapping[str, Judge]) -> None:
        self.judges = judges
        self.name = ", ".join(judges)

    def fingerprint(self, request: JudgeRequest) -> str:
        """Return the fingerprint of the judge that grades the request."""
        return self.judges[choose_judge(self.judges, request)].fingerprint(request)

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """Grade requests, streaming, in order, as ``Judge.grade``."""
        for chunk in in_batches(requests, CHUNK):
            indices_by_judge: dict[str, list[int]] = {}
            verdicts: dict[int, Verdict] = {}
            for index, request in enumerate(chunk):
                try:
                    name = choose_judge(self.judges, request)
                    indices_by_judge.setdefault(name, []).append(index)
                except CustosError as error:
                    verdicts[index] = Verdict.from_error(error, request)
            for name, indices in indices_by_judge.items():
                graded = self.judges[name].grade([chunk[index] for index in indices])
                verdicts.update(zip(indices, graded, strict=True))
            yield from (verdicts[index] for index in range(len(chunk)))
