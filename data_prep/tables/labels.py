"""People's words for a label, and the labels of a task."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from data_prep.tables.mapping import PERSON
from judging.errors import FieldError
from judging.labels import UNKNOWN, labels_option
from judging.tasks import get_task
from judging.tasks.hieval_qs import PARTIAL
from judging.types import JudgeRequest, LabelledExample, label_of, score_of, type_of

RequestT = TypeVar("RequestT", bound=JudgeRequest)
_MAX_SHOWN = 12
_MAX_LABEL_CHARS = 40
_MAX_CELL = 400
"""Longer cells are texts, not labels of a few people."""
_WHOLE = re.compile(r"^([+-]?\d+)\.0+$")


OURS = " (custos)"
"""Marks a label of ours in a table whose own word it is for another one."""


class UnknownLabel(FieldError):
    """A label that the task does not have: theirs, and what the mapping makes of it."""

    def __init__(
        self,
        field: str,
        theirs: str,
        meaning: str,
        example: LabelledExample,
        location: str,
        column: str,
    ) -> None:
        task = get_task(example.task)
        self.label, self.example, self.column = theirs, example, column
        self.mapped = "" if meaning == self.label else f" mapped to '{_short(meaning)}'"
        # A table with a Partial label is read in mode any-partial.
        asked = in_three_levels(example) if example.reference_mode == "any" else example
        self.rubric = task.full_rubric(example)
        self.labels = task.labels(task.rubric(asked))
        self.worth = task.worth(task.rubric(asked))
        super().__init__(
            field,
            f"{_prefix(column, field)}'{_short(self.label)}'{self.mapped} is not one of "
            f"{', '.join(self.labels)}; {_remedy([self])}",
            location,
        )


def with_our_labels(
    example: LabelledExample, labels: Mapping[str, str], location: str, columns: Mapping[str, str]
) -> LabelledExample:
    """Give an example, which its task can judge, with labels of that task.

    ``labels`` maps theirs to ours. The case of a label and spaces around it do not matter. A label
    without its error type gets it from ``error_type``, which is that of ``label``: others have to
    hold their own. For errors, ``location`` names file and row, and ``columns`` maps our fields to
    their columns. Raise ``UnknownLabel`` if the task has no such label, and ``FieldError`` if the
    label is none by the mapping, or the error type is not that of the label.
    """
    task = get_task(example.task)
    known = {_fold(label): label for label in task.labels(task.rubric(example))}
    error_type = None if example.error_type is None else _translate(example.error_type, labels)

    def ours(field: str, theirs: str | None) -> str | None:
        """Find a label of the task; ``None`` if there is none, or it is none by the mapping."""
        label = "" if theirs is None else _translate(theirs, labels)
        if not label or theirs is None:
            return None
        found = known.get(_fold(label))
        if found is None and field == "label":
            found = known.get(_fold(f"{label}; {error_type}"))
        if found is None:
            column = columns.get(field) or columns.get(field.partition(".")[0], field)
            raise UnknownLabel(field, theirs, label, example, location, column)
        return found

    by_person = {
        name: ours(f"{PERSON}{name}", theirs) for name, theirs in example.annotator_labels.items()
    }
    changes: dict[str, Any] = {
        "label": ours("label", example.label),
        "second_label": ours("second_label", example.second_label),
        "annotator_labels": {name: label for name, label in by_person.items() if label},
    }
    if changes["label"] is None:
        message = f"'{_short(example.label)}' is no label, as the mapping says"
        raise FieldError("label", message, location)
    if error_type is not None:
        label, given = str(changes["label"]), _fold(error_type)
        # Beside a label without a type, only a type of the task says something else: "none" and "-"
        # are no error.
        types = {_fold(type_of(each)) for each in known.values()}
        contradicts = given != _fold(type_of(label)) if type_of(label) else given in types
        if given and contradicts:
            prefix = _prefix(columns.get("error_type", "error_type"), "error_type")
            message = f"{prefix}'{_short(error_type)}' contradicts the label '{label}'"
            raise FieldError("error_type", message, location)
        changes["error_type"] = type_of(label) or None
    return example.model_copy(update=changes)


def in_own_words(label: str, labels: Mapping[str, str]) -> str:
    """Write a label of ours in the words of a table, whose ``labels`` map theirs to ours.

    Of several words for it the first is taken. Score and error type are translated each for itself
    where there is no word for both; what has no word stays ours, marked if it is a word of the
    table for something else. All commands read what is returned as the label.
    """
    words: dict[str, str] = {}
    for theirs, ours in labels.items():
        if ours:
            words.setdefault(_fold(ours), theirs)
    if (word := words.get(_fold(label))) is not None:
        return word
    own = [words.get(_fold(part), part) for part in (score_of(label), type_of(label))]
    text = label_of(own[0], own[1])
    is_read = _fold(_translate(text, labels)) == _fold(label)
    return text if is_read else label + OURS


def is_word_of(label: str, labels: Mapping[str, str]) -> bool:
    """Tell whether a table's ``labels`` say what a label means."""
    return _fold(label) in map(_fold, labels)


