"""What can be asked of a judge. Adding a task is adding a file here."""

from judging.tasks import charthal as _charthal
from judging.tasks import chartom_fact as _chartom_fact
from judging.tasks import chartom_justification as _chartom_justification
from judging.tasks import hieval_ea as _hieval_ea
from judging.tasks import hieval_qs as _hieval_qs
from judging.tasks import simplevqa as _simplevqa
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

del _charthal, _chartom_fact, _chartom_justification, _simplevqa
del _hieval_ea, _hieval_qs, _truthful
