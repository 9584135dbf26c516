"""Warm up a random vision tower: each visual token learns to be the embedding of a caption token.

python -m experiments vision_warmup [key.path=value ...]

It made the tower of the embedded backbone, and runs in one process, on the CPU. The keys are those
of ``vision_warmup.yaml`` beside this file.

The language model does not run. Its input embeddings show what visual tokens must be like so that
it can read a picture as a line of text, such as ``bar: A 3, B 7, C 5``. Before its last block the
tower also learns to tell names and values, and which item they belong to, at the points where they
are drawn: captions are put together from these. At every token of the caption it learns which of
them that token writes. In its last block one head learns to look from the latter to the former.
Without these tasks the tower learns how captions are laid out, and their digits not at all.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from pydantic import Field
from rich.console import Console
from safetensors.torch import save_file

from experiments.vision.model import WarmupModel
from experiments.vision.pictures import draw
from experiments.vision.trainer import WarmupTrainer
from judging.files.atomic import atomic_path
from judging.files.records import write_json
from judging.models.backbones import load_backbone
from train.launch.front import command_line
from train.loop.checkpoint import check_run_folder, run_identity
from train.setup.recipe import OptimSection, RunSection, Section, parse_recipe

RECIPE = Path(__file__).with_suffix(".yaml")
VISION_FILE = "vision.safetensors"


class PicturesSection(Section):
    """Seeded pictures of charts, drawn once, and shifted and tinted at every use."""

    train: int = Field(gt=0)
    """Pictures to train on."""
    held_out: int = Field(default=500, gt=0)
    """Pictures to measure on; training never shows them."""
    seed: int = 0
    """Seed of the pictures."""


class WarmupRecipe(Section):
    """Recipe of a warm-up; it reads no keys of rows, adapters or the choice of a step."""

    backbone: str
    """Model whose vision tower is trained: ``embedded``, a folder, or a hub id."""
    pictures: PicturesSection
    optim: OptimSection
    run: RunSection
    compiled: bool = True
    """Compile the tower's blocks: the first step is slower, the others faster."""


def main(argv: Sequence[str]) -> None:
    """Train a tower as ``key.path=value`` say, and measure it on pictures that it has not seen."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", metavar="key.path=value")
    overrides = parser.parse_args(argv).overrides
    with command_line():
        recipe = parse_recipe(WarmupRecipe, RECIPE, overrides)
        folder = recipe.run.output
        check_run_folder(folder, run_identity(recipe, None, {}))
        backbone = load_backbone(recipe.backbone, dtype="float32", device="cpu")
        counts, seed = recipe.pictures, recipe.pictures.seed
        pictures = draw(backbone, counts.train, 2 * seed)  # even seeds to train on
        held_out = draw(backbone, counts.held_out, 2 * seed + 1)  # odd seeds to measure on

        torch.manual_seed(recipe.run.seed)
        model = WarmupModel(backbone, pictures, compiled=recipe.compiled)
        identity = run_identity(recipe, backbone.version, {})
        trainer = WarmupTrainer(recipe.optim, recipe.run, model, pictures, held_out, identity)
        history = trainer.fit()

        weights = {name: p.detach().bfloat16() for name, p in model.tower.state_dict().items()}
        with atomic_path(folder / VISION_FILE) as partial:
            save_file(weights, partial, metadata={"format": "pt"})
        write_json(folder / "history.json", history)
        Console().print(
            f"vision tower: {folder / VISION_FILE}: caption accuracy "
            f"{history[-1]['caption_accuracy']:.3f} on {history[-1]['n']} pictures",
            highlight=False,
            soft_wrap=True,
        )
