"""The label of a response as people give it by a judge's own task: its instruction and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from data_prep.construction.forms.base import FORMS, Entry, Filled, Form, agreed_values
from data_prep.construction.steps.base import Row
from judging.tasks import get_task
from judging.types import JudgeRequest

RULES = "What counts"
"""Heading of the instruction of a row, where rows have different ones."""


class LabelForm(Form):
    """A form with one entry, the label, and the instruction that a judge of the task gets."""

    def __init__(self, task: str, requests: Sequence[JudgeRequest]) -> None:
        """Make the form for some requests of a task; their rubrics decide what it says."""
        self.judge_task = get_task(task)
        self.name = self.task = task
        self.summary = f"the label of {task}"
        rubrics = dict.fromkeys(map(self.judge_task.rubric, requests))
        self.shows_rules = len(rubrics) > 1
        meanings = {label: "" for rubric in rubrics for label in self.judge_task.labels(rubric)}
        guide = ["Each item says what counts."] if self.shows_rules else []
        for line in [] if self.shows_rules else self._rules(next(iter(rubrics))).splitlines():
            name, _, meaning = line.replace("：", ":", 1).partition(":")
            if name in meanings:
                meanings[name] = meaning.strip()
            else:
                guide.append(line)
        self.guide = "\n".join(guide)
        self.entries = (Entry("label", "Label", options=meanings),)

    def _rules(self, rubric: str) -> str:
        """Write the instruction without its last line, the form of a judge's answer."""
        return self.judge_task.instruction(rubric).rpartition("\n")[0]

    def shown(self, row: Row) -> Mapping[str, str]:
        """Show the fields that a judge is shown, texts under one heading joined."""
        request = JudgeRequest.model_validate(row)
        texts = {RULES: self._rules(self.judge_task.rubric(request))} if self.shows_rules else {}
        for field in self.judge_task.item(request):
            before = f"{texts[field.heading]}\n" if field.heading in texts else ""
            texts[field.heading] = f"{before}{field.text or '(empty)'}"
        return texts

    def pictures(self, row: Row) -> Sequence[str]:
        """List the pictures that a judge sees."""
        return self.judge_task.pictures(JudgeRequest.model_validate(row))

    def settled(self, row: Row, fillings: Mapping[str, Filled]) -> Row:
        """Make a labelled example of the row."""
        label = agreed_values(fillings)["label"]
        return {**row, "task": self.name, "label": label, "annotators": list(fillings)}


def form_of(task: str, requests: Sequence[JudgeRequest]) -> Form:
    """Choose the form in which people label requests of a task.

    It is the task's own screen, if it has one that states the rules of all these requests.
    """
    rubrics = set(map(get_task(task).rubric, requests))
    screens = (form for form in FORMS if form.task == task)
    fitting = (each for each in screens if each.rubric is None or rubrics <= {each.rubric})
    return next(fitting, None) or LabelForm(task, requests)
