"""A regression on sentence embeddings, the strongest small judge that others would try first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.comparisons.regression import regression_verdicts
from judging.files.questions import Embed
from judging.types import JudgeRequest, LabelledExample, Verdict

NAME = "sentence_embeddings"
"""Name of the baseline in reports."""
STRENGTH = 0.01
"""Two vectors of 384 numbers a row would fit the labels of a few hundred rows by heart."""


def sentence_verdicts(examples: Sequence[LabelledExample], embed: Embed) -> list[Verdict] | None:
    """Judge every example by embeddings of its response and of the nearest reference.

    Args:
        examples: Rows with people's labels.
        embed: A sentence model, as :func:`judging.files.questions.minilm`.

    Returns:
        ``None`` with fewer than two questions or labels.
    """
    texts = list(dict.fromkeys(text for example in examples for text in _texts(example)))
    vector_of = dict(zip(texts, embed(texts), strict=True))
    features = []
    for example in examples:
        response, question, *references = (vector_of[text] for text in _texts(example))
        nearest = max(references, key=lambda reference: float(reference @ response))
        similarities = [nearest @ response, question @ response, question @ nearest]
        features.append(
            np.concatenate([similarities, np.abs(nearest - response), nearest * response])
        )
    return regression_verdicts(examples, np.array(features), NAME, STRENGTH)


def _texts(request: JudgeRequest) -> list[str]:
    """Return the response, the question, and the references; an empty one if there is none."""
    return [request.response, request.question, *(request.references or ("",))]
