"""Logistic regression on word overlap, the strongest judge that reads nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from evaluation.comparisons.baselines import parse_number, shared_token_f1
from evaluation.comparisons.regression import regression_verdicts
from judging.rules.whole_words import normalise
from judging.types import JudgeRequest, LabelledExample, Verdict

NAME = "logistic_overlap"
"""Name of the baseline in reports."""
_NEGATION = re.compile(r"\b(?:no|not|never|nor|none|neither|isn't|wasn't|aren't|cannot|can't)\b")
_HEDGE = re.compile(r"\b(?:or|maybe|perhaps|possibly|might|either|unclear|unknown|unsure)\b")


def overlap_features(request: JudgeRequest) -> list[float]:
    """Return what can be counted of a response and its references without understanding them."""
    response = normalise(request.response)
    references = [normalise(text) for text in request.references if text.strip()]
    tokens, asked = set(response.split()), set(normalise(request.question).split())
    wanted = [set(reference.split()) for reference in references]
    recalls = [len(tokens & words) / len(words) for words in wanted if words] or [0.0]
    occurs = [reference in response for reference in references] or [False]
    wanted_numbers = {number for words in wanted for number in map(parse_number, words)} - {None}
    numbers = set(map(parse_number, tokens)) - {None}
    reference_length = max(map(len, references), default=0)
    return [
        float(any(occurs)),
        float(np.mean(occurs)),
        max((shared_token_f1(response, reference) for reference in references), default=0.0),
        max(recalls),
        float(np.mean(recalls)),
        len(tokens & asked) / max(1, len(tokens)),
        math.log((1 + len(response)) / (1 + reference_length)),
        math.log(1 + len(response)),
        float(bool(wanted_numbers) and wanted_numbers <= numbers),
        float(bool(numbers - wanted_numbers)),
        float(bool(_NEGATION.search(request.response.casefold()))),
        float(bool(_HEDGE.search(request.response.casefold()))),
        float(not response),
    ]


def overlap_verdicts(examples: Sequence[LabelledExample]) -> list[Verdict] | None:
    """Judge every example by :func:`overlap_features`; see :func:`regression_verdicts`."""
    features = np.array([overlap_features(example) for example in examples])
    return regression_verdicts(examples, features, NAME)
