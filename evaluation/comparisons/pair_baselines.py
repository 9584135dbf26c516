"""Judges of pairs that need no model, to compare trained judges with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from evaluation.comparisons import overlap_regression
from evaluation.comparisons.baselines import shared_token_f1
from evaluation.comparisons.regression import regression_verdicts
from evaluation.intervals import Floats
from judging.tasks.truthful import TIE, A, B
from judging.types import JudgeRequest, LabelledExample, Verdict

PairRule = Callable[[JudgeRequest], str]


def longer_response(request: JudgeRequest) -> str:
    """Prefer the response with more characters."""
    return _preferred(*(float(len(text.strip())) for text in request.answers))


def nearer_reference(request: JudgeRequest) -> str:
    """Prefer the response that shares more tokens with a reference, by F1 as SQuAD counts it."""
    return _preferred(
        *(
            max((shared_token_f1(text, reference) for reference in request.references), default=0.0)
            for text in request.answers
        )
    )


PAIR_RULES: Mapping[str, PairRule] = {
    "longer_response": longer_response,
    "nearer_reference": nearer_reference,
}


def pair_baselines(examples: Sequence[LabelledExample]) -> dict[str, list[Verdict]]:
    """Judge pairs by every rule, and by a logistic regression on word overlap.

    The regression knows by how much the first response exceeds the second in each of the features
    of :func:`evaluation.comparisons.overlap_regression.overlap_features`, and the labels of other
    questions; see :func:`evaluation.comparisons.regression.regression_verdicts`.
    """
    verdicts = {
        name: [
            Verdict(id=example.id, status="scored", label=rule(example), judge="rule")
            for example in examples
        ]
        for name, rule in PAIR_RULES.items()
    }
    features = np.array([_features(example, 0) - _features(example, 1) for example in examples])
    name = overlap_regression.NAME
    if by_overlap := regression_verdicts(examples, features, name):
        verdicts[name] = by_overlap
    return verdicts


def _features(pair: JudgeRequest, index: int) -> Floats:
    """Return the features of one response of a pair. Shape ``[features]``."""
    single = pair.model_copy(update={"responses": (pair.responses[index],)})
    return np.array(overlap_regression.overlap_features(single))


def _preferred(first: float, second: float) -> str:
    if first == second:
        return TIE
    return A if first > second else B
