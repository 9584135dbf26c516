"""People's labels and one judge's verdicts: lined up, as arrays, kept in a folder.

People's labels are checked against those that the rubrics declare before anything is measured: a
label that a judge can never give would count as a disagreement on every row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.intervals import Floats, Ints, Mask, number_clusters
from evaluation.metrics import UNSCORED
from judging.errors import CustosError, errors_at
from judging.files.records import read_records, write_records
from judging.tasks import get_task, labels_of
from judging.types import LabelledExample, Verdict, label_of, shortened

EXAMPLES = "examples.jsonl"
VERDICTS = "verdicts.jsonl"
ANSWERS_WITHOUT_LABEL = ("not_judgeable", "abstain")
"""Statuses with which a judge says that it gives no label; the others are failures."""
MAX_REASONS = 10
MAX_IDS = 5


@dataclass(frozen=True)
class Outcomes:
    """People's labels and one judge's for ``n`` items, over ``K`` labels."""

    labels: tuple[str, ...]
    """Full label strings in task order, best first; the axes of a confusion matrix."""
    human: Ints
    """Index of the human label. Shape ``[n]``."""
    predicted: Ints
    """Index of the judge's label, or ``UNSCORED``. Shape ``[n]``."""
    probabilities: Floats
    """Posterior over ``labels``; a row of nan where the judge gave none. Shape ``[n, K]``."""
    confidence: Floats
    """Confidence in the judge's label; nan where it gave none. Shape ``[n]``."""
    clusters: Ints
    """Question (or group) of each item; resampled together. Shape ``[n]``."""

    def __len__(self) -> int:
        return len(self.human)

    @property
    def scored(self) -> Mask:
        """Mark the items that the judge gave a label. Shape ``[n]``."""
        return np.asarray(self.predicted != UNSCORED)

    @property
    def right(self) -> Mask:
        """Mark the items that the judge gave the human label. Shape ``[n]``."""
        return np.asarray(self.predicted == self.human)

    def take(self, rows: npt.NDArray[Any]) -> Outcomes:
        """Select items by a mask or indices."""
        return replace(
            self,
            human=self.human[rows],
            predicted=self.predicted[rows],
            probabilities=self.probabilities[rows],
            confidence=self.confidence[rows],
            clusters=self.clusters[rows],
        )


def question_numbers(examples: Sequence[LabelledExample]) -> Ints:
    """Number the questions (or groups) of examples, which are alike. Shape ``[n]``."""
    return number_clusters([example.group or example.asked for example in examples])


def gather(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict], labels: Sequence[str]
) -> Outcomes:
    """Line up examples and one judge's verdicts on them, over labels that :func:`label_set` lists.

    Raise ``CustosError`` if their numbers, order or ids differ, or there are none.
    """
    check_aligned(examples, verdicts)
    index = {label: number for number, label in enumerate(labels)}
    probabilities = np.full((len(verdicts), len(labels)), np.nan)
    for row, verdict in enumerate(verdicts):
        if verdict.probabilities:
            probabilities[row] = [verdict.probabilities.get(label, 0.0) for label in labels]
    predicted = np.array(
        [UNSCORED if verdict.label is None else index[full_label(verdict)] for verdict in verdicts]
    )
    posterior = probabilities[np.arange(len(verdicts)), predicted]
    calibrated = np.array([np.nan if v.confidence is None else v.confidence for v in verdicts])
    confidence = np.where(np.isnan(calibrated), posterior, calibrated)
    human = np.array([index[full_label(example)] for example in examples])
    confidence = np.where(predicted == UNSCORED, np.nan, confidence)
    clusters = question_numbers(examples)
    return Outcomes(tuple(labels), human, predicted, probabilities, confidence, clusters)


def check_aligned(examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]) -> None:
    """Raise ``CustosError`` unless there is one verdict per example, in the same order."""
    if not examples:
        raise CustosError("no examples to evaluate: the data is empty")
    if len(examples) != len(verdicts):
        raise CustosError(
            f"{len(verdicts)} verdicts for {len(examples)} examples: give one verdict per example"
        )
    for row, (example, verdict) in enumerate(zip(examples, verdicts, strict=True), 1):
        if example.id != verdict.id:
            raise CustosError(
                f"row {row}: verdict '{verdict.id}' does not belong to example '{example.id}': "
                "verdicts must be in the order of the examples"
            )


def full_label(record: LabelledExample | Verdict) -> str:
    """Spell the label with its error type as the task does: ``Wrong; Reasoning Error``."""
    label = record.label or ""
    return label if ";" in label else label_of(label, record.error_type)


class NothingScored(CustosError):
    """An evaluation in which no row got a label."""


