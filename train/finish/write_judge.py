"""From a finished run to a run folder that a judge is loaded from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import torch
import yaml
from safetensors.torch import load_file, save_file

from evaluation.report.plots import draw_learning_curve
from judging.files.atomic import atomic_path, atomic_write
from judging.files.questions import write_question_hashes
from judging.files.records import write_json
from judging.fingerprint import package_versions
from judging.judge.card import CARD_FILE, JudgeCard
from judging.models.adapters import ADAPTER_CONFIG, ADAPTER_FILE, MAGNITUDE
from judging.models.attention import describe_attention
from judging.models.backbones import Backbone
from judging.models.device_dtype import computed_in
from judging.rules.listed_options import options_of
from judging.types import Mode
from train.loop.checkpoint import best_folder
from train.loop.progress import Progress
from train.rows.rows import IndexedSplits, Rows
from train.setup.recipe import Recipe
from train.tracking.parts import PARTS


@PARTS.measured("saving")
def write_judge(
    recipe: Recipe,
    backbone: Backbone,
    rows: IndexedSplits,
    progress: Progress,
    hashes: Mapping[str, str],
) -> None:
    """Write the chosen adapter, its card, the resolved recipe and the learning curve.

    Args:
        recipe: Validated recipe.
        backbone: Backbone that was trained on.
        rows: Rows of the run; the judge's card lists the rubrics and modes of those it was trained
            on.
        progress: Progress of the finished run.
        hashes: SHA-256 of every file when it was read, by the name the recipe gives it.
    """
    folder = recipe.run.output
    best = best_folder(folder, int(progress.chosen["step"]))
    _write_adapter(folder, best, backbone, rounded=recipe.run.precision == "bf16")
    if backbone.reads_pictures:
        backbone.processor.image_processor.save_pretrained(folder)
    card = JudgeCard.for_rubrics(
        backbone,
        _rubrics(rows.train),
        recipe.run.response_budget,
        _modes(rows.train),
        listed_options=any(map(options_of, rows.train.examples)),
    )
    write_json(folder / CARD_FILE, card.model_dump(mode="json"))
    _write_recipe(folder, recipe, backbone, hashes)
    seen = chain(rows.train.examples, rows.val.examples)
    write_question_hashes(folder, seen, recipe.adapter.init_folder)
    draw_learning_curve(progress.history, folder / "learning_curve.png")
    write_json(folder / "history.json", progress.history)


def _write_adapter(folder: Path, best: Path, backbone: Backbone, *, rounded: bool) -> None:
    """Write the weights in the precision they are served in, and their configuration."""
    weights = load_file(best / ADAPTER_FILE)
    if rounded:
        weights = {
            # A norm that is rounded would scale its whole row (DoRA).
            name: tensor if MAGNITUDE in name else tensor.to(torch.bfloat16)
            for name, tensor in weights.items()
        }
    # Readable for all: a service is another user.
    with atomic_path(folder / ADAPTER_FILE) as partial:
        save_file(weights, partial, metadata={"format": "pt"})
    config = json.loads((best / ADAPTER_CONFIG).read_text(encoding="utf-8"))
    # Instead of the cache path of the machine it was trained on.
    write_json(folder / ADAPTER_CONFIG, {**config, "base_model_name_or_path": backbone.name})


def _rubrics(rows: Rows) -> dict[str, tuple[str, ...]]:
    rubrics: dict[str, list[str]] = {}
    for rubric in rows.by_rubric():
        task, _, name = rubric.partition("/")
        rubrics.setdefault(task, []).append(name)
    return {task: tuple(sorted(names)) for task, names in rubrics.items()}


def _modes(rows: Rows) -> dict[str, tuple[Mode, ...]]:
    """Return the modes that each rubric was trained for, the one of most rows first."""
    return {rubric: tuple(rows.modes(indices)) for rubric, indices in rows.by_rubric().items()}


def _write_recipe(
    folder: Path, recipe: Recipe, backbone: Backbone, hashes: Mapping[str, str]
) -> None:
    provenance = {
        "sha256": dict(hashes),
        "backbone_version": backbone.version,
        "arithmetic": computed_in(backbone.model),
        "attention": describe_attention(backbone.model),
        "packages": package_versions(),
    }
    with atomic_write(folder / "recipe.yaml") as file:
        resolved = {**recipe.model_dump(mode="json"), "provenance": provenance}
        yaml.safe_dump(resolved, file, sort_keys=False)
