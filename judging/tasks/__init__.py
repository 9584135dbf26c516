"""The tasks of judges. Adding a task is adding a file here."""

from judging.tasks.base import (
    TASKS,
    CritiqueFormat,
    Field,
    JudgeTask,
    Ruling,
    get_task,
    judge_task,
    task_names,
    worth_under,
)

__all__ = [
    "TASKS",
    "CritiqueFormat",
    "Field",
    "JudgeTask",
    "Ruling",
    "get_task",
    "judge_task",
    "task_names",
    "worth_under",
]
