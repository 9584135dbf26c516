"""The training loop every recipe shares."""

from __future__ import annotations

import hashlib
import math
import shutil
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, set_seed
from rich.console import Console
from torch.utils.tensorboard import SummaryWriter

from judging.errors import CustosError
from judging.models.adapters import save_adapter
from judging.models.backbones import Backbone
from judging.models.device_dtype import computes_bfloat16
from judging.scoring.packing import shared_rows
from judging.scoring.tree_batch import TreeModel, make_tree_batch
from judging.scoring.tree_engine import TreeEngine
from train.loop.batches import Row, Rows
from train.loop.checkpoint import (
    best_folder,
    load_checkpoint,
    save_checkpoint,
    trainable,
    whole_folder,
)
from train.objectives.focal import Objective
from train.setup.recipe import OptimSection, Recipe, RunSection

PICTURED_AT_ONCE = 256
"""Rows whose encoded pictures are held at once while they are scored."""


@dataclass
class Progress:
    """Where a run stands; saved with every checkpoint."""

    step: int = 0
    best: dict[str, float] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    """Of the steps since the last entry that gave one."""


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

    model_class: type[TreeModel] = TreeModel

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
            # Inputs need no gradient: the frozen vision tower would be back-propagated for nothing.
            backbone.model.disable_input_require_grads()
        model = self.model_class(backbone.model)
        self.parameters = list(trainable(model).values())
        optimizer = torch.optim.AdamW(
            self.parameters, lr=recipe.optim.lr, weight_decay=recipe.optim.weight_decay
        )
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.progress = Progress()
        # Epochs of whole questions may differ by some steps: windows end where a question does.
        lengths = [len(self._epoch(epoch)) for epoch in range(recipe.optim.epochs)]
        self.epoch_ends = list(accumulate(lengths))
        if self.epoch_ends[-1] == 0:
            raise CustosError(
                f"{len(rows)} training rows do not fill one step of "
                f"optim.batch_size={recipe.optim.batch_size}"
            )
        self.total_steps = min(self.epoch_ends[-1], recipe.optim.max_steps or 10**12)

    @property
    def unwrapped(self) -> Any:
        """The tree model without its distributed wrapper."""
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
        if self.progress.step == 0:
            self._validate(board)
        timed_from, started = self.progress.step, time.monotonic()
        while self.progress.step < self.total_steps:
            if (now := bisect_right(self.epoch_ends, self.progress.step)) != epoch:
                epoch, steps = now, self._epoch(now)
            from_end = self.progress.step - self.epoch_ends[epoch]
            self.progress.losses.append(self._step(steps[from_end]))
            self.progress.step += 1
            step, last = self.progress.step, self.progress.step == self.total_steps
            if step % run.log_every == 0 or last:
                rows = (step - timed_from) * self.recipe.optim.batch_size
                self._log(board, rows / (time.monotonic() - started))
                timed_from, started = step, time.monotonic()
            if step % run.eval_every == 0 or last:
                paused = time.monotonic()
                self._validate(board)
                started += time.monotonic() - paused
            if step % run.save_every == 0 or last:
                self._save()
        if board:
            board.close()
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

    def _step(self, micro_batches: list[list[Row]]) -> float:
        """One optimizer step; returns the mean loss of this process's share.

        Rows that together weigh nothing change nothing and have a loss of 0.

        Raises:
            CustosError: If the loss or the gradient is not finite.
        """
        accelerator, step = self.accelerator, self.progress.step
        # Dropout depends on seed, step and rank alone, so a resumed run repeats it.
        set_seed(dropout_seed(self.recipe.run.seed, step, accelerator.process_index))
        denominator = sum(self.objective.denominator(rows) for rows in micro_batches)
        if denominator == 0:
            return 0.0
        mine = micro_batches[accelerator.process_index :: accelerator.num_processes]
        total = torch.zeros((), device=accelerator.device)
        self.model.train()
        for index, rows in enumerate(mine):
            last = index == len(mine) - 1
            with accelerator.no_sync(self.model) if not last else nullcontext():
                outputs = self.run(rows, self.model)
                loss = self.objective.loss_sum(outputs, rows, step) / denominator
                # Wrappers average gradients over processes; the step wants their sum.
                accelerator.backward(loss * accelerator.num_processes)
            total += loss.detach()
        mean: float = accelerator.reduce(total, "sum").item()
        norm = float(accelerator.clip_grad_norm_(self.parameters, self.recipe.optim.max_grad_norm))
        if not math.isfinite(mean + norm):
            raise CustosError(
                f"step {step + 1}: loss {mean} and gradient norm {norm} are not finite; "
                f"lower optim.lr={self.recipe.optim.lr}"
            )
        for group in self.optimizer.param_groups:
            group["lr"] = self._lr(step)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return mean

    def run(self, rows: Sequence[Row], model: Any) -> torch.Tensor:
        """One forward pass over rows, with the wrapped model or without its wrapper."""
        prompts = self.rows.prompts(rows)
        views = len(prompts) // len(rows)
        batch = make_tree_batch(
            prompts,
            [row.tree for row in rows for _ in range(views)],
            self.pad_id,
            rows=shared_rows(prompts, max(len(row.tree.node_tokens) for row in rows)),
            share_prefix=not self.recipe.run.gradient_checkpointing,
        )
        with self.accelerator.autocast():
            inputs = self.objective.inputs(rows)
            outputs: torch.Tensor = model(
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
                with whole_folder(best_folder(self.recipe.run.output, self.progress.step)) as new:
                    save_adapter(self.unwrapped.backbone, new)
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
            pictured = any(rows.rows[i].prompts is None for i in indices)
            size = PICTURED_AT_ONCE if pictured else len(indices)
            for start in range(0, len(indices), size):
                some = indices[start : start + size]
                prompts = rows.prompts([rows.rows[i] for i in some])
                with accelerator.autocast():
                    scores = np.array(engine.score(prompts, rows.rows[some[0]].tree))
                if len(prompts) > len(some):
                    scores = scores.reshape(len(some), -1, scores.shape[1])
                found += zip(some, scores.tolist(), strict=True)
        if accelerator.num_processes > 1:
            found = gather_object(found)
        return [np.array(row) for _, row in sorted(found)]

    def _log(self, board: SummaryWriter | None, rate: float) -> None:
        step, loss = self.progress.step, torch.tensor(self.progress.losses).mean().item()
        self.progress.losses = []
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
            kept = best_folder(self.recipe.run.output, int(self.progress.best["step"]))
            for old in set(self.recipe.run.output.glob("best-*")) - {kept}:
                shutil.rmtree(old)  # no checkpoint to resume from knows of it any more
        self.accelerator.wait_for_everyone()

    def _print_first_row(self) -> None:
        """Show one decoded row with its target, to see what is trained on."""
        row, tokenizer = self.rows.rows[0], self.rows.encoder.backbone.tokenizer
        for prompt in self.rows.prompts([row]):
            text = tokenizer.decode(prompt.prefix_ids + prompt.suffix_ids)
            self.console.print(f"first row: {text!r}", markup=False)
        self.console.print(self.describe_target(row), markup=False)

    def describe_target(self, row: Row) -> str:
        """What a row is trained towards, for people to read."""
        tokenizer = self.rows.encoder.backbone.tokenizer
        tokens = [tokenizer.decode([token]) for _, token in row.tree.paths[row.target]]
        return f"supervised tokens: {tokens!r}"


def selection_key(scores: dict[str, float]) -> tuple[float, float]:
    """What the best adapter has most of: accuracy, then likelihood."""
    return scores.get("val_accuracy", 0.0), -scores["val_nll"]


def dropout_seed(seed: int, step: int, rank: int) -> int:
    """A seed of 32 bits, as many as NumPy takes, of its own for every step and process."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{step}/{rank}".encode()).digest()[:4], "big")


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
    on_cpu = not torch.cuda.is_available()
    autocast = autocasts(recipe.run, torch.device("cpu" if on_cpu else "cuda"))
    return Accelerator(mixed_precision="bf16" if autocast else "no", cpu=on_cpu)


def autocasts(run: RunSection, device: torch.device) -> bool:
    """Whether ``bf16`` is asked for and the device computes in bfloat16."""
    return run.precision == "bf16" and computes_bfloat16(device)
