"""People's words for a label, and the labels of a task."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from judging.errors import FieldError
from judging.names.labels import UNKNOWN, labels_option, likely_label
from judging.tasks import get_task
from judging.types import LabelledExample, ReferenceMode, type_of

_MAX_SHOWN = 12
_MAX_LABEL_CHARS = 40
_WHOLE = re.compile(r"^([+-]?\d+)\.0+$")


class UnknownLabel(FieldError):
    """A label that the task does not have.

    Args:
        field: ``label`` or ``second_label``.
        example: The row.
        location: File and row.
        column: Column of the label.
        meaning: What the mapping makes of the label; the label itself if it is not mapped.
    """

    def __init__(
        self, field: str, example: LabelledExample, location: str, column: str, meaning: str
    ) -> None:
        task = get_task(example.task)
        self.label = str(getattr(example, field))
        self.example = example
        self.column = column
        self.mapped = "" if meaning == self.label else f" mapped to '{_short(meaning)}'"
        self.rubric = task.full_rubric(example)
        self.labels = task.labels(task.rubric(example))
        prefix = "" if column == field else f"column '{column}': "
        super().__init__(
            field,
            f"{prefix}'{_short(self.label)}'{self.mapped} is not one of {', '.join(self.labels)}; "
            f"{_remedy([self])}",
            location,
        )

    def hint(self) -> str:
        """Return which reference mode has the label that seems to be meant, if another one has."""
        mode: ReferenceMode = "any" if self.example.reference_mode == "all" else "all"
        other = self.example.model_copy(update={"reference_mode": mode})
        task = get_task(other.task)
        meant = likely_label(self.label, task.labels(task.rubric(other)))
        if meant is None or meant in self.labels:
            return ""
        return f"'{meant}' is a label with --reference-mode {mode} only"


def with_our_labels(
    example: LabelledExample, labels: Mapping[str, str], location: str, columns: Mapping[str, str]
) -> LabelledExample:
    """Return an example whose labels are its task's.

    The case of a label and spaces around it do not matter. A label without its error type gets it
    from ``error_type``, which is the first person's: a second label has to hold its own.

    Args:
        example: An example that its task can judge.
        labels: Their label to ours.
        location: File and row, for the error.
        columns: Our field to their column, for the error.

    Raises:
        UnknownLabel: If the task has no such label.
        FieldError: If the error type is not that of the label.
    """
    task = get_task(example.task)
    known = {_fold(label): label for label in task.labels(task.rubric(example))}
    error_type = None if example.error_type is None else _translate(example.error_type, labels)
    changes: dict[str, str | None] = {}
    for field in ("label", "second_label"):
        theirs = getattr(example, field)
        if theirs is None:
            continue
        label = _translate(theirs, labels)
        ours = known.get(_fold(label))
        if ours is None and field == "label":
            ours = known.get(_fold(f"{label}; {error_type}"))
        if ours is None:
            raise UnknownLabel(field, example, location, columns.get(field, field), label)
        changes[field] = ours
    if error_type is not None:
        label = str(changes["label"])
        if _contradicts(error_type, label, known.values()):
            column = columns.get("error_type", "error_type")
            prefix = "" if column == "error_type" else f"column '{column}': "
            message = f"{prefix}'{_short(error_type)}' contradicts the label '{label}'"
            raise FieldError("error_type", message, location)
        changes["error_type"] = type_of(label) or None
    return example.model_copy(update=changes)


def _contradicts(error_type: str, label: str, labels: Iterable[str]) -> bool:
    """Return whether an error type says something else than a label.

    Beside a label without a type, only a type of the task does: "none" and "-" are no error.

    Args:
        error_type: Content of ``error_type``, translated.
        label: Label of the task.
        labels: All labels of the task.
    """
    given = _fold(error_type)
    if not given:
        return False
    if of_label := type_of(label):
        return given != _fold(of_label)
    return any(given == _fold(type_of(each)) for each in labels)


def describe_unknown(errors: Mapping[int, UnknownLabel]) -> str:
    """Return the labels that tasks do not have, those they have, and the remedy.

    Args:
        errors: Row number to the error; every label is named with its count and its first row.
    """
    by_rubric: dict[str, dict[int, UnknownLabel]] = {}
    for row, error in errors.items():
        by_rubric.setdefault(error.rubric, {})[row] = error
    clauses = []
    for rubric, of_rubric in by_rubric.items():
        names = {row: f"'{_short(error.label)}'{error.mapped}" for row, error in of_rubric.items()}
        first_rows = {name: row for row, name in reversed(names.items())}
        labels = next(iter(of_rubric.values())).labels
        of = "" if len(by_rubric) == 1 else f" of {rubric}"
        counts = Counter(names.values())
        shown = [
            f"{name} ({count} row{'s' if count > 1 else ''}, the first is row {first_rows[name]})"
            for name, count in counts.most_common(_MAX_SHOWN)
        ]
        others = len(counts) - len(shown)
        given = _listed([*shown, *([f"{others} others"] if others else [])])
        are = "is" if len(counts) == 1 else "are"
        clauses.append(f"the labels{of} are {_listed(labels)}; {given} {are} not among them")
    return "; ".join([*clauses, _remedy(list(errors.values()))])


def count_labels(counts: Counter[str]) -> str:
    """Return labels with their counts as text, the most common first."""
    shown = [f"{name} ({count})" for name, count in counts.most_common(_MAX_SHOWN)]
    if len(counts) > _MAX_SHOWN:
        shown.append(f"and {len(counts) - _MAX_SHOWN} more")
    return ", ".join(shown)


def _remedy(errors: Sequence[UnknownLabel]) -> str:
    """Return the option that translates labels, to be copied."""
    choices = {error.label: error.labels for error in errors}
    is_short = len(choices) <= _MAX_SHOWN and max(map(len, choices)) <= _MAX_LABEL_CHARS
    columns = " ".join({error.column for error in errors})
    option = labels_option(choices, columns) if is_short else None
    if option is None:
        return "translate them under 'labels' in a file for --mapping"
    by_label = {error.label: error for error in errors}
    hints = list(dict.fromkeys(filter(None, (error.hint() for error in by_label.values()))))
    choice = [f"with a label of the task for each {UNKNOWN}"] if f"={UNKNOWN}" in option else []
    notes = ", ".join([*choice, *hints])
    return f"add {option}{f' ({notes})' if notes else ''}"


def _listed(names: Sequence[str]) -> str:
    """Return names as text: ``a, b and c``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _translate(label: str, labels: Mapping[str, str]) -> str:
    folded = {_fold(theirs): ours for theirs, ours in labels.items()}
    return labels.get(label) or folded.get(_fold(label)) or label


def _fold(label: str) -> str:
    """Return a label without case, spacing and Unicode's ways of writing it; 1.0 as 1."""
    plain = unicodedata.normalize("NFC", " ".join(label.replace(";", "; ").split())).casefold()
    return _WHOLE.sub(r"\1", plain)


def _short(label: str) -> str:
    plain = " ".join(label.split())
    return plain if len(plain) <= _MAX_LABEL_CHARS else f"{plain[:_MAX_LABEL_CHARS]}..."
