"""The identity of a run, so that a run folder is resumed only by its own run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judging.fingerprint import file_sha256
from train.setup.recipe import Section

_WITHOUT_EFFECT: Any = {
    "data": {"allow_overlap"},
    "run": {"output", "peak_tflops"},
    "provenance": True,
}
FREE = {
    "critiques": {"micro_batch"},
    "optim": {"token_budget"},
    "run": {
        "gradient_checkpointing",
        "workers",
        "eval_every",
        "save_every",
        "log_every",
        "trackers",
        "patience",
    },
}
"""Keys that a resumed run may change: no step differs by more than rounding and the draw of
dropout. With another ``eval_every`` or ``patience``, the judge is chosen among other steps."""

_NEWER: dict[str, Any] = {
    **dict.fromkeys(("adapter.rslora", "adapter.dora", "adapter.merger"), False),
    "optim.optimizer": "adamw",
    "run.quantization": None,
}
"""Keys that recipes did not have at first, with the value that stands for their absence."""
_FIRST_METHODS = ("focal", "joint", "critique", "reward", "dpo", "grpo", "vision_warmup")
"""Methods that checkpoints of earlier versions do not name; their keys tell them apart."""


def hash_files(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of every file a run reads, by the name the recipe gives it."""
    return {name: file_sha256(path) for name, path in files.items()}


def run_identity(
    recipe: Section, backbone_version: str | None, hashes: Mapping[str, str]
) -> dict[str, Any]:
    """Return the recipe keys, backbone and file contents that decide a run's result.

    Args:
        recipe: Validated recipe.
        backbone_version: Version of the backbone that was loaded; ``None`` before that.
        hashes: SHA-256 of every file the run reads (:func:`hash_files`).

    Returns:
        One flat JSON object, ``section.key`` to value.
    """
    excluded = {**_WITHOUT_EFFECT, **FREE, "run": _WITHOUT_EFFECT["run"] | FREE["run"]}
    values = recipe.model_dump(mode="json", exclude=excluded)
    identity = dict(_flat({**values, "sha256": dict(hashes)}))
    for key, default in _NEWER.items():  # checkpoints of earlier versions do not name them
        if key in identity and identity[key] == default:
            del identity[key]
    if identity.get("method") in (None, *_FIRST_METHODS):
        identity.pop("method", None)
    return identity | ({"backbone_version": backbone_version} if backbone_version else {})


def free_settings(recipe: Section) -> dict[str, Any]:
    """Return the keys of a recipe that a resumed run may change, with their values."""
    return dict(_flat(recipe.model_dump(mode="json", include=FREE)))


def recipe_values(recipe: Section) -> dict[str, Any]:
    """Return every key of a recipe with its value, ``section.key`` to value."""
    return dict(_flat(recipe.model_dump(mode="json", exclude={"provenance"})))


def describe_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Return a line on settings that differ from those of the checkpoint; ``None`` if none does.

    Args:
        before: Settings that the checkpoint was saved with (:func:`free_settings`).
        now: Settings of this run.
    """
    changed = [key for key in now if key in before and before[key] != now[key]]
    if not changed:
        return None
    values = ", ".join(f"{key}={now[key]} (was {before[key]})" for key in changed)
    chooses = {"run.eval_every", "run.patience"} & set(changed)
    choice = "; the judge is chosen among other steps" if chooses else ""
    return f"changed since the checkpoint: {values}; the steps stay the same up to rounding{choice}"


def _flat(values: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{section}{key}.")
        else:
            yield section + key, value
