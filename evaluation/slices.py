"""One judge's metrics on the parts that its items divide into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from evaluation.estimate import Mask
from evaluation.measure import measure
from evaluation.outcomes import Outcomes
from judging.types import LabelledExample

METADATA_KEYS = ("answerer", "domain", "level", "language")
SLICE_METRICS = ("accuracy", "coverage", "kappa")
LENGTHS = ("short", "middle", "long")


def slice_metrics(
    examples: Sequence[LabelledExample], outcomes: Outcomes, seed: int = 0
) -> dict[str, dict[str, dict[str, Any]]]:
    """Compute accuracy, coverage and kappa on every part of the examples.

    Examples are divided by the metadata keys ``answerer``, ``domain``, ``level`` and ``language``
    where given, by thirds of response length, and by task with variant.

    Args:
        examples: Examples in the order of ``outcomes``.
        outcomes: People's labels and the judge's.
        seed: Seed of the resamples.

    Returns:
        Division to part to ``n`` (items, unscored ones included) and the metrics.
    """
    return {
        division: {
            part: _measure_part(outcomes, np.array([p == part for p in parts]), seed)
            for part in _in_order(parts)
        }
        for division, parts in divisions(examples)
    }


def divisions(examples: Sequence[LabelledExample]) -> Iterator[tuple[str, list[str | None]]]:
    """Yield each division's name and the part that each example falls into."""
    for key in METADATA_KEYS:
        values = [example.metadata.get(key) for example in examples]
        if any(value is not None for value in values):
            yield key, [None if value is None else str(value) for value in values]
    yield "response_length", list(length_thirds(examples))
    yield "task", [f"{example.task}/{example.variant}" for example in examples]


def length_thirds(examples: Sequence[LabelledExample]) -> list[str]:
    """Return the third of response lengths of each example, with its range in characters.

    A pair counts both responses. Equal lengths stay together, so that thirds can be uneven or
    empty.
    """
    lengths = np.array([sum(map(len, example.responses)) for example in examples])
    third = np.searchsorted(np.sort(lengths), lengths, side="left") * 3 // max(1, len(lengths))
    names = {}
    for number, name in enumerate(LENGTHS):
        inside = lengths[third == number]
        if len(inside):
            names[number] = f"{name} ({inside.min()}-{inside.max()} characters)"
    return [names[number] for number in third]


def _in_order(parts: Sequence[str | None]) -> list[str]:
    names = {part for part in parts if part is not None}
    rank = {name: number for number, name in enumerate(LENGTHS)}
    return sorted(names, key=lambda part: (rank.get(part.partition(" (")[0], 0), part))


def _measure_part(outcomes: Outcomes, inside: Mask, seed: int) -> dict[str, Any]:
    part = outcomes.take(inside)
    return {"n": len(part), **measure(part, SLICE_METRICS, seed)}
