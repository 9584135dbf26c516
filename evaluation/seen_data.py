"""Rows that a judge was trained on, among those that it is measured on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from judging.files.questions import count_trained_on
from judging.files.yaml_text import yaml_errors
from judging.types import JudgeRequest

RECIPE_FILE = "recipe.yaml"


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
        with yaml_errors():
            recipe = yaml.safe_load(recipe_file.read_text(encoding="utf-8"))
        hashes = recipe["provenance"]["sha256"]
        files = {path for path, sha256 in hashes.items() if sha256 == dataset_sha256}
        data, replay = recipe["data"], recipe.get("replay") or {}
        uses = {
            "trained on": {*_paths(data.get("train")), *_paths(replay.get("train"))},
            "chosen by": {*_paths(data.get("val"))},
            "calibrated on": {*_paths(data.get("cal"))},
        }
    except (OSError, yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return None  # A folder from elsewhere need not hold a recipe of ours.
    return next((use for use, paths in uses.items() if files & paths), None)


def _paths(split: Any) -> Sequence[Any]:
    """Return the files of a split of a recipe: it names none, one or several."""
    return [split] if isinstance(split, str) else split or ()
