"""The tasks of judges. Adding a task is adding a file here."""

from judging.tasks.base import (
    TASKS,
    JudgeTask,
    Ruling,
    get_task,
    labels_of,
    task_names,
    worth_under,
)

__all__ = ["TASKS", "JudgeTask", "Ruling", "get_task", "labels_of", "task_names", "worth_under"]
