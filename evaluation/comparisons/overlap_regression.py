"""Logistic regression on word overlap, the strongest judge that reads nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evaluation.comparisons.baselines import normalise, parse_number, shared_token_f1
from evaluation.intervals import Floats, number_clusters
from evaluation.outcomes import full_label
from judging.types import JudgeRequest, LabelledExample, Verdict

NAME = "logistic_overlap"
"""Name of the baseline in reports."""
FOLDS = 10
Labels = npt.NDArray[np.str_]
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


def regression_verdicts(examples: Sequence[LabelledExample]) -> list[Verdict] | None:
    """Judge every example by a regression that was fitted on the other questions' labels.

    The folds hold whole questions. The regression sees labels of the very data that it is measured
    on, of other questions, which no judge does: it is a rival and no tool.

    Returns:
        ``None`` with fewer than two questions or labels.
    """
    questions = number_clusters([example.group or example.question for example in examples])
    num_questions = len(set(questions.tolist()))
    targets = np.array([full_label(example) for example in examples])
    if num_questions < 2 or len(set(targets.tolist())) < 2:
        return None
    features = np.array([overlap_features(example) for example in examples])
    folds = np.random.default_rng(0).permutation(num_questions) % min(FOLDS, num_questions)
    verdicts: dict[int, Verdict] = {}
    for fold in np.unique(folds):
        inside = folds[questions] == fold
        labels, probabilities = _predict(features[~inside], targets[~inside], features[inside])
        for row, posterior in zip(
            np.flatnonzero(inside).tolist(), probabilities.tolist(), strict=True
        ):
            verdicts[row] = Verdict(
                id=examples[row].id,
                status="scored",
                label=labels[int(np.argmax(posterior))],
                probabilities=dict(zip(labels, posterior, strict=True)),
                judge=NAME,
            )
    return [verdicts[row] for row in range(len(examples))]


def _predict(features: Floats, targets: Labels, new: Floats) -> tuple[list[str], Floats]:
    """Fit a regression; return its labels and their probabilities for new rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    labels = sorted(set(targets.tolist()))
    if len(labels) == 1:
        return labels, np.ones((len(new), 1))
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(features, targets)
    return list(model.classes_), np.asarray(model.predict_proba(new))
