"""What DPO and GRPO share: a judge learns from critiques that it draws itself.

A trainer of TRL takes the optimizer steps; the rest of the run is as in every method. A run can be
stopped and continued, as TRL gets only the items of the steps that are left, in order.
"""

from __future__ import annotations

import os
import random
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain
from typing import Any, ClassVar

import huggingface_hub.constants
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from pydantic import Field, model_validator
from torch.optim.lr_scheduler import LambdaLR
from transformers import PrinterCallback, TrainerCallback

from evaluation.outcomes import full_label
from judging.errors import CustosError, FieldError, errors_at
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.models.backbones import Backbone
from judging.progress import grouped
from judging.scoring.engine import GeneratedText, Sampling, texts_in_order
from judging.scoring.prompts import Encoder
from judging.scoring.tree_batch import TreeModel
from judging.scoring.tree_engine import TreeEngine
from judging.tasks import get_task
from judging.types import (
    END_TOKEN,
    MAX_CRITIQUE_TOKENS,
    JudgeRequest,
    LabelledExample,
    Mode,
    Verdict,
)
from judging.verdicts.critiques import CritiqueScorer
from train.loop.accelerator import device_lines, uses_autocast
from train.loop.checkpoint import Progress, read_checkpoint, recipe_values, run_identity, trainable
from train.loop.objective import Measured, share_right
from train.loop.optimizer import check_finite, learning_rate, make_optimizer
from train.loop.trainer import BaseTrainer, dropout_seed
from train.methods.base import Method
from train.rows.data import RunSplits, read_splits
from train.rows.rows import IndexedSplits, Supervision, index_splits
from train.setup.recipe import Recipe, Section
from train.setup.starting_adapter import with_adapter
from train.tracking.throughput import PARTS

JUDGED_AT_ONCE = 64
"""Requests judged at once, whose pictures are then all in memory."""


@dataclass(frozen=True)
class DrawnCritique:
    """A drawn critique, with the very tokens that were drawn."""

    text: str
    is_finished: bool
    """True if the judge ended it, False if it was cut."""
    prompt_ids: tuple[int, ...]
    """What came before it, its opening tag included."""
    token_ids: tuple[int, ...]
    """Its tokens and those that ended it."""


class Policy:
    """A judge whose weights change while it is used."""

    def __init__(
        self, backbone: Backbone, encoder: Encoder, accelerator: Accelerator, max_tokens: int
    ) -> None:
        self.backbone, self.encoder = backbone, encoder
        self.accelerator, self.max_tokens = accelerator, max_tokens
        self.tree_model = TreeModel(backbone.model)

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """Grade requests with the present weights, and without calibration."""
        requests = list(requests)
        card = JudgeCard.for_requests(self.backbone, requests, self.encoder.response_budget)
        with self._judging() as engine:
            verdicts = list(Judge("policy", self.backbone, engine, card).grade(requests))
        return iter(verdicts)

    def draw(
        self, requests: Sequence[JudgeRequest], seeds: Sequence[int], temperature: float
    ) -> list[DrawnCritique]:
        """Draw a critique for each request; pairs are read in the given order."""
        drawn: dict[int, DrawnCritique] = {}
        tokenizer, encoder = self.backbone.tokenizer, self.encoder
        rubrics = [get_task(each.task).full_rubric(each) for each in requests]
        for start in range(0, len(requests), JUDGED_AT_ONCE):
            here = range(start, min(start + JUDGED_AT_ONCE, len(requests)))
            for indices in grouped(here, rubrics.__getitem__).values():
                task = get_task(requests[indices[0]].task)
                assert task.critique is not None  # checked for all rows
                opening, closing = encoder.text(task.critique.opening), task.critique.closing
                encoded = encoder.encode([(task, requests[index]) for index in indices])
                prompts = [prompt.extended(opening) for prompt in encoded]
                drawn_seeds = [seeds[index] for index in indices]
                sampling = Sampling(self.max_tokens, temperature)
                with self._judging() as engine:
                    batches = engine.generate(prompts, encoder, closing, drawn_seeds, sampling)
                    texts = texts_in_order(batches)
                for index, prompt, text in zip(indices, prompts, texts, strict=True):
                    assert isinstance(text, GeneratedText)  # in this process none fails
                    tokens = text.tokens
                    if text.finished and closing not in tokenizer.decode(tokens):
                        tokens = (*tokens, tokenizer.convert_tokens_to_ids(END_TOKEN))
                    before = (*prompt.prefix_ids, *prompt.suffix_ids)
                    drawn[index] = DrawnCritique(text.text, text.finished, before, tokens)
        return [drawn[index] for index in range(len(requests))]

    def measure(self, examples: Iterable[LabelledExample]) -> Measured:
        """Measure what the judge decides after critiques that it writes.

        The scores are ``accuracy``; ``flips``, the share of pairs whose orders lead to different
        labels; and ``nll``, the negative log-likelihood of the right label, averaged over orders.
        """
        examples, scorer = list(examples), CritiqueScorer(self, flip_penalty=0)
        verdicts = self.grade(
            row.request().model_copy(
                update={"mode": "critique", "critique_tokens": self.max_tokens}
            )
            for row in examples
        )
        right: list[bool | None] = []
        scores = []
        for row, verdict in zip(examples, verdicts, strict=True):
            right.append(full_label(verdict) == row.label)
            if score := scorer.score_of(row, verdict):
                scores.append(score)
        mean = {
            "nll": -sum(score.reward for score in scores) / len(scores),
            "flips": sum(score.flips for score in scores) / len(scores),
        }
        return Measured({"accuracy": share_right(right), **mean}, right)

    @contextmanager
    def _judging(self) -> Iterator[TreeEngine]:
        """Yield an engine with the present weights; meanwhile the model does not train."""
        was_training = self.backbone.model.training
        self.tree_model.eval()
        try:
            with self.accelerator.autocast(), torch.inference_mode():
                yield TreeEngine(self.tree_model, self.backbone.tokenizer.pad_token_id)
        finally:
            self.tree_model.train(was_training)


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
WITHOUT_EFFECT = (
    *("data.votes", "optim.token_budget", "optim.whole_questions"),
    *("run.quantization", "run.workers", "run.peak_tflops", "run.patience"),
)
"""Keys that these methods do not read: TRL makes the batches, of whole rows."""


