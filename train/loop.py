"""The training loop every recipe shares."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, set_seed
from rich.console import Console
from torch.utils.tensorboard import SummaryWriter

from judging.backbones import Backbone
from judging.engine import TreeEngine
from judging.errors import CustosError
from judging.forest import ForestModel, forest_batch
from judging.packing import shared_rows
from train.batches import Row, Rows
from train.checkpoint import load_checkpoint, save_checkpoint, trainable
from train.objectives import Objective
from train.recipe import OptimSection, Recipe

BEST = "best"


@dataclass
class Progress:
    """Where a run stands; saved with every checkpoint."""

    step: int = 0
    best: dict[str, float] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)


class Trainer:
    """Trains an adapter on rows with an objective, watching validation rows.

    The step's gradient is the gradient of the objective's sum over all micro-batches of the step on
    all processes, divided by their total denominator: two processes give the same step as one
    process with twice the accumulation.

    Args:
        recipe: Validated recipe.
        backbone: Backbone whose model carries the trainable adapter.
        rows: Training rows.
        val: Validation rows.
        objective: What to minimise.
        identity: What the result depends on; a folder that holds another run is not resumed.
        watched: Further rows to score with every validation, by name (an earlier task's).
    """

    model_class: type[ForestModel] = ForestModel

    def __init__(
        self,
        recipe: Recipe,
        backbone: Backbone,
        rows: Rows,
        val: Rows,
        objective: Objective,
        identity: Mapping[str, Any],
        watched: Mapping[str, Rows] | None = None,
    ) -> None:
        self.recipe, self.identity, self.watched = recipe, identity, watched or {}
        self.rows, self.val, self.objective = rows, val, objective
        self.pad_id = backbone.tokenizer.pad_token_id
        self.accelerator = accelerator_for(recipe)
        per_step = recipe.optim.batch_size // recipe.optim.micro_batch_size
        if per_step < self.accelerator.num_processes:  # an idle process would hang the others
            raise CustosError(
                f"optim.batch_size={recipe.optim.batch_size} holds {per_step} micro-batches of "
                f"optim.micro_batch_size={recipe.optim.micro_batch_size}: fewer than the "
                f"{self.accelerator.num_processes} processes"
            )
        self.console = Console(quiet=not self.accelerator.is_main_process)
        if recipe.run.gradient_checkpointing:
            backbone.model.activation_checkpointing_enable()
        model = self.model_class(backbone.model)
        self.parameters = list(trainable(model).values())
        optimizer = torch.optim.AdamW(
            self.parameters, lr=recipe.optim.lr, weight_decay=recipe.optim.weight_decay
        )
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.progress = Progress()
        self.steps_per_epoch = len(self._epoch(0))
        if self.steps_per_epoch == 0:
            raise CustosError(
                f"{len(rows)} training rows do not fill one step of "
                f"optim.batch_size={recipe.optim.batch_size}"
            )
        self.total_steps = min(
            self.steps_per_epoch * recipe.optim.epochs, recipe.optim.max_steps or 10**12
        )

    @property
    def unwrapped(self) -> Any:
        """The forest model without its distributed wrapper."""
        return self.accelerator.unwrap_model(self.model)

    def fit(self) -> Progress:
        """Train to the end, resuming from the run folder's newest checkpoint if there is one."""
        run, folder = self.recipe.run, self.recipe.run.output
        state = load_checkpoint(folder, self.unwrapped, self.optimizer.optimizer, self.identity)
        if state:
            self.progress = Progress(**state)
            self.console.print(f"resuming {folder} at step {self.progress.step}")
        self._print_first_row()
        if self.accelerator.device.type == "cpu" and torch.get_num_threads() == 1:
            self.console.print("one CPU thread: set OMP_NUM_THREADS (accelerate launch sets 1)")
        board = SummaryWriter(str(folder / "tensorboard")) if self._main else None
        epoch, steps = -1, []
        window_loss, window_start = [], time.monotonic()
        if self.progress.step == 0:
            self._validate(board)
        while self.progress.step < self.total_steps:
            if self.progress.step // self.steps_per_epoch != epoch:
                epoch = self.progress.step // self.steps_per_epoch
                steps = self._epoch(epoch)
            window_loss.append(self._step(steps[self.progress.step % self.steps_per_epoch]))
            self.progress.step += 1
            step, last = self.progress.step, self.progress.step == self.total_steps
            if step % run.log_every == 0 or last:
                loss = torch.stack(window_loss).mean().item()
                rate = (
                    len(window_loss)
                    * self.recipe.optim.batch_size
                    / (time.monotonic() - window_start)
                )
                self._log(board, loss, rate)
                window_loss, window_start = [], time.monotonic()
            if step % run.eval_every == 0 or last:
                self._validate(board)
                window_start = time.monotonic()
            if step % run.save_every == 0 or last:
                self._save()
        return self.progress

    @property
    def _main(self) -> bool:
        return bool(self.accelerator.is_main_process)

    def _epoch(self, epoch: int) -> list[list[list[Row]]]:
        optim = self.recipe.optim
        return self.rows.steps(
            optim.batch_size,
            optim.micro_batch_size,
            self.recipe.run.seed,
            epoch,
            whole_questions=optim.whole_questions,
        )

    def _step(self, micro_batches: list[list[Row]]) -> torch.Tensor:
        """One optimizer step; returns the mean loss of this process's share, detached."""
        accelerator = self.accelerator
        # Dropout depends on seed, step and rank alone, so a resumed run repeats it.
        set_seed(self.recipe.run.seed * 1_000_003 + self.progress.step, device_specific=True)
        denominator = sum(self.objective.denominator(rows) for rows in micro_batches)
        mine = micro_batches[accelerator.process_index :: accelerator.num_processes]
        total = torch.zeros((), device=accelerator.device)
        self.model.train()
        for index, rows in enumerate(mine):
            last = index == len(mine) - 1
            with accelerator.no_sync(self.model) if not last else nullcontext():
                outputs = self.run(rows)
                loss = self.objective.loss_sum(outputs, rows, self.progress.step) / denominator
                # Wrappers average gradients over processes; the step wants their sum.
                accelerator.backward(loss * accelerator.num_processes)
            total += loss.detach()
        accelerator.clip_grad_norm_(self.parameters, self.recipe.optim.max_grad_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = self._lr(self.progress.step)
        self.optimizer.step()
        self.optimizer.zero_grad()
        total *= accelerator.num_processes
        return total

    def run(self, rows: Sequence[Row]) -> torch.Tensor:
        """One forward pass of the wrapped model over rows; what the objective reads."""
        prompts = self.rows.prompts(rows)
        views = len(prompts) // len(rows)
        batch = forest_batch(
            prompts,
            [row.tree for row in rows for _ in range(views)],
            self.pad_id,
            rows=shared_rows(prompts, max(len(row.tree.node_tokens) for row in rows)),
            share_prefix=not self.recipe.run.gradient_checkpointing,
        )
        with self.accelerator.autocast():
            inputs = self.objective.inputs(rows)
            outputs: torch.Tensor = self.model(
                batch.to(self.accelerator.device),
                **{name: tensor.to(self.accelerator.device) for name, tensor in inputs.items()},
            )
        return outputs

    def _lr(self, step: int) -> float:
        return learning_rate(self.recipe.optim, step, self.total_steps)

    def _validate(self, board: SummaryWriter | None) -> None:
        scores = {f"val_{name}": value for name, value in self.measure(self.val).items()}
        for watch, rows in self.watched.items():
            scores |= {f"{watch}_{name}": value for name, value in self.measure(rows).items()}
        self.progress.history.append({"step": self.progress.step, **scores})
        best = self.progress.best
        if not best or selection_key(scores) > selection_key(best):
            self.progress.best = {"step": self.progress.step, **scores}
            if self._main:
                self.unwrapped.backbone.save_pretrained(str(self.recipe.run.output / BEST))
        for name, value in scores.items():
            if board:
                board.add_scalar(name, value, self.progress.step)
        shown = "  ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in scores.items())
        self.console.print(
            f"step {self.progress.step:>6}/{self.total_steps}  {shown}  (n={len(self.val)})"
        )

    def measure(self, rows: Rows) -> dict[str, float]:
        """Accuracy and mean negative log-likelihood of the label among a row's labels."""
        right, nll = [], []
        for row, logprobs in zip(rows.rows, self.score(rows), strict=True):
            right.append(int(logprobs.argmax()) == row.target)
            nll.append(np.logaddexp.reduce(logprobs) - logprobs[row.target])
        return {"accuracy": float(np.mean(right)), "nll": float(np.mean(nll))}

    def score(self, rows: Rows) -> list[np.ndarray]:
        """Label log-probabilities of every row, shared over processes.

        Each is ``[labels]``, or ``[views, labels]`` for rows put before the model in several views.
        """
        accelerator = self.accelerator
        self.model.eval()
        engine = TreeEngine(self.unwrapped, self.pad_id)
        found: list[tuple[int, Any]] = []
        mine = range(accelerator.process_index, len(rows), accelerator.num_processes)
        by_rubric: dict[str, list[int]] = {}
        for index in mine:
            by_rubric.setdefault(rows.rows[index].rubric, []).append(index)
        for indices in by_rubric.values():
            prompts = rows.prompts([rows.rows[i] for i in indices])
            with accelerator.autocast():
                scores = engine.score(prompts, rows.rows[indices[0]].tree)
            if len(prompts) > len(indices):
                scores = scores.view(len(indices), -1, scores.shape[1])
            found += zip(indices, scores.tolist(), strict=True)
        if accelerator.num_processes > 1:
            found = gather_object(found)
        return [np.array(row) for _, row in sorted(found)]

    def _log(self, board: SummaryWriter | None, loss: float, rate: float) -> None:
        step = self.progress.step
        self.progress.history.append({"step": step, "train_loss": loss})
        remaining = (self.total_steps - step) * self.recipe.optim.batch_size / rate
        self.console.print(
            f"step {step:>6}/{self.total_steps}  loss {loss:.4f}  lr {self._lr(step - 1):.2e}  "
            f"{rate:.1f} rows/s  {remaining / 60:.0f} min left"
        )
        if board:
            board.add_scalar("train_loss", loss, step)
            board.add_scalar("lr", self._lr(step - 1), step)
            board.add_scalar("rows_per_second", rate, step)

    def _save(self) -> None:
        if self._main:
            save_checkpoint(
                self.recipe.run.output,
                self.progress.step,
                self.unwrapped,
                self.optimizer.optimizer,
                {k: v for k, v in self.progress.__dict__.items() if k != "step"},
                self.identity,
            )
        self.accelerator.wait_for_everyone()

    def _print_first_row(self) -> None:
        """Show one decoded row with its target, to see what is trained on."""
        row = self.rows.rows[0]
        tokenizer = self.rows.encoder.backbone.tokenizer
        [prompt, *_] = self.rows.prompts([row])
        self.console.print("first row: ", end="")
        self.console.print(
            repr(tokenizer.decode(prompt.prefix_ids + prompt.suffix_ids)), markup=False
        )
        self.console.print(
            "supervised tokens: "
            + repr([tokenizer.decode([token]) for _, token in row.tree.paths[row.target]]),
            markup=False,
        )


def selection_key(scores: dict[str, float]) -> tuple[float, float]:
    """What the best adapter has most of: accuracy, then likelihood."""
    return scores.get("val_accuracy", 0.0), -scores["val_nll"]


def learning_rate(optim: OptimSection, step: int, total_steps: int) -> float:
    """Learning rate of the step after ``step`` steps: linear warm-up, then the schedule."""
    warmup = max(1, round(optim.warmup_ratio * total_steps))
    if step < warmup:
        return optim.lr * (step + 1) / warmup
    done = (step - warmup) / max(1, total_steps - warmup)
    if optim.schedule == "constant":
        return optim.lr
    if optim.schedule == "linear":
        return optim.lr * (1 - done)
    return optim.lr * 0.5 * (1 + math.cos(math.pi * done))


def accelerator_for(recipe: Recipe) -> Accelerator:
    """Accelerator of a recipe: its precision, on CPU when there is no CUDA device."""
    return Accelerator(
        mixed_precision="bf16" if recipe.run.precision == "bf16" else "no",
        cpu=not torch.cuda.is_available(),
    )
