"""The training loop of methods that minimise a loss, and its base, which other trainers share."""

from __future__ import annotations

import gc
import hashlib
import math
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object, set_seed

from judging.errors import CustosError
from judging.models.attention import describe_attention
from judging.models.backbones import Backbone
from judging.scoring.tree_batch import TreeModel
from train.loop.accelerator import FreeMemory, device_lines, processes_here, thread_hint
from train.loop.batches import Loader, MicroBatch, StepPlan, default_workers
from train.loop.checkpoint import (
    Checkpoint,
    Progress,
    chosen_steps,
    early_stop_line,
    keep_best,
    newest_checkpoint,
    read_checkpoint,
    recipe_values,
    save_best,
    save_checkpoint,
    trainable,
    validations_without_gain,
)
from train.loop.objective import Measured, ModelRunner, Objective
from train.loop.optimizer import check_finite, learning_rate, prepare
from train.loop.sharding import divides_gradients, free_weights, is_sharded, whole
from train.rows.rows import Batch, IndexedSplits
from train.setup.recipe import Recipe
from train.tracking.throughput import PARTS, Throughput
from train.tracking.trackers import Tracker


class BaseTrainer(ABC):
    """The state of a run that is trained, its validations and its checkpoints."""

    tree_model: TreeModel
    """Model without the wrapper that divides it among processes."""
    optimizer: Any

    def __init__(
        self,
        recipe: Recipe,
        rows: IndexedSplits,
        accelerator: Accelerator,
        identity: Mapping[str, Any],
        total_steps: int,
    ) -> None:
        self.recipe, self.rows, self.identity = recipe, rows, identity
        self.accelerator, self.total_steps = accelerator, total_steps
        self.eval_every, self.save_every = recipe.run.steps_between(total_steps)
        folder, eval_every = recipe.run.output, self.eval_every
        self.tracker = Tracker(folder, total_steps, accelerator, eval_every=eval_every)
        self.progress = Progress(planned_steps=total_steps)

    @property
    def torch_optimizer(self) -> torch.optim.Optimizer:
        """Unwrap the optimizer from accelerate's wrapper."""
        inner: torch.optim.Optimizer = getattr(self.optimizer, "optimizer", self.optimizer)
        return inner

    @abstractmethod
    def measure(self) -> dict[str, Measured]:
        """Measure the validation rows, ``val``, and the watched ones, by their names."""

    @PARTS.measured("validation")
    def validate(self) -> None:
        """Score validation and watched rows; keep the adapter if it is the choice so far."""
        progress, run = self.progress, self.recipe.run
        with self.tracker.validating():
            measured = self.measure()
            nll = measured["val"].scores["nll"]
            if progress.step == 0 and math.isnan(nll):
                raise CustosError(
                    f"backbone '{self.recipe.backbone}': its scores are not numbers before step 1, "
                    "as some of its weights are NaN or infinite; get the checkpoint again"
                )
            scores, is_chosen = progress.add_validation(measured, run.select)
            if is_chosen:
                writes = self.accelerator.is_main_process
                save_best(run.output, progress.step, self.tree_model.backbone, writes=writes)
            self.tracker.log_scores(progress.step, scores, len(self.rows.val))

    @PARTS.measured("saving")
    def save(self) -> None:
        """Write a checkpoint, then delete the best adapters that no checkpoint names."""
        folder, writes = self.recipe.run.output, self.accelerator.is_main_process
        state = self.progress.state(self.recipe)
        step, parts = state.pop("step"), (self.tree_model, self.torch_optimizer)
        save_checkpoint(folder, step, *parts, state, self.identity, writes=writes)
        if writes:
            keep_best(folder, chosen_steps(folder))
        self.accelerator.wait_for_everyone()

    def keep_chosen(self) -> None:
        """Delete all best adapters but the one that becomes the judge."""
        if self.accelerator.is_main_process:
            keep_best(self.recipe.run.output, [int(self.progress.chosen["step"])])

    def free_memory(self) -> None:
        """Free the weights and the optimizer's state; the trainer cannot be used again."""
        free_weights(self.tree_model)
        self.optimizer = None
        self.accelerator.free_memory()
        gc.collect()
        torch.cuda.empty_cache()


