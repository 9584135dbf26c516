"""Warm up a random vision tower: each visual token learns to be the embedding of a caption token.

The language model does not run. Its input embeddings show what visual tokens must be like so that
it can read a picture as a line of text, such as ``bar: A 3, B 7, C 5``. Before its last block the
tower also learns to tell names and values, and which item they belong to, at the points where they
are drawn: captions are put together from these. At every token of the caption it learns which of
them that token writes. In its last block one head learns to look from the latter to the former.
Without these tasks the tower learns how captions are laid out, and their digits not at all.
"""

from __future__ import annotations

import os

import torch
from pydantic import Field, model_validator
from rich.console import Console
from safetensors.torch import save_file

from judging.errors import CustosError
from judging.files.atomic import atomic_path
from judging.files.records import write_json
from judging.models.backbones import load_backbone
from train.loop.checkpoint import check_run_folder
from train.methods.base import WeightsMethod
from train.setup.recipe import OptimSection, RunSection, Section, check_has_effect
from train.setup.run_identity import run_identity
from train.tracking.parts import PARTS
from train.vision.model import WarmupModel
from train.vision.pictures import draw
from train.vision.trainer import WarmupTrainer

VISION_FILE = "vision.safetensors"
WITHOUT_EFFECT = (
    *("optim.optimizer", "optim.token_budget", "optim.whole_questions"),
    *("run.quantization", "run.workers", "run.gradient_checkpointing", "run.response_budget"),
    *("run.min_pixels", "run.max_pixels", "run.peak_tflops", "run.select", "run.patience"),
)
"""Keys that a warm-up does not read: there are no rows, no adapter, and no best step."""


class PicturesSection(Section):
    """Seeded pictures of charts, drawn once, and shifted and tinted at every use."""

    train: int = Field(gt=0)
    """Pictures to train on."""
    held_out: int = Field(default=500, gt=0)
    """Pictures to measure on; training never shows them."""
    seed: int = 0
    """Seed of the pictures."""


class WarmupRecipe(Section):
    """Recipe of a warm-up."""

    method: str | None = None
    """``vision_warmup``."""
    backbone: str
    """Model whose vision tower is trained: ``embedded``, a folder, or a hub id."""
    pictures: PicturesSection
    optim: OptimSection
    run: RunSection
    compiled: bool = True
    """Compile the tower's blocks: the first step is slower, the others faster."""

    @model_validator(mode="after")
    def _only_known_keys(self) -> WarmupRecipe:
        check_has_effect(self, WITHOUT_EFFECT)
        return self


class VisionWarmup(WeightsMethod):
    """Warms up the vision tower of a backbone, in one process on the CPU."""

    recipe_class = WarmupRecipe
    script = "vision_warmup"
    default_recipe = "embedded/vision_warmup"

    @classmethod
    def train(cls, recipe: WarmupRecipe) -> None:
        """Train a tower, and measure it on pictures that it has not seen."""
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise CustosError(
                "the warm-up runs in one process: give 'custos train' --processes 1, or start the "
                "script with 'python'"
            )
        check_run_folder(recipe.run.output, run_identity(recipe, None, {}))
        with PARTS.measured("load"):
            backbone = load_backbone(recipe.backbone, dtype="float32", device="cpu")
        counts, seed = recipe.pictures, recipe.pictures.seed
        pictures = draw(backbone, counts.train, 2 * seed)  # even seeds to train on
        held_out = draw(backbone, counts.held_out, 2 * seed + 1)  # odd seeds to measure on

        torch.manual_seed(recipe.run.seed)
        model = WarmupModel(backbone, pictures, compiled=recipe.compiled)
        identity = run_identity(recipe, backbone.version, {})
        trainer = WarmupTrainer(recipe.optim, recipe.run, model, pictures, held_out, identity)
        history = trainer.fit()

        folder, measured = recipe.run.output, history[-1]
        weights = {name: p.detach().bfloat16() for name, p in model.tower.state_dict().items()}
        with atomic_path(folder / VISION_FILE) as partial:
            save_file(weights, partial, metadata={"format": "pt"})
        write_json(folder / "history.json", history)
        Console().print(
            f"vision tower: {folder / VISION_FILE}: caption accuracy "
            f"{measured['caption_accuracy']:.3f} on {measured['n']} pictures",
            highlight=False,
            soft_wrap=True,
        )


METHOD = VisionWarmup
