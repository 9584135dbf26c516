"""Warm up a random vision tower: each visual token learns to be the embedding of a caption token.

accelerate launch train/vision_warmup.py --config recipes/embedded/vision_warmup.yaml

The language model is not run. Its input embeddings say what visual tokens must look like for it to
read a picture as a line of text, such as ``bar: A 3, B 7, C 5``.
"""

from __future__ import annotations

import io
import math
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from rich.console import Console
from rich.progress import track
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from data_prep.charts import captions
from judging.backbones import Backbone, load_backbone
from judging.errors import CustosError
from judging.rows import write_json
from train.checkpoint import load_checkpoint, save_checkpoint
from train.loop import learning_rate
from train.recipe import OptimSection, RunSection, Section, load_recipe
from train.vision_tower import EqualPictures

VISION_FILE = "vision.safetensors"
FILLER = "\n"
FILLER_WEIGHT = 0.05
SHARPNESS = 2.0  # digits' embeddings are alike: products differ by 2 of 10
SHIFT_PIXELS = 6


class PicturesSection(Section):
    """Seeded pictures from the chart factory, drawn once and shifted and tinted at every use."""

    train: int = Field(gt=0)
    held_out: int = Field(default=500, gt=0)
    seed: int = 0


class WarmupRecipe(Section):
    """Recipe of this script."""

    backbone: str
    pictures: PicturesSection
    optim: OptimSection
    run: RunSection
    compiled: bool = True
    """Compile the tower's blocks: a minute before the first step, half the time of each."""


@dataclass(frozen=True)
class Picture:
    """A picture and the tokens its first visual tokens are to become."""

    pixels: NDArray[np.uint8]
    """``[H, W, 3]``"""
    kind: str
    targets: tuple[int, ...]


class Warmup:
    """Trains the vision tower of a backbone on captioned pictures."""

    def __init__(self, recipe: WarmupRecipe) -> None:
        self.recipe = recipe
        self.backbone = load_backbone(recipe.backbone, dtype="float32")
        self.backbone.model.requires_grad_(False)
        self.tower = self.backbone.model.model.visual.requires_grad_(True)
        self.forward = EqualPictures(self.tower, compiled=recipe.compiled)
        self.optimizer = torch.optim.AdamW(
            self.tower.parameters(), lr=recipe.optim.lr, weight_decay=recipe.optim.weight_decay
        )
        pictures = recipe.pictures
        # Even seeds to train on, odd ones held out.
        self.train = _draw(self.backbone, pictures.train, 2 * pictures.seed)
        self.held_out = _draw(self.backbone, pictures.held_out, 2 * pictures.seed + 1)
        self.filler = self.backbone.tokenizer.encode(FILLER)[0]
        used = sorted({token for picture in self.train for token in picture.targets})
        self.vocabulary = torch.tensor([self.filler, *(t for t in used if t != self.filler)])
        self.places = {token: place for place, token in enumerate(self.vocabulary.tolist())}
        self.embeddings = self.backbone.model.get_input_embeddings().weight[self.vocabulary]
        sizes = sorted({picture.pixels.shape for picture in self.train})
        self.by_size = [[p for p in self.train if p.pixels.shape == size] for size in sizes]
        self.steps_per_epoch = sum(len(g) // recipe.optim.batch_size for g in self.by_size)
        if not self.steps_per_epoch:
            raise CustosError(
                f"field 'pictures.train': {len(self.train)} pictures do not fill a batch of "
                f"{recipe.optim.batch_size} of one size"
            )
        steps = self.steps_per_epoch * recipe.optim.epochs
        self.total_steps = min(steps, recipe.optim.max_steps or steps)

    def fit(self) -> dict[str, Any]:
        """Train to the end, resuming from the newest checkpoint, and measure on held-out pictures.

        Returns:
            The last measurement (:meth:`measure`) with the step.
        """
        run, console = self.recipe.run, Console()
        folder = run.output
        state = load_checkpoint(folder, self.tower, self.optimizer) or {"step": 0, "history": []}
        step, history = int(state["step"]), state["history"]
        losses: list[Tensor] = []
        started = time.monotonic()
        while step < self.total_steps:
            losses.append(self._step(step))
            step += 1
            last = step == self.total_steps
            if step % run.log_every == 0 or last:
                rate = len(losses) * self.recipe.optim.batch_size / (time.monotonic() - started)
                console.print(
                    f"step {step:>6}/{self.total_steps}  "
                    f"loss {torch.stack(losses).mean().item():.4f}  {rate:.0f} pictures/s"
                )
                losses, started = [], time.monotonic()
            if step % run.eval_every == 0 or last:
                history.append({"step": step, **self.measure()})
                console.print(history[-1])
                started = time.monotonic()
            if step % run.save_every == 0 or last:
                save_checkpoint(folder, step, self.tower, self.optimizer, {"history": history})
        weights = {name: p.detach().bfloat16() for name, p in self.tower.state_dict().items()}
        save_file(weights, folder / VISION_FILE, metadata={"format": "pt"})
        write_json(folder / "history.json", history)
        return dict(history[-1])

    def _step(self, step: int) -> Tensor:
        optim = self.recipe.optim
        rng = random.Random(f"{self.recipe.run.seed}/{step}")
        pictures = self._batch(step)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(optim, step, self.total_steps)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.recipe.run.precision == "bf16"):
            features = self.forward(*self._patches([_vary(p.pixels, rng) for p in pictures]))
        loss = torch.stack(
            [self._loss(f.float(), p.targets) for f, p in zip(features, pictures, strict=True)]
        ).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.tower.parameters(), optim.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def _batch(self, step: int) -> list[Picture]:
        """Pictures of one size; shuffled by epoch, those that do not fill a batch are left out."""
        epoch, place = divmod(step, self.steps_per_epoch)
        order = random.Random(f"{self.recipe.run.seed}/epoch {epoch}")
        size = self.recipe.optim.batch_size
        batches = [
            shuffled[start : start + size]
            for group in self.by_size
            for shuffled in [order.sample(group, len(group))]
            for start in range(0, len(group) - size + 1, size)
        ]
        order.shuffle(batches)
        return batches[place]

    def _patches(self, pictures: Sequence[NDArray[np.uint8]]) -> tuple[Tensor, Tensor]:
        """Patches of all pictures, and each picture's grid."""
        encoded = self.backbone.processor.image_processor(images=list(pictures))
        return torch.as_tensor(encoded["pixel_values"]), torch.as_tensor(encoded["image_grid_thw"])

    def _loss(self, features: Tensor, targets: Sequence[int]) -> Tensor:
        """Cross-entropy over the caption vocabulary plus squared distance to the embeddings."""
        if len(targets) > len(features):
            raise CustosError(
                f"a caption of {len(targets)} tokens does not fit into {len(features)} "
                "visual tokens"
            )
        padded = [*targets, *[self.filler] * (len(features) - len(targets))]
        places = torch.tensor([self.places[token] for token in padded])
        weights = torch.full((len(features),), FILLER_WEIGHT)
        weights[: len(targets)] = 1.0
        logits = SHARPNESS * features @ self.embeddings.T
        entropy = functional.cross_entropy(logits, places, reduction="none")
        distance = (features - self.embeddings[places]).square().sum(-1)
        scale = self.embeddings.square().sum(-1).mean()
        loss: Tensor = ((entropy + distance / scale) * weights).sum() / weights.sum()
        return loss

    @torch.inference_mode()
    def measure(self) -> dict[str, Any]:
        """Shares of caption tokens, and of whole captions by kind, read right when held out."""
        right: list[float] = []
        whole: dict[str, list[bool]] = {}
        for start in range(0, len(self.held_out), 32):
            pictures = self.held_out[start : start + 32]
            features = self.backbone.model.model.get_image_features(
                *self._patches([picture.pixels for picture in pictures])
            ).pooler_output
            for found, picture in zip(features, pictures, strict=True):
                places = (found[: len(picture.targets)] @ self.embeddings.T).argmax(-1)
                hits = self.vocabulary[places] == torch.tensor(picture.targets)
                right.append(hits.float().mean().item())
                whole.setdefault(picture.kind, []).append(bool(hits.all()))
        return {
            "token_accuracy": float(np.mean(right)),
            "caption_accuracy": float(np.mean([hit for hits in whole.values() for hit in hits])),
            "by_kind": {kind: float(np.mean(hits)) for kind, hits in sorted(whole.items())},
            "n": len(self.held_out),
        }


