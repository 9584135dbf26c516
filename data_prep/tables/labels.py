"""People's words for a label, and the labels of a task."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from judging.errors import FieldError
from judging.tasks import get_task
from judging.types import LabelledExample, ReferenceMode, type_of

_MEANINGS = {
    "Correct": "correct right yes true 1 good pass accepted ok",
    "Partial": "partial partly partially_correct partially half 0.5 incomplete",
    "Wrong": "wrong incorrect no false 0 bad fail failed rejected",
    "A": "a 1 first left response_a",
    "B": "b 2 second right response_b",
    "None": "none tie equal both neither draw same",
    "Good": "good 1 yes",
    "Bad": "bad 0 no",
}
"""Usual words for a label; only suggestions are made from them."""


class UnknownLabel(FieldError):
    """A label that the task does not have.

    Args:
        label: The label as the table has it.
        example: The row; its label does not count.
        location: File and row.
        column: Column of the label.
    """

    def __init__(self, label: str, example: LabelledExample, location: str, column: str) -> None:
        task = get_task(example.task)
        self.label = label
        self.example = example
        self.rubric = f"{example.task} ({task.rubric(example)})"
        self.labels = task.labels(task.rubric(example))
        place = "" if column == "label" else f"column '{column}': "
        super().__init__(
            "label",
            f"{place}'{label}' is not one of {', '.join(self.labels)}; add {self.option([label])}",
            location,
        )

    def option(self, labels: Iterable[str]) -> str:
        """Return ``--labels`` for their labels, with ours where a word for it is usual."""
        pairs = (f"{label}={_meaning(label, self.labels) or 'LABEL'}" for label in labels)
        return f"--labels {shlex.quote(','.join(pairs))}"

    def hint(self, labels: Iterable[str]) -> str:
        """Say which reference mode has a label that seems to be meant and is not here, if any."""
        meant = {_meaning(label, _MEANINGS) for label in labels} - {None, *self.labels}
        mode: ReferenceMode = "any" if self.example.reference_mode == "all" else "all"
        other = self.example.model_copy(update={"reference_mode": mode})
        task = get_task(other.task)
        absent = [name for name in task.labels(task.rubric(other)) if name in meant]
        return f"'{absent[0]}' is a label with --reference-mode {mode} only" if absent else ""


def with_our_label(
    example: LabelledExample, labels: Mapping[str, str], location: str, column: str
) -> LabelledExample:
    """Return an example whose label is one of its task's.

    The case of a label and spaces around it do not matter. A label without its error type gets it
    from ``error_type``.

    Args:
        example: An example that its task can judge.
        labels: Their label to ours.
        location: File and row, for the error.
        column: Column of the label, for the error.

    Raises:
        UnknownLabel: If the task has no such label.
    """
    task = get_task(example.task)
    known = {_fold(label): label for label in task.labels(task.rubric(example))}
    label = _translate(example.label, labels)
    error_type = None if example.error_type is None else _translate(example.error_type, labels)
    ours = known.get(_fold(label)) or known.get(_fold(f"{label}; {error_type}"))
    if ours is None:
        raise UnknownLabel(example.label, example, location, column)
    changes = {"label": ours} | ({"error_type": type_of(ours) or None} if error_type else {})
    return example.model_copy(update=changes)


def _translate(label: str, labels: Mapping[str, str]) -> str:
    folded = {_fold(theirs): ours for theirs, ours in labels.items()}
    return labels.get(label) or folded.get(_fold(label)) or label


def _fold(label: str) -> str:
    return " ".join(label.split()).casefold()


def _plain(label: str) -> str:
    return re.sub(r"[\s_-]+", "_", label.strip().casefold())


def _meaning(label: str, ours: Iterable[str]) -> str | None:
    """Return which of our labels a word usually stands for."""
    return next((name for name in ours if _plain(label) in _MEANINGS.get(name, "").split()), None)
