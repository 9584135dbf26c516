"""Agreement of people who labelled the same items, over all labels and for each of them.

HiEval's Table 7 has a kappa for each label, which sets that label against all others, and one over
all labels.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from evaluation.estimate import Draws, without_nan
from evaluation.intervals import Floats, number_clusters
from evaluation.metrics import cohen_kappa, ratio


def label_agreement(
    pairs: Sequence[tuple[str, str]],
    labels: Sequence[str],
    questions: Sequence[Hashable] | None = None,
) -> dict[str, Any]:
    """Measure how far two people agree on single labels.

    Args:
        pairs: Labels of the two on each item.
        labels: All labels that there are.
        questions: Question of each pair: items on one question, and the pairs of more than two
            people on one item, resemble each other. Default: every pair is of another.

    Returns:
        ``agreement`` (share of equal labels), ``kappa`` (Cohen's over all labels), ``per_label``
        (label to Cohen's kappa of it against all others) and ``mean_per_label``, each with
        ``value``, ``low``, ``high`` and ``n``. ``None`` stands for what does not exist, such as a
        kappa where both used one label throughout.

    Raises:
        ValueError: If a label is not among ``labels``.
    """
    size = len(labels)
    cells = [labels.index(first) * size + labels.index(second) for first, second in pairs]
    counts = np.zeros((len(pairs), size * size))
    counts[np.arange(len(pairs)), cells] = 1
    draws = Draws.of(counts, number_clusters(range(len(pairs)) if questions is None else questions))

    def estimate(value: Callable[[Floats], Floats]) -> dict[str, Any]:
        return draws.estimate(
            lambda sums: value(sums.reshape(*sums.shape[:-1], size, size)), len(pairs), (-1.0, 1.0)
        )

    measured = {
        "agreement": draws.rate(
            lambda sums: _share_of_equal(sums.reshape(*sums.shape[:-1], size, size)),
            lambda sums: sums.sum(axis=-1),
        ),
        "kappa": estimate(cohen_kappa),
        "per_label": {
            label: estimate(partial(_label_kappa, number)) for number, label in enumerate(labels)
        },
        "mean_per_label": estimate(_mean_of_label_kappas),
    }
    return dict(without_nan(measured))


def _share_of_equal(confusion: Floats) -> Floats:
    return ratio(np.trace(confusion, axis1=-2, axis2=-1), confusion.sum(axis=(-2, -1)))


def _label_kappas(confusion: Floats) -> Floats:
    """Return the kappa of each label against all others.

    Args:
        confusion: Shape ``[..., K, K]``.

    Returns:
        Shape ``[..., K]``.
    """
    both = np.diagonal(confusion, axis1=-2, axis2=-1)
    first, second = confusion.sum(axis=-1) - both, confusion.sum(axis=-2) - both
    neither = confusion.sum(axis=(-2, -1))[..., None] - both - first - second
    rows = [np.stack(row, axis=-1) for row in ((both, first), (second, neither))]
    return cohen_kappa(np.stack(rows, axis=-2))


def _label_kappa(number: int, confusion: Floats) -> Floats:
    return np.asarray(_label_kappas(confusion)[..., number])


def _mean_of_label_kappas(confusion: Floats) -> Floats:
    return np.asarray(_label_kappas(confusion).mean(axis=-1))
