"""The backbone that a run starts from."""

from __future__ import annotations

from accelerate import Accelerator

from judging.models.backbones import load_backbone
from judging.scoring.prompts import Encoder
from train.dry_run.parts import PARTS
from train.loop.sharding import first_device
from train.setup.recipe import Recipe


def load_encoder(recipe: Recipe, accelerator: Accelerator) -> Encoder:
    """Load the backbone of a recipe, and return what encodes rows for it."""
    with PARTS.measured("load"):
        backbone = load_backbone(
            recipe.backbone,
            dtype=recipe.run.dtype,
            device=accelerator.device,
            quantization=recipe.run.quantization,
            held_on=first_device(accelerator),
        )
    backbone = backbone.with_pixels(recipe.run.min_pixels, recipe.run.max_pixels)
    return Encoder(backbone, recipe.run.response_budget)