class CritiqueSection(Section):
    """Critiques that the judge draws while it is trained, and what they are worth.

    The reward of a critique is the log-probability that the judge gives the right label after it,
    the mean over both orders of the pair, less ``flip_penalty`` if the orders lead to different
    labels.
    """

    drawn: int = Field(default=4, ge=2)
    """Critiques that are drawn of each pair."""
    max_tokens: int = Field(default=192, ge=1, le=MAX_CRITIQUE_TOKENS)
    """Most tokens of a critique, here and in validations; longer ones are cut."""
    temperature: float = Field(default=1.0, gt=0)
    """Temperature at which critiques are drawn to train on."""
    flip_penalty: float = Field(default=1.0, ge=0)
    """How much less a critique is worth after which the orders lead to different labels."""
    micro_batch: int = Field(default=1, gt=0)
    """Critiques (GRPO) or pairs of critiques (DPO) of a forward pass of training. It must divide
    those of a step; memory depends on it, the judge does not. A pass of DPO takes one pair where
    rows differ in ``weight``."""


class OwnCritiqueRecipe(Recipe):
    """Recipe of a method that trains on critiques of the judge's own."""

    critiques: CritiqueSection = CritiqueSection()

    @model_validator(mode="after")
    def _can_be_trained_by_trl(self) -> OwnCritiqueRecipe:
        for key in WITHOUT_EFFECT:
            section, _, name = key.partition(".")
            values: Section = getattr(self, section)
            if getattr(values, name) != type(values).model_fields[name].default:
                raise ValueError(f"{key} is not for this script; leave it out")
        if self.units_per_step % self.critiques.micro_batch:
            raise ValueError(
                f"critiques.micro_batch: {self.critiques.micro_batch} does not divide "
                f"{self.units_per_step}, as many as a step has"
            )
        return self

    @property
    def units_per_step(self) -> int:
        """Count what ``critiques.micro_batch`` must divide: here a step's pairs, one per row."""
        return self.optim.batch_size


class CritiqueSupervision(Supervision):
    """Supervision by the example itself; its label is decided after a critique."""

    def mode(self, example: LabelledExample) -> Mode:
        """Choose ``critique`` for every example."""
        return "critique"