def _draw(backbone: Backbone, count: int, seed: int) -> list[Picture]:
    from PIL import Image

    drawn: Iterator[tuple[bytes, str]] = captions(count, seed)
    pictures = []
    for png, caption in track(drawn, "drawing", total=count):
        with Image.open(io.BytesIO(png)) as picture:
            pixels = np.asarray(picture.convert("RGB"))
        tokens = tuple(backbone.tokenizer.encode(caption))
        pictures.append(Picture(pixels, caption.partition(":")[0].split()[0], tokens))
    return pictures


def _vary(pixels: NDArray[np.uint8], rng: random.Random) -> NDArray[np.uint8]:
    """Shift by a few pixels (edges repeat) and change brightness and contrast a little."""
    down, right = (rng.randint(0, 2 * SHIFT_PIXELS) for _ in range(2))
    height, width = pixels.shape[:2]
    pad = ((SHIFT_PIXELS, SHIFT_PIXELS), (SHIFT_PIXELS, SHIFT_PIXELS), (0, 0))
    moved = np.pad(pixels, pad, mode="edge")[down : down + height, right : right + width]
    contrast, brightness = math.exp(rng.gauss(0, 0.1)), rng.gauss(0, 8)
    changed = np.clip((moved - 128.0) * contrast + 128 + brightness, 0, 255)
    return np.asarray(changed, dtype=np.uint8)


def main(argv: Sequence[str] | None = None) -> None:
    """Command line."""
    console = Console()
    try:
        recipe = load_recipe(WarmupRecipe, Path(__file__), argv)
        Warmup(recipe).fit()
    except CustosError as error:
        Console(stderr=True).print(f"error: {error}", markup=False, soft_wrap=True)
        sys.exit(2)
    console.print(f"vision tower written to {recipe.run.output / VISION_FILE}")


if __name__ == "__main__":
    main()
