"""The choice of the best validation, and the end of a run that no longer gets better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def selection_key(scores: Mapping[str, float]) -> tuple[float, float]:
    """Return the key that ranks adapters: higher accuracy first, then lower ``val_nll``.

    An accuracy that is not known (no row that people decided) ranks nothing. Where ``val_nll`` is
    not a number, neither are the scores that the accuracy comes from: such a validation is the
    worst.
    """
    if math.isnan(scores["val_nll"]):
        return -1.0, -math.inf
    accuracy = scores.get("val_accuracy", 0.0)
    return 0.0 if math.isnan(accuracy) else accuracy, -scores["val_nll"]


def validations_in(history: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """Return the entries of a run's history that are validations, in order."""
    return [entry for entry in history if "val_nll" in entry]


def validations_without_gain(history: Sequence[Mapping[str, float]]) -> int:
    """Return how many validations came after the best one; of equal ones, the first is best."""
    keys = [selection_key(entry) for entry in validations_in(history)]
    return len(keys) - 1 - keys.index(max(keys)) if keys else 0
