"""Rows that are drawn for people to label, each with a probability that is known.

Only labels of such rows say something of all rows. Doubtful rows are likelier, so that people also
see what a judge leaves to them, and no row is left without a chance.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluation.intervals import Floats, Ints

Mask = npt.NDArray[np.bool_]

DOUBTFUL_SHARE = 0.5
"""Share of the drawn rows that doubtful ones may take, as long as there are others."""
EVEN_SHARE = 0.5
"""Share of the other drawn rows that is spread evenly; the rest is by doubt. It is a floor: no row
of which a judge is sure without reason is so unlikely that it would carry the whole result."""


def sampling_probabilities(
    confidence: Floats, is_doubtful: Mask, num_rows: int, slices: Ints | None = None
) -> Floats:
    """Return the probability with which each row is to be drawn.

    Of the doubtful rows, as many as fit into :data:`DOUBTFUL_SHARE` are drawn, each as likely. The
    others are drawn in proportion to the square root of the probability that the judge is wrong,
    with which a rate is estimated best (Zrnic & Candès 2024, arXiv 2403.03208), above a floor.

    Args:
        confidence: The judge's confidence, 0 to 1; nan counts as none. Shape ``[N]``.
        is_doubtful: Rows that people should see anyway. Shape ``[N]``.
        num_rows: Rows to draw.
        slices: Slice of each row; every slice gets as many rows, a small one all of its own.
            Shape ``[N]``. ``None``: no slices.

    Returns:
        Above 0 and at most 1; their sum is ``num_rows``, or ``N`` if that is less. Shape ``[N]``.
    """
    doubt = np.sqrt(1 - np.nan_to_num(confidence))
    slices = np.zeros(len(doubt), dtype=np.int64) if slices is None else slices
    _, slices, sizes = np.unique(slices, return_inverse=True, return_counts=True)
    probabilities = np.empty(len(doubt))
    for number, budget in enumerate(
        _capped(np.ones(len(sizes)), sizes.astype(np.float64), num_rows)
    ):
        inside = slices == number
        for_doubtful, rest = inside & is_doubtful, inside & ~is_doubtful
        given = min(float(for_doubtful.sum()), max(DOUBTFUL_SHARE * budget, budget - rest.sum()))
        probabilities[for_doubtful] = given / max(1, for_doubtful.sum())
        of_rest = doubt[rest]
        even = np.full(len(of_rest), EVEN_SHARE / max(1, len(of_rest)))
        by_doubt = (1 - EVEN_SHARE) * of_rest / of_rest.sum() if of_rest.sum() else even
        probabilities[rest] = _capped(even + by_doubt, np.ones(len(of_rest)), budget - given)
    return probabilities


def systematic_sample(probabilities: Floats, order: Floats, rng: np.random.Generator) -> Ints:
    """Draw rows systematically: so many, and spread over what they are ordered by.

    Along the order the probabilities are added up, and a row is drawn where the sum passes a whole
    number plus one random start (Madow 1949). Rows with the same place are shuffled.

    Args:
        probabilities: Shape ``[N]``.
        order: What the rows are ordered by, the first column most. Shape ``[N, K]``.
        rng: Draws.

    Returns:
        Indices of the drawn rows, in random order: so a person who stops early has labelled a
        random part of them.
    """
    rows = np.lexsort([rng.random(len(order)), *order.T[::-1]])
    passed = np.floor(np.cumsum(probabilities[rows]) + rng.random())
    is_drawn = np.diff(passed, prepend=0.0) > 0
    return rng.permutation(rows[is_drawn])


def _capped(weights: Floats, most: Floats, total: float) -> Floats:
    """Divide a total in proportion to weights, none getting more than its most. Shape ``[K]``."""
    given, is_open = np.zeros(len(weights)), np.ones(len(weights), dtype=bool)
    while is_open.any():
        left = total - given[~is_open].sum()
        given[is_open] = left * weights[is_open] / weights[is_open].sum()
        over = is_open & (given >= most)
        if not over.any():
            break
        given[over] = most[over]
        is_open &= ~over
    return np.minimum(given, most)