class CritiqueRun(BaseTrainer):
    """A run that TRL trains: it validates, keeps the adapter that is to be the judge, and reports.

    In validations the judge decides after critiques that it writes itself.
    """

    recipe: OwnCritiqueRecipe

    def __init__(
        self,
        recipe: OwnCritiqueRecipe,
        policy: Policy,
        rows: IndexedSplits,
        num_items: int,
        identity: Mapping[str, Any],
    ) -> None:
        recipe = recipe.with_checkpointing(recipe.run.gradient_checkpointing is True)
        optim = recipe.optim
        steps = -(-num_items * optim.epochs // optim.batch_size)
        steps = min(steps, optim.max_steps or steps)
        super().__init__(recipe, rows, policy.accelerator, identity, steps)
        self.policy, self.num_items, self.tree_model = policy, num_items, policy.tree_model
        self.optimizer = make_optimizer(trainable(self.tree_model).values(), optim)
        self._checkpoint = read_checkpoint(recipe.run.output, self.tree_model, identity)
        if self._checkpoint:
            self.progress = Progress.restored(self._checkpoint.state, recipe, self.tracker.note)
        self.first_step = self.progress.step
        """Steps that earlier calls have done."""

    @property
    def items_left(self) -> list[int]:
        """List the indices of the items of all steps that are left, in order.

        Every pass over the items shuffles them; the last step is filled up from one more pass.
        """
        size, rng = self.recipe.optim.batch_size, random.Random(f"items/{self.recipe.run.seed}")
        items: list[int] = []
        while len(items) < self.total_steps * size:
            items += rng.sample(range(self.num_items), self.num_items)
        return items[self.first_step * size : self.total_steps * size]

    def settings(self, micro_batch: int) -> dict[str, Any]:
        """List the settings that the configurations of TRL's trainers have in common.

        A forward pass takes ``micro_batch`` of the units of a step.
        """
        recipe, run, device = self.recipe, self.recipe.run, self.accelerator.device
        # TRL would tell its authors of every run.
        huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY = True
        return {
            "output_dir": str(run.output),
            "per_device_train_batch_size": micro_batch,
            "gradient_accumulation_steps": recipe.units_per_step // micro_batch,
            "max_steps": self.total_steps - self.first_step,
            "train_sampling_strategy": "sequential",
            "max_grad_norm": recipe.optim.max_grad_norm,
            "seed": run.seed,
            "bf16": uses_autocast(run, device),
            "use_cpu": device.type == "cpu",
            "activation_checkpointing": run.gradient_checkpointing,
            "disable_dropout": recipe.adapter.dropout == 0,
            "logging_strategy": "no",  # the run says which steps are reported
            "logging_nan_inf_filter": False,
            "save_strategy": "no",
            "report_to": "none",
            "disable_tqdm": True,
            "dataloader_pin_memory": device.type == "cuda",
        }

    def optimizers(self) -> tuple[torch.optim.Optimizer, LambdaLR]:
        """Return the optimizer, with the schedule of the learning rate that the recipe names."""
        optim = self.recipe.optim

        def factor(steps: int) -> float:
            return learning_rate(optim, self.first_step + steps, self.total_steps) / optim.lr

        return self.optimizer, LambdaLR(self.optimizer, factor)

    @PARTS.measured("step")
    def fit(self, trl_trainer: Any) -> None:
        """Train to the end, from the newest checkpoint if there is one.

        TRL's trainer was made with :meth:`settings`, :meth:`optimizers` and :attr:`items_left`,
        which is not empty. It has copied the adapter of the start, so the checkpoint is restored
        only now.
        """
        trl_trainer.remove_callback(PrinterCallback)
        trl_trainer.add_callback(_Reports(self))
        if self._checkpoint:
            self._checkpoint.restore(self.tree_model, self.optimizer)
        with self.tracker.running(self.first_step, recipe_values(self.recipe)):
            for line in device_lines(self.accelerator, self.tree_model.backbone):
                self.tracker.note(line)
            if not self.first_step:
                self.validate()
            trl_trainer.train()
        self.keep_chosen()
        adapted = self.tree_model.backbone
        if REFERENCE_ADAPTER in adapted.peft_config:
            adapted.delete_adapter(REFERENCE_ADAPTER)

    def measure(self) -> dict[str, Measured]:
        """Grade the validation rows, after critiques that the judge writes."""
        return {"val": self.policy.measure(self.rows.val.examples)}


class OwnCritiques(Method):
    """Trains a judge on critiques that it draws itself.

    What is learnt from a row counts as much as its ``weight`` says; rows of weight 0 are left out.
    """

    recipe_class: ClassVar[type[OwnCritiqueRecipe]]
    without_hub = "custos prep pairs --rows 2000 --pictures 0 --seed 7 --out data/new-pairs"
    takes_pictures: ClassVar[bool] = True

    def __init__(self, recipe: Any, splits: RunSplits) -> None:
        super().__init__(recipe, splits)
        for example in chain(splits.train, splits.val):
            with errors_at(f"row '{example.id}'"):
                if get_task(example.task).critique is None:
                    raise FieldError("task", f"task '{example.task}' writes no critiques")
                if example.images and not self.takes_pictures:
                    raise FieldError("images", "GRPO takes no pictures; DPO (critique_dpo) does")
        train = splits.train.where(lambda row: row.weight > 0)
        if not train:
            raise FieldError("weight", "no row to train on has one above 0")
        self.splits = replace(splits, train=train)

    @classmethod
    def read_rows(cls, recipe: OwnCritiqueRecipe) -> RunSplits:
        """Read and check the rows, if TRL is installed and there is one process."""
        if find_spec("trl") is None:
            raise CustosError("trl is not installed: pip install 'custos[trl]'")
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise CustosError(
                "critiques are trained on in one process: give 'custos train' --processes 1, or "
                "start the script with 'python'"
            )
        return read_splits(recipe.data)

    @staticmethod
    def supervision(encoder: Encoder) -> CritiqueSupervision:
        """Supervise the label after a critique."""
        return CritiqueSupervision(encoder)

    def fit(
        self, encoder: Encoder, accelerator: Accelerator, hashes: Mapping[str, str]
    ) -> CritiqueRun:
        """Train with a trainer of TRL."""
        recipe = self.recipe
        adapted = with_adapter(encoder.backbone, recipe)
        policy = Policy(adapted, encoder, accelerator, recipe.critiques.max_tokens)
        identity = run_identity(recipe, adapted.version, hashes)
        num_items = self.draw_items(policy, identity)
        rows = index_splits(self.splits, self.supervision(encoder))
        run = CritiqueRun(recipe, policy, rows, num_items, identity)
        if run.items_left:
            run.fit(self.trainer(run))
        return run

    def draw_items(self, policy: Policy, identity: Mapping[str, Any]) -> int:
        """Count the items to train on; a method may draw them before its first step."""
        return len(self.splits.train)

    @abstractmethod
    def trainer(self, run: CritiqueRun) -> Any:
        """Make TRL's trainer for the steps that are left."""


class _Reports(TrainerCallback):  # type: ignore[misc]  # transformers has no types here
    """Callback that validates, saves and reports at the steps of TRL's trainer."""

    def __init__(self, run: CritiqueRun) -> None:
        self.run = run

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Save the step before if it is time to, and set the seed of this one.

        TRL reports a step only after ``on_step_end``. Saved here, the checkpoint has the report.
        """
        run, step = self.run, self.run.progress.step
        if step > run.first_step and step % run.save_every == 0:
            run.save()
        set_seed(dropout_seed(run.recipe.run.seed, step, 0))

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        """Check that the gradient is finite before the weights take it."""
        parameters = trainable(self.run.tree_model).values()
        gradients = [p.grad for p in parameters if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients).item()
        check_finite(self.run.progress.step, self.run.recipe.optim, gradient_norm=norm)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Count the step, validate if it is time to, and have TRL log it if it is reported."""
        run = self.run
        run.progress.step += 1
        step, is_last = run.progress.step, run.progress.step == run.total_steps
        run.tracker.advance(step, run.recipe.optim.batch_size)
        if step % run.eval_every == 0 or is_last:
            run.validate()
        control.should_log = step % run.recipe.run.log_every == 0 or is_last

    def on_log(self, *_: Any, logs: Mapping[str, float] | None = None, **__: Any) -> None:
        """Report the figures of the steps since the last report."""
        if logs is None or "loss" not in logs:  # the summary of a whole run
            return
        progress, tracker = self.run.progress, self.run.tracker
        loss, norm = float(logs["loss"]), float(logs["grad_norm"])
        figures = {name: float(logs[key]) for key, name in FIGURES.items() if key in logs}
        progress.history.append({"step": progress.step, "train_loss": loss, **figures})
        values = {"train_loss": loss, "grad_norm": norm, "lr": float(logs["learning_rate"])}
        tracker.log_steps(progress.step, values | figures)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Save the last step."""
        self.run.save()