class Trainer(BaseTrainer):
    """Trainer of an adapter on rows with an objective; it keeps the adapter that becomes the judge.

    In each step, losses are summed over all micro-batches of all processes and divided by their
    total denominator. The gradient is that of the quotient, so any number of processes takes the
    same step. A process without a micro-batch in a step runs one row that does not count, because
    all processes must add up their gradients together. If they share one model, or divide the
    gradients, each of them runs as many passes as the others.

    The model of the backbone carries the trainable adapter. ``identity`` is what the result depends
    on; a folder that holds another run is not resumed.
    """

    def __init__(
        self,
        recipe: Recipe,
        backbone: Backbone,
        rows: IndexedSplits,
        objective: Objective,
        accelerator: Accelerator,
        identity: Mapping[str, Any],
    ) -> None:
        optim, run = recipe.optim, recipe.run
        for of_split in rows.by_name.values():
            # To share prefixes, layers run twice before the backward pass; a sharded one may not.
            of_split.share_prefix = not is_sharded(accelerator)
        self.plan = StepPlan(rows.train, optim, run.seed, accelerator.num_processes, rows.replayed)
        super().__init__(recipe, rows, accelerator, identity, self.plan.total_steps)
        self.objective, self.freed = objective, FreeMemory()
        self.tree_model = objective.model_class(backbone.model)
        if run.gradient_checkpointing is True:  # a method has decided what ``auto`` is
            self.tree_model.checkpoint_activations()
        model, self.optimizer = prepare(accelerator, self.tree_model, optim)
        self.parameters = list(trainable(self.tree_model).values())  # of a sharded model, its parts
        workers = run.workers
        if workers is None:
            workers = default_workers(accelerator.device, processes_here(accelerator))
        self.loader = Loader(rows.by_name, workers, pinned=accelerator.device.type == "cuda")
        self.runner = ModelRunner(model, accelerator, self.loader, optim.token_budget)
        self.throughput = Throughput(
            self.tree_model, accelerator, backbone.tokenizer.pad_token_id, run.peak_tflops
        )

    def fit(self) -> Progress:
        """Train to the end, resuming from the run folder's newest checkpoint if there is one."""
        run, total_steps = self.recipe.run, self.total_steps
        self.resume()
        self.progress.planned_steps = total_steps
        config = recipe_values(self.recipe)
        with closing(self.loader), self.tracker.running(self.progress.step, config):
            self._describe_start()
            if self.progress.step == 0:
                self.validate()
            steps = range(self.progress.step, total_steps)
            plan = (rows for n in steps for rows in self._share(self.plan.micro_batches(n))[0])
            batches = self.loader.batches(self.rows.train, plan)
            while self.progress.step < total_steps and not self.stops_early:
                micro_batches = self.plan.micro_batches(self.progress.step)
                self.progress.losses.append(self.train_step(micro_batches, batches))
                self.progress.step += 1
                self.freed.give_back()
                step, last = self.progress.step, self.progress.step == total_steps
                self.tracker.advance(step, sum(map(len, micro_batches)))
                if step % run.log_every == 0 or last:
                    self._log_loss()
                if step % self.eval_every == 0 or last:
                    self.validate()
                last = last or self.stops_early
                if last and self.progress.losses:
                    self._log_loss()
                if step % self.save_every == 0 or last:
                    self.save()
            self.keep_chosen()
            if line := early_stop_line(self.progress, run.patience):
                self.tracker.note(line)
        return self.progress

    @property
    def stops_early(self) -> bool:
        """Tell whether ``run.patience`` validations in a row have brought no better adapter.

        Only the history decides, which is equal on all processes and kept in checkpoints.
        """
        patience, history = self.recipe.run.patience, self.progress.history
        return patience is not None and validations_without_gain(history) >= patience

    def resume(self) -> None:
        """Restore the first process's newest checkpoint into model and optimizer of every process.

        Machines need not share a disk: weights, moments and state come from the first process.
        """
        accelerator, folder = self.accelerator, self.recipe.run.output
        saved: Checkpoint | None = None
        if accelerator.is_main_process:
            saved = read_checkpoint(folder, self.tree_model, self.identity)
        if accelerator.num_processes > 1:
            saved = _broadcast(saved)
        if saved:
            saved.restore(self.tree_model, self.torch_optimizer)
            self.progress = Progress.restored(saved.state, self.recipe, self.tracker.note)
        if accelerator.num_processes == 1:
            return
        newest = newest_checkpoint(folder)
        name = newest.name if newest else "no checkpoint"
        names = gather_object([(accelerator.process_index, socket.gethostname(), name)])
        for rank, host, other in names:
            if other != names[0][2]:
                self.tracker.note(
                    f"process {rank} on {host} has {other} in its {folder}, the first process has "
                    f"{names[0][2]}: every process goes on from the first one's"
                )

    @PARTS.measured("step")
    def train_step(
        self, micro_batches: list[MicroBatch], batches: Iterator[Batch] | None = None
    ) -> float:
        """Make one optimizer step and return the mean loss over all processes.

        If the rows of the step have a total weight of 0, no parameter changes and the loss is 0.
        """
        accelerator, step = self.accelerator, self.progress.step
        # Dropout depends on seed, step and rank alone, so a resumed run repeats it.
        set_seed(dropout_seed(self.recipe.run.seed, step, accelerator.process_index))
        # Sorted, so that sums round alike for any number of processes and any token budget.
        rows = sorted(row for micro_batch in micro_batches for row in micro_batch)
        denominator = self.objective.denominator(*self.rows.train.weights(rows))
        share, num_counted = self._share(micro_batches)
        batches = batches or self.loader.batches(self.rows.train, share)
        if denominator == 0:
            for _ in share:
                next(batches)
            return 0.0
        waited_before = self.loader.data_wait
        total = torch.zeros((), device=accelerator.device)
        model = self.runner.model
        model.train()
        for index in range(len(share)):
            last, counts = index == len(share) - 1, index < num_counted
            batch = next(batches)
            if counts:
                self.throughput.add_batch(batch.layout)
            with accelerator.no_sync(model) if not last else nullcontext():
                outputs = self.runner.outputs(batch, self.objective.inputs(batch.rows))
                loss = self.objective.loss_sum(outputs, batch.rows, step) / denominator
                # The wrapper of several processes averages gradients; the step needs their sum.
                accelerator.backward(loss * (accelerator.num_processes if counts else 0))
            total += loss.detach() * counts
        mean: float = accelerator.reduce(total, "sum").item()
        most = self.recipe.optim.max_grad_norm
        norm = float(whole(accelerator.clip_grad_norm_(self.parameters, most)))
        check_finite(step, self.recipe.optim, loss=mean, gradient_norm=norm)
        self.throughput.add_step(norm, self.loader.data_wait - waited_before)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.recipe.optim, step, self.total_steps)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return mean

    def _share(self, micro_batches: list[MicroBatch]) -> tuple[list[MicroBatch], int]:
        """Choose this process's micro-batches, and how many count; the others only fill up."""
        accelerator = self.accelerator
        processes = accelerator.num_processes
        share = micro_batches[accelerator.process_index :: processes]
        as_many = is_sharded(accelerator) or divides_gradients(accelerator)
        least = -(-len(micro_batches) // processes) if as_many else 1
        return share + [micro_batches[0][:1]] * (least - len(share)), len(share)

    def measure(self) -> dict[str, Measured]:
        """Measure the validation rows, ``val``, and the watched ones, by their names."""
        sets = {"val": self.rows.val, **self.rows.watched}
        return {name: self.objective.measure(self.runner, rows) for name, rows in sets.items()}

    def free_memory(self) -> None:
        """Free the weights and the optimizer's state; the trainer cannot be used again."""
        if self.runner.model is not None:
            self.parameters.clear()
            super().free_memory()
            self.runner.model = None

    def _log_loss(self) -> None:
        step, loss = self.progress.step, torch.tensor(self.progress.losses).mean().item()
        self.progress.losses = []
        self.progress.history.append({"step": step, "train_loss": loss})
        lr = learning_rate(self.recipe.optim, step - 1, self.total_steps)
        speed = self.throughput.report(self.tracker.seconds)
        self.tracker.log_steps(step, {"train_loss": loss, "lr": lr, **speed})

    def _describe_start(self) -> None:
        """Report what decides the speed, and log one decoded row with its target."""
        tracker, optim, steps = self.tracker, self.recipe.optim, self.total_steps
        for line in device_lines(self.accelerator, self.tree_model.backbone):
            tracker.note(line)
        tracker.detail(f"attention: {describe_attention(self.tree_model.backbone)}")
        tracker.detail(self.throughput.describe_peak())
        if hint := thread_hint(self.accelerator):
            tracker.note(hint)
        if optim.max_steps and steps < optim.max_steps:
            tracker.note(
                f"{len(self.rows.train)} rows with optim.epochs={optim.epochs} and "
                f"optim.batch_size={optim.batch_size} give {steps} steps, fewer than "
                f"optim.max_steps={optim.max_steps}; more epochs give more"
            )
        processes, batch_size = self.accelerator.num_processes, optim.batch_size
        if batch_size < processes:
            tracker.note(
                f"a step of optim.batch_size={batch_size} rows keeps {batch_size} of {processes} "
                f"processes busy; {batch_size} processes would be as fast"
            )
        row, tokenizer = self.rows.train[0], self.rows.train.encoder.backbone.tokenizer
        for prompt in self.rows.train.prompts([row]):
            text = tokenizer.decode(prompt.prefix_ids + prompt.suffix_ids)
            tracker.detail(f"first row: {text!r}")
        tracker.detail(self.objective.describe_target(row, tokenizer))


def dropout_seed(seed: int, step: int, rank: int) -> int:
    """Derive the seed of one step of one process; it has 32 bits, as NumPy takes no more."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{step}/{rank}".encode()).digest()[:4], "big")


def _broadcast(saved: Checkpoint | None) -> Checkpoint | None:
    """Send the first process's checkpoint to every process, parameter by parameter."""
    [state, names] = broadcast_object_list([saved and saved.state, saved and list(saved.tensors)])
    if state is None or names is None:
        return None
    tensors = saved.tensors if saved else dict.fromkeys(names, None)
    return Checkpoint(state, {name: broadcast_object_list([tensors[name]])[0] for name in names})
