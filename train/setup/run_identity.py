"""What a run's result depends on: a run folder is only ever resumed by the run it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from train.setup.recipe import Section

_WITHOUT_EFFECT: Any = {"run": {"output", "log_every", "save_every"}, "provenance": True}


def run_identity(
    recipe: Section, backbone_version: str, sha256: Mapping[str, str]
) -> dict[str, Any]:
    """Recipe keys, backbone and file contents that decide what a run leaves.

    Args:
        recipe: Validated recipe.
        backbone_version: Version of the backbone that was loaded.
        sha256: Hash of every file it reads, by path.

    Returns:
        One flat JSON object, ``section.key`` to value.
    """
    values = recipe.model_dump(mode="json", exclude=_WITHOUT_EFFECT)
    return dict(_flat({**values, "backbone_version": backbone_version, "sha256": dict(sha256)}))


def _flat(values: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{section}{key}.")
        else:
            yield section + key, value
