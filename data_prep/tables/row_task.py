"""Rows that are judged under another task than they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from judging.errors import FieldError
from judging.tasks import get_task
from judging.types import JudgeRequest

RequestT = TypeVar("RequestT", bound=JudgeRequest)


def task_fields(task: str) -> dict[str, str]:
    """Return the fields that change in a row that is put under a task.

    A task without critiques decides at once, whatever mode the row names.
    """
    return {"task": task} | ({"mode": "score"} if get_task(task).critique is None else {})


def under_given_task(row: RequestT, given: Mapping[str, str]) -> RequestT:
    """Return a row under the task that the user gave for all rows.

    Args:
        row: Row with a task of its own.
        given: Fields that the user gave for all rows.

    Raises:
        FieldError: If the row names a task that is unknown or has other labels.
    """
    task = given.get("task", row.task)
    if task == row.task:
        return row
    changed = row.model_copy(update={**task_fields(task), **given})
    if _labels(changed) != _labels(row):
        raise FieldError("task", f"the row has '{row.task}', --task is '{task}'")
    return changed


def _labels(row: JudgeRequest) -> tuple[str, ...]:
    task = get_task(row.task)
    return task.labels(task.rubric(row))
