"""People's labels and one judge's verdicts as aligned arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.intervals import Floats, Ints, number_clusters
from evaluation.metrics import UNSCORED
from judging.errors import CustosError, FieldError
from judging.types import LabelledExample, Verdict, label_of


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
    def scored(self) -> npt.NDArray[np.bool_]:
        """Return a mask of the items that the judge gave a label. Shape ``[n]``."""
        return np.asarray(self.predicted != UNSCORED)

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """Return a mask of the items that the judge gave the human label. Shape ``[n]``."""
        return np.asarray(self.predicted == self.human)

    def take(self, rows: npt.NDArray[Any]) -> Outcomes:
        """Return the items that a mask or indices select."""
        return replace(
            self,
            human=self.human[rows],
            predicted=self.predicted[rows],
            probabilities=self.probabilities[rows],
            confidence=self.confidence[rows],
            clusters=self.clusters[rows],
        )


def gather(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict], labels: Sequence[str]
) -> Outcomes:
    """Line up examples and verdicts, which must be in the same order.

    Args:
        examples: Examples with people's labels.
        verdicts: One judge's verdicts, one per example.
        labels: Every label that occurs (:func:`evaluation.declared_labels.label_set`).

    Raises:
        CustosError: If their numbers or ids differ, there are none, or a label is not in
            ``labels``.
    """
    check_aligned(examples, verdicts)
    index = {label: number for number, label in enumerate(labels)}
    for example in examples:
        if full_label(example) not in index:
            fault = f"'{full_label(example)}' is not one of {', '.join(labels)}"
            raise FieldError("label", fault, f"example '{example.id}'")
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
    return Outcomes(
        labels=tuple(labels),
        human=np.array([index[full_label(example)] for example in examples]),
        predicted=predicted,
        probabilities=probabilities,
        confidence=np.where(predicted == UNSCORED, np.nan, confidence),
        clusters=number_clusters([example.group or example.question for example in examples]),
    )


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
    """Return the label with its error type, as the task spells it: ``Wrong; Reasoning Error``."""
    label = record.label or ""
    return label if ";" in label else label_of(label, record.error_type)
