"""Logistic regressions on features of a response, which reports set beside a judge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evaluation.intervals import Floats, number_clusters
from evaluation.outcomes import full_label
from judging.types import LabelledExample, Verdict

FOLDS = 10
Labels = npt.NDArray[np.str_]


def regression_verdicts(
    examples: Sequence[LabelledExample], features: Floats, name: str, strength: float = 1.0
) -> list[Verdict] | None:
    """Judge every example by a regression that was fitted on the other questions' labels.

    The folds hold whole questions. The regression sees labels of the very data that it is measured
    on, of other questions, which no judge does: it is a rival and no tool.

    Args:
        examples: Rows with people's labels.
        features: What the regression knows of each, ``[examples, features]``.
        name: Name of the rival in reports.
        strength: Inverse strength of the ridge penalty; fewer rows than features need a small one.

    Returns:
        ``None`` with fewer than two questions or labels.
    """
    questions = number_clusters([example.group or example.question for example in examples])
    num_questions = len(set(questions.tolist()))
    targets = np.array([full_label(example) for example in examples])
    if num_questions < 2 or len(set(targets.tolist())) < 2:
        return None
    folds = np.random.default_rng(0).permutation(num_questions) % min(FOLDS, num_questions)
    verdicts: dict[int, Verdict] = {}
    for fold in np.unique(folds):
        inside = folds[questions] == fold
        labels, probabilities = _predict(
            features[~inside], targets[~inside], features[inside], strength
        )
        for row, posterior in zip(
            np.flatnonzero(inside).tolist(), probabilities.tolist(), strict=True
        ):
            verdicts[row] = Verdict(
                id=examples[row].id,
                status="scored",
                label=labels[int(np.argmax(posterior))],
                probabilities=dict(zip(labels, posterior, strict=True)),
                judge=name,
            )
    return [verdicts[row] for row in range(len(examples))]


def _predict(
    features: Floats, targets: Labels, new: Floats, strength: float
) -> tuple[list[str], Floats]:
    """Fit a regression; return its labels and their probabilities for new rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    labels = sorted(set(targets.tolist()))
    if len(labels) == 1:
        return labels, np.ones((len(new), 1))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000))
    model.fit(features, targets)
    return list(model.classes_), np.asarray(model.predict_proba(new))
