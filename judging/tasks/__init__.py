"""What can be asked of a judge. Adding a task is adding a file here."""

from judging.tasks import hieval_ea as _hieval_ea
from judging.tasks import hieval_qs as _hieval_qs
from judging.tasks import truthful as _truthful
from judging.tasks.base import (
    CritiqueFormat,
    Field,
    JudgeTask,
    Ruling,
    get_task,
    judge_task,
    task_names,
)

__all__ = ["CritiqueFormat", "Field", "JudgeTask", "Ruling", "get_task", "judge_task", "task_names"]

del _hieval_ea, _hieval_qs, _truthful
