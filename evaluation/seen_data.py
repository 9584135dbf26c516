"""Rows that a judge was trained on, among those that it is measured on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from judging.questions import count_trained_on
from judging.types import JudgeRequest

RECIPE_FILE = "recipe.yaml"
USES = {
    "train": "trained on",
    "val": "chosen by",
    "cal": "calibrated on",
}
"""Splits of a run that shape its judge, and how."""


def seen_data(
    folder: Path | None, dataset_sha256: str | None, requests: Sequence[JudgeRequest]
) -> dict[str, Any] | None:
    """Look the data up in what a run folder keeps of its own data.

    Args:
        folder: Run folder of the judge; ``None`` if it has none.
        dataset_sha256: Hash of the data file.
        requests: Requests of the evaluation.

    Returns:
        ``file`` (how the run used this very file: ``trained on``, ``chosen by`` or ``calibrated
        on``; ``None`` if it did not) and ``rows`` (how many requests ask a question that the judge
        was trained on or chosen by; ``None`` if the folder does not say). ``None`` without a
        folder.
    """
    if folder is None:
        return None
    return {
        "file": _use_of_file(folder / RECIPE_FILE, dataset_sha256),
        "rows": count_trained_on(folder, requests),
    }


def _use_of_file(recipe_file: Path, dataset_sha256: str | None) -> str | None:
    """Return how a run used the file of this hash; ``None`` if it did not, or does not say."""
    try:
        recipe = yaml.safe_load(recipe_file.read_text(encoding="utf-8"))
        hashes = recipe["provenance"]["data_sha256"]
        files = {path for path, sha256 in hashes.items() if sha256 == dataset_sha256}
        paths = {split: recipe["data"].get(split) or () for split in USES}
        used = {split: files & set([p] if isinstance(p, str) else p) for split, p in paths.items()}
    except (OSError, yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return None  # A folder from elsewhere need not hold a recipe of ours.
    return next((use for split, use in USES.items() if used[split]), None)
