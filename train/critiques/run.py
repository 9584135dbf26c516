"""A run whose optimizer steps a trainer of TRL takes; all else of it is as in every script."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import huggingface_hub.constants
import torch
from accelerate import Accelerator
from torch.optim.lr_scheduler import LambdaLR
from transformers import PrinterCallback, TrainerCallback

from judging.errors import CustosError, FieldError
from judging.scoring.tree_batch import TreeModel
from judging.types import LabelledExample, Mode
from train.critiques.policy import Policy
from train.critiques.recipe import CritiqueRecipe
from train.dry_run.parts import PARTS
from train.loop.accelerator import uses_autocast
from train.loop.checkpoint import keep_best, save_best, trainable
from train.loop.learning_rate import learning_rate
from train.loop.model_runner import free_weights
from train.loop.optimizer import make_optimizer
from train.loop.progress import Progress
from train.rows.rows import IndexedSplits
from train.rows.supervision import LabelSupervision
from train.setup.run_identity import recipe_values
from train.tracking.trackers import Tracker

REFERENCE_ADAPTER = "ref"
"""Name that TRL gives to its copy of the adapter that a run starts from."""
FIGURES = {
    "reward": "reward",
    "reward_std": "reward_std",
    "kl": "kl",
    "rewards/margins": "margin",
    "rewards/accuracies": "preferred",
    "completions/mean_length": "critique_tokens",
}
"""Figures of TRL that are reported, and their names here."""


class CritiqueSupervision(LabelSupervision):
    """Reads the example itself; the label is decided after a critique."""

    def mode(self, example: LabelledExample) -> Mode:
        """Return ``critique``."""
        return "critique"


class CritiqueRun:
    """A run that TRL trains: it validates, keeps the adapter that is to be the judge, and reports.

    Validations are of critiques that the judge writes itself.

    Args:
        recipe: Validated recipe.
        policy: The judge that is trained.
        rows: Training and validation rows.
        epoch_rows: Rows of an epoch.
    """

    def __init__(
        self, recipe: CritiqueRecipe, policy: Policy, rows: IndexedSplits, epoch_rows: int
    ) -> None:
        batch_size = recipe.optim.batch_size
        sizes = [min(batch_size, epoch_rows - row) for row in range(0, epoch_rows, batch_size)]
        total_steps = min(len(sizes) * recipe.optim.epochs, recipe.optim.max_steps or 10**12)
        self.recipe, self.policy, self.rows, self.total_steps = recipe, policy, rows, total_steps
        self.step_sizes = sizes
        self.accelerator: Accelerator = policy.accelerator
        self.progress = Progress(planned_steps=total_steps)
        self.eval_every = recipe.run.steps_between(total_steps)[0]
        self.tracker = Tracker(
            recipe.run.output,
            total_steps,
            self.accelerator,
            eval_every=self.eval_every,
        )
        self.optimizer = make_optimizer(trainable(self.tree_model).values(), recipe.optim)

    @property
    def tree_model(self) -> TreeModel:
        """Return the model that is trained."""
        return self.policy.tree_model

    def settings(self, units_per_step: int) -> dict[str, Any]:
        """Return what the configurations of TRL's trainers have in common.

        Args:
            units_per_step: Critiques, or pairs of critiques, of an optimizer step.

        Raises:
            FieldError: If ``critiques.micro_batch`` does not divide them.
        """
        recipe, run = self.recipe, self.recipe.run
        micro_batch = recipe.critiques.micro_batch
        if units_per_step % micro_batch:
            raise FieldError(
                "critiques.micro_batch", f"{micro_batch} does not divide {units_per_step}"
            )
        # TRL would tell its authors of every run.
        huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY = True
        device = self.accelerator.device
        return {
            "output_dir": str(run.output),
            "per_device_train_batch_size": micro_batch,
            "gradient_accumulation_steps": units_per_step // micro_batch,
            "max_steps": self.total_steps,
            "max_grad_norm": recipe.optim.max_grad_norm,
            "seed": run.seed,
            "bf16": uses_autocast(run, device),
            "use_cpu": device.type == "cpu",
            "activation_checkpointing": run.gradient_checkpointing,
            "disable_dropout": recipe.adapter.dropout == 0,
            "logging_steps": run.log_every,
            "logging_nan_inf_filter": False,
            "save_strategy": "no",
            "report_to": "none",
            "disable_tqdm": True,
            "dataloader_pin_memory": device.type == "cuda",
        }

    def optimizers(self) -> tuple[torch.optim.Optimizer, LambdaLR]:
        """Return the optimizer and the course of the learning rate that the recipe names."""
        optim = self.recipe.optim
        schedule = LambdaLR(
            self.optimizer, lambda step: learning_rate(optim, step, self.total_steps) / optim.lr
        )
        return self.optimizer, schedule

    @PARTS.measured("step")
    def fit(self, trl_trainer: Any) -> None:
        """Train to the end.

        Args:
            trl_trainer: Trainer of TRL, made with :meth:`settings` and :meth:`optimizers`.

        Raises:
            CustosError: If the loss is not finite.
        """
        trl_trainer.remove_callback(PrinterCallback)
        trl_trainer.add_callback(_Reports(self))
        with self.tracker.running(0, recipe_values(self.recipe)):
            self.validate()
            trl_trainer.train()
        keep_best(self.recipe.run.output, [int(self.progress.chosen["step"])])
        adapted = self.tree_model.backbone
        if REFERENCE_ADAPTER in adapted.peft_config:
            adapted.delete_adapter(REFERENCE_ADAPTER)

    @PARTS.measured("validation")
    def validate(self) -> None:
        """Grade the validation rows; keep the adapter if it is to be chosen so far."""
        step = self.progress.step
        with self.tracker.validating():
            measured = {"val": self.policy.measure(self.rows.val.examples)}
            scores, is_chosen = self.progress.add_validation(measured, self.recipe.run.select)
            if is_chosen:
                save_best(self.recipe.run.output, step, self.tree_model.backbone)
            self.tracker.log_scores(step, scores, len(self.rows.val))

    def count_step(self, step: int) -> None:
        """Count an optimizer step that is done, and validate if it is time to."""
        self.progress.step = step
        self.tracker.advance(step, self.step_sizes[(step - 1) % len(self.step_sizes)])
        if step % self.eval_every == 0 or step == self.total_steps:
            self.validate()

    def log(self, step: int, logs: Mapping[str, float]) -> None:
        """Report the figures that TRL logs of the steps since the last report.

        Raises:
            CustosError: If the loss is not finite.
        """
        if "loss" not in logs:  # the summary of a whole run
            return
        loss, norm = float(logs["loss"]), float(logs["grad_norm"])
        if not torch.isfinite(torch.tensor(loss + norm)):
            raise CustosError(
                f"step {step}: loss {loss} and gradient norm {norm} are not finite; lower "
                f"optim.lr={self.recipe.optim.lr}"
            )
        figures = {name: float(logs[key]) for key, name in FIGURES.items() if key in logs}
        self.progress.history.append({"step": step, "train_loss": loss, **figures})
        values = {"train_loss": loss, "grad_norm": norm, "lr": float(logs["learning_rate"])}
        self.tracker.log_steps(step, values | figures)

    def free_memory(self) -> None:
        """Free the weights and the optimizer's state; the run cannot be used again."""
        free_weights(self.tree_model)
        self.optimizer = None
        self.accelerator.free_memory()
        gc.collect()
        torch.cuda.empty_cache()


class _Reports(TrainerCallback):  # type: ignore[misc]  # transformers has no types here
    """Tells a run of the steps of TRL's trainer."""

    def __init__(self, run: CritiqueRun) -> None:
        self.run = run

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count the step."""
        self.run.count_step(state.global_step)

    def on_log(
        self,
        args: Any,
        state: Any,
        control: Any,
        logs: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        """Report the figures."""
        self.run.log(state.global_step, logs or {})
