"""Warm up a random vision tower: each visual token learns to be the embedding of a caption token.

python train/vision_warmup.py [--config RECIPE] [key.path=value ...]

In one process, on the CPU.

The language model is not run. Its input embeddings say what visual tokens must look like for it to
read a picture as a line of text, such as ``bar: A 3, B 7, C 5``. Before its last block the tower
also learns to tell names and values, and which item they are of, at the places where they are
drawn: what a caption is put together from; and at the place of every token of the caption, what
that token is to say. In its last block one head learns to look from the latter to the former.
Without these the tower learns how captions are laid out, and their digits not at all.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from rich.console import Console
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from judging.errors import CustosError
from judging.models.backbones import load_backbone
from judging.records import write_json
from train.loop.checkpoint import load_checkpoint, save_checkpoint
from train.loop.trainer import autocasts, learning_rate
from train.setup.recipe import OptimSection, RunSection, Section, load_recipe
from train.setup.recipe_files import RECIPES
from train.setup.run_identity import run_identity
from train.vision.pictures import FACTS, UNSEEN, Picture, Reader, by_size, draw, tokens_at, vary
from train.vision.tower import EqualPictures

VISION_FILE = "vision.safetensors"
FILLER = "\n"
FILLER_WEIGHT = 0.05
SHARPNESS = 2.0  # digits' embeddings are alike: products differ by 2 of 10
MEASURED_AT_ONCE = 32


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


class Warmup:
    """Trains the vision tower of a backbone on captioned pictures."""

    def __init__(self, recipe: WarmupRecipe) -> None:
        self.recipe = recipe
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise CustosError("the warm-up runs in one process: start it with 'python'")
        self.backbone = load_backbone(recipe.backbone, dtype="float32", device="cpu")
        self.backbone.model.requires_grad_(False)
        self.tower = self.backbone.model.model.visual.requires_grad_(True)
        self.forward = EqualPictures(self.tower, compiled=recipe.compiled)
        pictures = recipe.pictures
        # Even seeds to train on, odd ones held out.
        self.train = draw(self.backbone, pictures.train, 2 * pictures.seed)
        self.held_out = draw(self.backbone, pictures.held_out, 2 * pictures.seed + 1)
        torch.manual_seed(recipe.run.seed)
        width = self.tower.config.hidden_size * self.tower.spatial_merge_size**2
        self.reader = Reader(width, self.train)
        self.trained = nn.ModuleDict({"tower": self.tower, "reader": self.reader})
        self.optimizer = torch.optim.AdamW(
            self.trained.parameters(), lr=recipe.optim.lr, weight_decay=recipe.optim.weight_decay
        )
        self.filler = self.backbone.tokenizer.encode(FILLER)[0]
        used = sorted({token for picture in self.train for token in picture.targets})
        self.vocabulary = torch.tensor([self.filler, *(t for t in used if t != self.filler)])
        self.places = {token: place for place, token in enumerate(self.vocabulary.tolist())}
        self.embeddings = self.backbone.model.get_input_embeddings().weight[self.vocabulary]
        self.by_size = by_size(self.train)
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
        identity = run_identity(self.recipe, self.backbone.version, {})
        state = load_checkpoint(folder, self.trained, self.optimizer, identity)
        step, history = (int(state["step"]), state["history"]) if state else (0, [])
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
                progress = {"history": history}
                save_checkpoint(folder, step, self.trained, self.optimizer, progress, identity)
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
        varied, shifts = zip(*(vary(picture.pixels, rng) for picture in pictures), strict=True)
        autocast = autocasts(self.recipe.run, torch.device("cpu"))
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            features, middle, looks = self.forward(*self._patches(varied))
        captions = [
            self._loss(f.float(), p.targets) for f, p in zip(features, pictures, strict=True)
        ]
        read, targets = self._read(middle.float(), pictures, shifts)
        loss = (
            torch.stack(captions).mean()
            + self._astray(looks, pictures, shifts)
            + sum(
                functional.cross_entropy(logits, column)
                for logits, column in zip(read, targets.T, strict=True)
                if (column != UNSEEN).any()
            )
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained.parameters(), optim.max_grad_norm)
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

    def _read(
        self, middle: Tensor, pictures: Sequence[Picture], shifts: Sequence[tuple[int, int]]
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        """Logits of facts at every place of every picture, and the true classes."""
        found: list[Tensor] = []
        facts: list[tuple[str | None, ...]] = []
        for tokens, picture, shift in zip(middle, pictures, shifts, strict=True):
            found += [tokens[tokens_at(picture, shift)], tokens[: len(picture.roles)]]
            facts += [*picture.facts, *picture.roles]
        return self.reader(torch.cat(found)), self.reader.targets(facts)

    def _astray(
        self, looks: Tensor, pictures: Sequence[Picture], shifts: Sequence[tuple[int, int]]
    ) -> Tensor:
        """How little the last block's first head looks where the token to be written is shown."""
        shown = np.zeros(looks.shape, dtype=np.bool_)
        for number, (picture, shift) in enumerate(zip(pictures, shifts, strict=True)):
            at = tokens_at(picture, shift)
            for token, sources in enumerate(picture.sources):
                shown[number, token, [at[source] for source in sources]] = True
        where = torch.from_numpy(shown)
        seen = (looks * where).sum(-1)[where.any(-1)]
        return -(seen + 1e-6).log().mean()

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
        """Shares of facts, caption tokens and whole captions by kind that are right, held out."""
        forward = EqualPictures(self.tower, compiled=False)
        tokens: list[float] = []
        whole: dict[str, list[bool]] = {}
        right: list[Tensor] = []
        seen: list[Tensor] = []
        for group in by_size(self.held_out):
            for start in range(0, len(group), MEASURED_AT_ONCE):
                pictures = group[start : start + MEASURED_AT_ONCE]
                features, middle, _ = forward(*self._patches([p.pixels for p in pictures]))
                read, targets = self._read(middle, pictures, [(0, 0)] * len(pictures))
                right.append(torch.stack([logits.argmax(-1) for logits in read], -1) == targets)
                seen.append(targets != UNSEEN)
                for found, picture in zip(features, pictures, strict=True):
                    places = (found[: len(picture.targets)] @ self.embeddings.T).argmax(-1)
                    hits = self.vocabulary[places] == torch.tensor(picture.targets)
                    tokens.append(hits.float().mean().item())
                    whole.setdefault(picture.kind, []).append(bool(hits.all()))
        shares = torch.cat(right).sum(0) / torch.cat(seen).sum(0)
        return {
            "facts": dict(zip(FACTS, shares.tolist(), strict=True)),
            "token_accuracy": float(np.mean(tokens)),
            "caption_accuracy": float(np.mean([hit for hits in whole.values() for hit in hits])),
            "by_kind": {kind: float(np.mean(hits)) for kind, hits in sorted(whole.items())},
            "n": len(self.held_out),
        }


def main(argv: Sequence[str] | None = None) -> None:
    """Command line."""
    console = Console()
    try:
        recipe = load_recipe(WarmupRecipe, Path(__file__), argv, RECIPES / "embedded")
        Warmup(recipe).fit()
    except CustosError as error:
        Console(stderr=True).print(f"error: {error}", markup=False, soft_wrap=True)
        sys.exit(2)
    console.print(f"vision tower written to {recipe.run.output / VISION_FILE}")


if __name__ == "__main__":
    main()
