"""People's labels checked against those that the rubrics declare, before anything is measured.

A label that a judge can never give would count as a disagreement on every row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluation.outcomes import full_label
from judging.errors import CustosError, FieldError
from judging.labels import UNKNOWN, labels_option, likely_label
from judging.tasks import get_task
from judging.types import LabelledExample, Verdict

MAX_LABELS_SHOWN = 20
MAX_LABEL_CHARS = 40


@dataclass
class _Undeclared:
    """A label that a rubric does not declare, in one column."""

    field: str
    label: str
    rubric: str
    declared: tuple[str, ...]
    first_row: int
    rows: int = 0


def label_set(examples: Sequence[LabelledExample], *verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """List every label that the rubrics declare or that a judge gave, in task order.

    The longest declaration comes first, so that ``Correct, Wrong`` beside
    ``Correct, Partial, Wrong`` keeps the order of the latter. Labels of judges that are not
    declared follow alphabetically. Raise ``CustosError`` if people gave labels that are not
    declared; see :func:`check_labels`.
    """
    check_labels(examples)
    declared = {_declared_labels(example) for example in examples}
    in_order = [
        label for labels in sorted(declared, key=lambda d: (-len(d), d)) for label in labels
    ]
    given = {
        full_label(verdict)
        for of_judge in verdicts
        for verdict in of_judge
        if verdict.label is not None
    }
    return tuple(dict.fromkeys([*in_order, *sorted(given)]))


def check_labels(
    examples: Sequence[LabelledExample],
    source: str = "",
    row_name: Callable[[int], str] = lambda index: f"row {index + 1}",
) -> None:
    """Check that the rubric of every example declares the labels that people gave it.

    The ``CustosError`` names every undeclared label with its number of rows and its first row, the
    labels that are declared, and the option that translates the one into the other. ``source`` and
    ``row_name``, which names an example by its index, are for it.
    """
    undeclared = _undeclared_labels(examples, row_name)
    if not undeclared:
        return
    clauses = []
    for field, rubric in dict.fromkeys((each.field, each.rubric) for each in undeclared):
        of_rubric = [each for each in undeclared if (each.field, each.rubric) == (field, rubric)]
        shown = []
        for each in of_rubric[:MAX_LABELS_SHOWN]:
            label, rows = " ".join(each.label.split()), f"{each.rows} row{'s' * (each.rows > 1)}"
            if len(label) > MAX_LABEL_CHARS:
                label = f"{label[:MAX_LABEL_CHARS]}..."
            shown.append(f"'{label}' ({rows}, the first is {row_name(each.first_row)})")
        if len(of_rubric) > MAX_LABELS_SHOWN:
            shown.append(f"and {len(of_rubric) - MAX_LABELS_SHOWN} other labels")
        clauses.append(
            f"field '{field}': {rubric} does not declare {', '.join(shown)}; "
            f"it declares {', '.join(of_rubric[0].declared)}"
        )
    raise CustosError(
        "; ".join([f"{source}: {clauses[0]}".removeprefix(": "), *clauses[1:], _remedy(undeclared)])
    )


def _undeclared_labels(
    examples: Sequence[LabelledExample], row_name: Callable[[int], str]
) -> list[_Undeclared]:
    """Find the labels that are not declared, by column and rubric, in order of first rows."""
    undeclared: dict[tuple[str, str, str], _Undeclared] = {}
    for index, example in enumerate(examples):
        labels = {"label": full_label(example), "second_label": example.second_label}
        for name, given in example.annotator_labels.items():
            labels[f"annotator_labels.{name}"] = given
        try:
            declared = _declared_labels(example)
        except FieldError as error:
            raise error.at(row_name(index)) from None
        for field, label in labels.items():
            if label is None or label in declared:
                continue
            rubric = get_task(example.task).full_rubric(example)
            key = (field, rubric, label)
            entry = _Undeclared(field, label, rubric, declared, index)
            undeclared.setdefault(key, entry).rows += 1
    return list(undeclared.values())


def _remedy(undeclared: Sequence[_Undeclared]) -> str:
    """Advise what to do: the option to copy, or what else translates the labels."""
    choices: dict[str, tuple[str, ...]] = {}
    for each in undeclared:
        earlier = choices.get(each.label, each.declared)
        choices[each.label] = tuple(label for label in earlier if label in each.declared)
    typed = [each for each in undeclared if each.label.partition(";")[0] in each.declared]
    if len(typed) == len(undeclared):
        return "leave the error types out (field 'error_type'), or choose a task that names them"
    is_short = len(choices) <= MAX_LABELS_SHOWN and max(map(len, choices)) <= MAX_LABEL_CHARS
    option = labels_option(choices) if is_short else None
    if option is None:
        return "translate them under 'labels' in a file for --mapping"
    if f"={UNKNOWN}" not in option:
        return f"translate them: {option}"
    advice = f"translate them, with a declared label for each {UNKNOWN}: {option}"
    for each in undeclared:  # a label may fit only where references form an answer set
        task, _, rubric = each.rubric.partition("/")
        variant, _, mode = rubric.rpartition("/")
        if variant and mode == "any" and not likely_label(each.label, each.declared):
            if likely_label(each.label, get_task(task).labels(f"{variant}/all")) is not None:
                return (
                    f"{advice}; with --reference-mode all there is a label for partly right answers"
                )
    return advice


def _declared_labels(example: LabelledExample) -> tuple[str, ...]:
    task = get_task(example.task)
    return task.labels(task.rubric(example))
