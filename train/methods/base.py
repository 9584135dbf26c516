"""The base of all methods of training, and that of those that minimise a loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from accelerate import Accelerator

from judging.scoring.prompts import Encoder
from train.loop.checkpoint import run_identity
from train.loop.objective import Objective
from train.loop.trainer import BaseTrainer, Trainer
from train.plan.planner import decide_checkpointing
from train.rows.data import RunSplits, read_splits
from train.rows.rows import Supervision, index_splits
from train.setup.recipe import Recipe
from train.setup.starting_adapter import with_adapter


class Method(ABC):
    """A way to train a judge on labelled rows; ``METHOD`` in a file of this folder names one.

    It is made from a recipe of :attr:`recipe_class` and the splits that :meth:`read_rows` has read.
    It refuses rows that it cannot train on.
    """

    name: ClassVar[str]
    """Value of ``method`` in recipes: the name of the file."""
    recipe_class: ClassVar[type[Recipe]]
    """Recipes of the method: the shared sections and its own."""
    script: ClassVar[str] = "run"
    """Script in ``train/`` that trains with it."""
    default_recipe: ClassVar[str] = ""
    """Recipe of the script without ``--config``; empty: the one with the script's name."""
    without_hub: ClassVar[str] = ""
    """Commands to run if a recipe's backbone or data cannot be had."""
    learns_text: ClassVar[bool] = False
    """True if answers are learnt token by token; tasks with critiques then need them in rows."""
    gives_labels: ClassVar[bool] = True
    """False if the judge gives no labels; then there is nothing to calibrate or to report on."""
    prompts: ClassVar[int] = 1
    """Prompts that the model reads for each row."""

    def __init_subclass__(cls) -> None:
        cls.name = cls.__module__.rpartition(".")[2]

    def __init__(self, recipe: Any, splits: RunSplits) -> None:
        self.recipe, self.splits = recipe, splits

    @classmethod
    def read_rows(cls, recipe: Any) -> RunSplits:
        """Read and check the rows of a recipe."""
        return read_splits(recipe.data)

    @staticmethod
    def supervision(encoder: Encoder) -> Supervision:
        """Choose what the model reads and learns from a row."""
        return Supervision(encoder)

    @abstractmethod
    def fit(
        self, encoder: Encoder, accelerator: Accelerator, hashes: Mapping[str, str]
    ) -> BaseTrainer:
        """Train to the last step, from the newest checkpoint if there is one."""


class LossMethod(Method):
    """A method whose steps our loop takes: it needs an objective, and perhaps a supervision."""

    def __init__(self, recipe: Any, splits: RunSplits) -> None:
        super().__init__(recipe, splits)
        self._objective = self.objective()

    @abstractmethod
    def objective(self) -> Objective:
        """Choose what to minimise, before anything is loaded.

        Raises ``CustosError`` if the method cannot train on these rows.
        """

    def validation(self, encoder: Encoder) -> Supervision | None:
        """Choose what the model reads in validations; ``None``: the same as in training."""
        return None

    def fit(
        self, encoder: Encoder, accelerator: Accelerator, hashes: Mapping[str, str]
    ) -> BaseTrainer:
        """Train with :class:`Trainer`."""
        trainer = self.trainer(encoder, accelerator, hashes)
        trainer.fit()
        return trainer

    def trainer(
        self, encoder: Encoder, accelerator: Accelerator, hashes: Mapping[str, str]
    ) -> Trainer:
        """Make the trainer, and decide about ``run.gradient_checkpointing: auto``."""
        rows = index_splits(self.splits, self.supervision(encoder), self.validation(encoder))
        adapted, objective = with_adapter(encoder.backbone, self.recipe), self._objective
        recipe = decide_checkpointing(
            self.recipe, rows.train, adapted.model.config, objective.model_class, accelerator
        )
        identity = run_identity(recipe, adapted.version, hashes)
        return Trainer(recipe, adapted, rows, objective, accelerator, identity)