def most_given(by_person: Mapping[str, str], labels: Mapping[str, str]) -> str | None:
    """Find the label that most people gave, in their words; ``None`` if nobody gave one.

    Of labels that equally many gave it is that of the person who is named first. ``labels`` says
    which of them mean the same.
    """
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for label in by_person.values():
        if meaning := _fold(_translate(label, labels)):
            first.setdefault(meaning, label)
            counts[meaning] += 1
    return first[max(first, key=counts.__getitem__)] if first else None


def in_three_levels(request: RequestT) -> RequestT:
    """Return a request whose references are alternatives, of which a part is ``Partial``."""
    return request.model_copy(update={"reference_mode": "any-partial"})


def may_be_partial(cells: Iterable[Any], labels: Mapping[str, str]) -> bool:
    """Tell whether a cell of a row can be the label ``Partial``, or holds labels of people."""
    words = {PARTIAL, *(theirs for theirs, ours in labels.items() if score_of(ours) == PARTIAL)}
    folded = {_fold(word) for word in words}
    for cell in cells:
        if isinstance(cell, str | int | float):
            parts = re.split(r"[=:;,\"{}]", _fold(str(cell))) if len(str(cell)) < _MAX_CELL else ()
            if folded & {part.strip() for part in parts}:
                return True
        elif cell and isinstance(cell, Mapping | list | tuple):
            return True
    return False


def needs_three_levels(example: LabelledExample, labels: Mapping[str, str]) -> bool:
    """Tell whether somebody gave an example a score that only mode ``any-partial`` has."""
    if example.reference_mode != "any":
        return False
    task = get_task(example.task)
    scores = [
        {_fold(score_of(label)) for label in task.labels(task.rubric(each))}
        for each in (example, in_three_levels(example))
    ]
    given = (example.label, example.second_label, *example.annotator_labels.values())
    meant = (_fold(score_of(_translate(label, labels))) for label in given if label)
    return any(label in scores[1] - scores[0] for label in meant)


def describe_unknown(errors: Mapping[int, UnknownLabel]) -> str:
    """List the labels that tasks do not have, by row, those that they have, and the remedy."""
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
    """Write labels with their counts as text, the most common first."""
    shown = [f"{name} ({count})" for name, count in counts.most_common(_MAX_SHOWN)]
    if len(counts) > _MAX_SHOWN:
        shown.append(f"and {len(counts) - _MAX_SHOWN} more")
    return ", ".join(shown)


def _remedy(errors: Sequence[UnknownLabel]) -> str:
    """Write the option that translates labels, to be copied."""
    choices = {error.label: error.labels for error in errors}
    is_short = len(choices) <= _MAX_SHOWN and max(map(len, choices)) <= _MAX_LABEL_CHARS
    columns = " ".join({error.column for error in errors})
    worth = {label: each for error in errors for label, each in error.worth.items()}
    option = labels_option(choices, columns, worth) if is_short else None
    if option is None:
        return "translate them under 'labels' in a file for --mapping"
    choice = f" (with a label of the task for each {UNKNOWN})" if f"={UNKNOWN}" in option else ""
    return f"add {option}{choice}"


def _listed(names: Sequence[str]) -> str:
    """Write names as text: ``a, b and c``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _translate(label: str, labels: Mapping[str, str]) -> str:
    """Find what a label means, score and error type each for itself where no word is for both."""
    if label.endswith(OURS):
        return label.removesuffix(OURS)
    if label in labels:
        return labels[label]
    known = {_fold(theirs): ours for theirs, ours in labels.items()}
    if (meaning := known.get(_fold(label))) is not None:
        return meaning
    score, kind = score_of(label), type_of(label)
    if not kind or not {_fold(score), _fold(kind)} & known.keys():
        return label
    score, kind = known.get(_fold(score), score), known.get(_fold(kind), kind)
    return label_of(score, kind) if score else ""


def _fold(label: str) -> str:
    """Fold a label: without case, spacing and Unicode's ways of writing it; 1.0 as 1."""
    plain = unicodedata.normalize("NFC", " ".join(label.replace(";", "; ").split())).casefold()
    return _WHOLE.sub(r"\1", plain)


def _prefix(column: str, field: str) -> str:
    return "" if column == field else f"column '{column}': "


def _short(label: str) -> str:
    plain = " ".join(label.split())
    return plain if len(plain) <= _MAX_LABEL_CHARS else f"{plain[:_MAX_LABEL_CHARS]}..."
