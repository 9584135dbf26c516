"""What a run's result depends on, so that a run folder is resumed only by its own run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judging.fingerprint import file_sha256
from train.setup.recipe import Section

_WITHOUT_EFFECT: Any = {
    "data": {"allow_overlap"},
    "run": {"output", "log_every", "save_every"},
    "provenance": True,
}


def hash_files(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of every file a run reads, by the name the recipe gives it."""
    return {name: file_sha256(path) for name, path in files.items()}


def run_identity(
    recipe: Section, backbone_version: str, hashes: Mapping[str, str]
) -> dict[str, Any]:
    """Return the recipe keys, backbone and file contents that decide a run's result.

    Args:
        recipe: Validated recipe.
        backbone_version: Version of the backbone that was loaded.
        hashes: SHA-256 of every file the run reads (:func:`hash_files`).

    Returns:
        One flat JSON object, ``section.key`` to value.
    """
    values = recipe.model_dump(mode="json", exclude=_WITHOUT_EFFECT)
    return dict(_flat({**values, "backbone_version": backbone_version, "sha256": dict(hashes)}))


def _flat(values: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{section}{key}.")
        else:
            yield section + key, value
