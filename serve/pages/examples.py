"""Requests to show and to try: examples that the judges of a service were trained for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, get_args

from evaluation.report.measured_tasks import unmeasured_tasks
from judging.errors import CustosError
from judging.judge import Judge
from judging.judge.best_judge import Familiarity, choose_judge, familiarity
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, ReferenceMode

DEFAULT_TASK = JudgeRequest.model_fields["task"].default


def task_example(task: JudgeTask, judges: Iterable[Judge]) -> dict[str, Any]:
    """Choose a row of a task under a rubric that one of the judges knows.

    It is the task's own example where that can be, and where no judge knows any rubric.
    """
    judges = list(judges)
    for rubric, row in task.rows_by_rubric().items():
        if any(knows(judge, task, rubric) for judge in judges):
            return row
    return task.example_row()


def knows(judge: Judge, task: JudgeTask, rubric: str) -> bool:
    """Tell whether a judge was trained for a rubric, or is a zero-shot judge of the task."""
    return familiarity(judge, task.name, rubric) >= Familiarity.ZERO_SHOT


def known_choices(task: JudgeTask, judge: Judge) -> list[dict[str, str]]:
    """List the variants and reference modes of a task under which a judge takes requests."""
    rows = list(task.rows_by_rubric().values())

    def is_known(choice: Mapping[str, str]) -> bool:
        rubrics = {task.rubric(JudgeRequest.model_validate({**row, **choice})) for row in rows}
        return any(knows(judge, task, rubric) for rubric in rubrics)

    modes = get_args(ReferenceMode)
    choices = [
        {"variant": variant, "reference_mode": mode}
        for variant, mode in product(task.variants, modes)
    ]
    return list(filter(is_known, choices))


def headline_judge(judges: Mapping[str, Judge]) -> str:
    """Name the judge that grades a request which names neither task nor judge.

    Return the first judge if none takes such a request.
    """
    row = task_example(get_task(DEFAULT_TASK), judges.values())
    try:
        return choose_judge(judges, JudgeRequest.model_validate(row))
    except CustosError:
        return next(iter(judges))


def headline_example(judges: Mapping[str, Judge]) -> dict[str, Any]:
    """Choose a row that the headline judge takes, of a task that it was measured on if there is."""
    judge = judges[headline_judge(judges)]
    unmeasured = unmeasured_tasks(judge.folder, judge.tasks)
    names = [task for task in judge.tasks if task not in unmeasured] or list(judge.tasks)
    name = DEFAULT_TASK if DEFAULT_TASK in names else names[0]
    return task_example(get_task(name), [judge])


def warm_up(judge: Judge) -> None:
    """Have a judge grade an example, as a first forward pass takes longer than all others."""
    row = {**headline_example({judge.name: judge}), "critique_tokens": 1}
    list(judge.grade([JudgeRequest.model_validate(row)]))


def served_tasks(judges: Mapping[str, Judge]) -> list[str]:
    """Name the tasks that at least one judge takes."""
    return sorted({task for judge in judges.values() for task in judge.tasks})