def unscored_reasons(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Count the verdicts without a label by their reason, the most frequent first.

    Every reason has ``status``, ``message``, ``failed`` (whether the row could not be judged),
    ``n`` and the first ``ids``. After ``MAX_REASONS`` the others are counted together.
    """
    reasons: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        if verdict.label is None:
            message = " ".join((verdict.message or "no message").split())
            reasons.setdefault((verdict.status, message), []).append(verdict.id)
    ranked = sorted(reasons.items(), key=lambda reason: -len(reason[1]))
    counted = [(status, message, ids) for (status, message), ids in ranked[:MAX_REASONS]]
    others: dict[str, list[str]] = {"judge_error": [], ANSWERS_WITHOUT_LABEL[0]: []}
    for (status, _), ids in ranked[MAX_REASONS:]:
        is_answer = status in ANSWERS_WITHOUT_LABEL
        others[ANSWERS_WITHOUT_LABEL[0] if is_answer else "judge_error"] += ids
    text = "other reasons, see verdicts.jsonl"
    counted += [(status, text, ids) for status, ids in others.items() if ids]
    return [
        {
            "status": status,
            "message": message,
            "failed": status not in ANSWERS_WITHOUT_LABEL,
            "n": len(ids),
            "ids": ids[:MAX_IDS],
        }
        for status, message, ids in counted
    ]


def check_scored(verdicts: Sequence[Verdict]) -> None:
    """Raise ``NothingScored`` with all reasons if no verdict holds a label."""
    if verdicts and all(verdict.label is None for verdict in verdicts):
        reasons = unscored_reasons(verdicts)
        raise NothingScored(f"no row got a label: {'; '.join(map(describe_reason, reasons))}")


def describe_reason(reason: Mapping[str, Any]) -> str:
    """Word a reason: ``3 rows: no label in the text (id 4, 7, 9)``."""
    more = ", ..." if reason["n"] > len(reason["ids"]) else ""
    rows = f"{reason['n']} row{'s' * (reason['n'] > 1)}"
    return f"{rows}: {reason['message']} (id {', '.join(reason['ids'])}{more})"


def save_evaluation(
    folder: Path, examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]
) -> None:
    """Write ``examples.jsonl`` and ``verdicts.jsonl``, row by row in the same order."""
    write_records(folder / EXAMPLES, examples)
    write_records(folder / VERDICTS, verdicts)


def load_evaluation(folder: Path) -> tuple[list[LabelledExample], list[Verdict]]:
    """Read what ``save_evaluation`` wrote.

    Raise ``CustosError`` if a file is missing, a row is invalid, or the two files do not line up.
    """
    for name in (EXAMPLES, VERDICTS):
        if not (folder / name).is_file():
            raise CustosError(
                f"{folder}: no {name} there: give the folder that 'custos eval --out' wrote"
            )
    examples = [row for _, row in read_records(folder / EXAMPLES, LabelledExample)]
    verdicts = [row for _, row in read_records(folder / VERDICTS, Verdict)]
    with errors_at(str(folder)):
        check_aligned(examples, verdicts)
    return examples, verdicts


MAX_LABELS_SHOWN = 20
MAX_LABEL_CHARS = 60


def label_set(examples: Sequence[LabelledExample], *verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """List every label that the rubrics declare or that a judge gave, in task order.

    The longest declaration comes first, so that ``Correct, Wrong`` beside
    ``Correct, Partial, Wrong`` keeps the order of the latter. Labels of judges that are not
    declared follow alphabetically. Raise ``CustosError`` if people gave labels that are not
    declared; see :func:`check_labels`.
    """
    check_labels(examples)
    declared = sorted(set(map(labels_of, examples)), key=lambda d: (-len(d), d))
    given = {full_label(each) for each in chain(*verdicts) if each.label is not None}
    return tuple(dict.fromkeys([*chain(*declared), *sorted(given)]))


def check_labels(
    examples: Sequence[LabelledExample],
    source: str = "",
    row_name: Callable[[int], str] = lambda index: f"row {index + 1}",
) -> None:
    """Check that the rubric of every example declares the labels that people gave it.

    The ``CustosError`` counts the labels that are not declared, names the first row of each, and
    says which are. ``source`` and ``row_name``, which names an example by its index, are for it.
    """
    undeclared: dict[tuple[str, str, str], list[int]] = {}
    declared: dict[str, tuple[str, ...]] = {}
    for index, example in enumerate(examples):
        labels = {"label": full_label(example), "second_label": example.second_label}
        for name, given in example.annotator_labels.items():
            labels[f"annotator_labels.{name}"] = given
        with errors_at(row_name(index)):
            known = labels_of(example)
        for field, label in labels.items():
            if label is not None and label not in known:
                rubric = get_task(example.task).full_rubric(example)
                declared[rubric] = known
                undeclared.setdefault((field, rubric, label), []).append(index)
    if not undeclared:
        return
    clauses = [
        f"field '{field}': {rubric} does not declare '{shortened(label, MAX_LABEL_CHARS)}' "
        f"({len(rows)} row{'s' * (len(rows) > 1)}, the first is {row_name(rows[0])})"
        for (field, rubric, label), rows in undeclared.items()
    ]
    more = [f"and {len(clauses) - MAX_LABELS_SHOWN} other labels"]
    clauses[MAX_LABELS_SHOWN:] = more if len(clauses) > MAX_LABELS_SHOWN else []
    clauses += [f"{rubric} declares {', '.join(labels)}" for rubric, labels in declared.items()]
    fault = f"{'; '.join(clauses)}; translate them with --labels"
    raise CustosError(f"{source}: {fault}".removeprefix(": "))
