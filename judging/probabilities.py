"""Arithmetic on probabilities of labels, keyed by full label string."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from judging.types import score_of

SMALLEST = 1e-300
"""Probability that stands for 0 where a logarithm is needed."""


def normalise(logprobs: Mapping[str, float]) -> dict[str, float]:
    """Return the probabilities of labels, scaled so that they sum to one."""
    values = np.array(list(logprobs.values()))
    return dict(zip(logprobs, np.exp(values - np.logaddexp.reduce(values)).tolist(), strict=True))


def log_probabilities(probabilities: Mapping[str, float]) -> dict[str, float]:
    """Return the logarithms of probabilities; that of 0 is finite too."""
    return {label: math.log(max(p, SMALLEST)) for label, p in probabilities.items()}


def score_logprobs(logprobs: Mapping[str, float]) -> dict[str, float]:
    """Return the log-probability of each score, summed over its error types."""
    by_score: dict[str, list[float]] = {}
    for label, logprob in logprobs.items():
        by_score.setdefault(score_of(label), []).append(logprob)
    return {score: float(np.logaddexp.reduce(values)) for score, values in by_score.items()}


def best_label(probabilities: Mapping[str, float]) -> str:
    """Return the likeliest error type of the likeliest score, as reading left to right would."""
    scores: dict[str, float] = {}
    for label, probability in probabilities.items():
        scores[score_of(label)] = scores.get(score_of(label), 0.0) + probability
    best_score = max(scores, key=scores.__getitem__)
    labels = [label for label in probabilities if score_of(label) == best_score]
    return max(labels, key=probabilities.__getitem__)
