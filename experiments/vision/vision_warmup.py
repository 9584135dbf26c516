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
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from rich.console import Console
from safetensors.torch import save_file

from experiments.vision.model import WarmupModel
from experiments.vision.pictures import WarmupPicture, by_size, draw, vary
from judging.errors import FieldError
from judging.files.atomic import atomic_path
from judging.files.records import write_json
from judging.models.backbones import load_backbone
from train.launch.front import command_line
from train.loop.checkpoint import (
    check_run_folder,
    read_checkpoint,
    recipe_values,
    run_identity,
    save_checkpoint,
)
from train.loop.sharding import (
    check_finite,
    learning_rate,
    make_accelerator,
    make_optimizer,
    uses_autocast,
)
from train.setup.recipe import OptimSection, RunSection, Section, parse_recipe
from train.tracking.trackers import Tracker

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


class WarmupTrainer:
    """Trains the tower and its reader on pictures, and measures them on others.

    Args:
        optim: Optimizer settings.
        run: Run settings.
        model: Tower and reader.
        pictures: Pictures to train on.
        held_out: Pictures to measure on.
        identity: What the result depends on; a folder that holds another run is not resumed.

    Raises:
        FieldError: If no size of picture fills a batch.
    """

    def __init__(
        self,
        optim: OptimSection,
        run: RunSection,
        model: WarmupModel,
        pictures: Sequence[WarmupPicture],
        held_out: Sequence[WarmupPicture],
        identity: Mapping[str, Any],
    ) -> None:
        self.optim, self.run, self.model, self.identity = optim, run, model, identity
        self.held_out, self.by_size = held_out, by_size(pictures)
        self.optimizer = make_optimizer(model.parameters(), optim)
        self.steps_per_epoch = sum(len(group) // optim.batch_size for group in self.by_size)
        if not self.steps_per_epoch:
            raise FieldError(
                "pictures.train",
                f"{len(pictures)} pictures do not fill a batch of {optim.batch_size} of one size",
            )
        steps = self.steps_per_epoch * optim.epochs
        self.total_steps = min(steps, optim.max_steps or steps)

    def fit(self) -> list[dict[str, Any]]:
        """Train to the end, resuming from the newest checkpoint if there is one.

        Returns:
            What :meth:`WarmupModel.measure` returned, with the steps.
        """
        run, folder = self.run, self.run.output
        saved = read_checkpoint(folder, self.model, self.identity)
        if saved:
            saved.restore(self.model, self.optimizer)
        state = saved.state if saved else {}
        history: list[dict[str, Any]] = state.get("history", [])
        step = int(state.get("step", 0))
        losses: list[float] = state.get("losses", [])
        eval_every, save_every = run.steps_between(self.total_steps)
        tracker = Tracker(
            folder,
            self.total_steps,
            make_accelerator(run),
            eval_every=eval_every,
        )
        with tracker.running(step, recipe_values(run)):
            while step < self.total_steps:
                losses.append(self.train_step(step))
                step += 1
                last = step == self.total_steps
                tracker.advance(step, self.optim.batch_size)
                if step % run.log_every == 0 or last:
                    loss = torch.tensor(losses).mean().item()
                    lr = self.learning_rate(step - 1)
                    tracker.log_steps(step, {"train_loss": loss, "lr": lr})
                    losses = []
                if step % eval_every == 0 or last:
                    with tracker.validating():
                        history.append({"step": step, **self.model.measure(self.held_out)})
                        self._report(tracker, history[-1])
                if step % save_every == 0 or last:
                    progress = {"history": history, "losses": losses}
                    save_checkpoint(
                        folder, step, self.model, self.optimizer, progress, self.identity
                    )
        return history

    def train_step(self, step: int) -> float:
        """Make one optimizer step and return its loss.

        Raises:
            CustosError: If the loss or the gradient is not finite.
        """
        rng = random.Random(f"{self.run.seed}/{step}")
        pictures = self.batch(step)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(step)
        pixels, shifts = zip(*(vary(picture.pixels, rng) for picture in pictures), strict=True)
        autocast = uses_autocast(self.run, torch.device("cpu"))
        loss = self.model.loss(pictures, pixels, shifts, autocast=autocast)
        loss.backward()
        parameters, most = self.model.parameters(), self.optim.max_grad_norm
        norm = torch.nn.utils.clip_grad_norm_(parameters, most)
        check_finite(step, self.optim, loss=loss.item(), gradient_norm=norm.item())
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def batch(self, step: int) -> list[WarmupPicture]:
        """Return the pictures of a step, all of one size.

        They are shuffled by epoch; pictures that do not fill a batch are left out.
        """
        epoch, number = divmod(step, self.steps_per_epoch)
        order = random.Random(f"{self.run.seed}/epoch {epoch}")
        size = self.optim.batch_size
        batches = [
            shuffled[start : start + size]
            for group in self.by_size
            for shuffled in [order.sample(group, len(group))]
            for start in range(0, len(group) - size + 1, size)
        ]
        order.shuffle(batches)
        return batches[number]

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        return learning_rate(self.optim, step, self.total_steps)

    def _report(self, tracker: Tracker, measured: Mapping[str, Any]) -> None:
        scores = {name: measured[name] for name in ("caption_accuracy", "token_accuracy")}
        tracker.log_scores(measured["step"], scores, measured["n"])
        tracker.detail(str(dict(measured)))
