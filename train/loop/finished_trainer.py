"""The interface of a trainer that the end of a run uses."""

from __future__ import annotations

from typing import Protocol

from accelerate import Accelerator

from judging.scoring.tree_batch import TreeModel
from train.loop.progress import Progress
from train.rows.rows import IndexedSplits
from train.setup.recipe import Recipe


class FinishedTrainer(Protocol):
    """A trainer after its last step, of which a judge is made."""

    @property
    def recipe(self) -> Recipe:
        """Return the recipe of the run."""
        ...

    @property
    def rows(self) -> IndexedSplits:
        """Return the rows that training used."""
        ...

    @property
    def progress(self) -> Progress:
        """Return the history, and the step whose adapter becomes the judge."""
        ...

    @property
    def accelerator(self) -> Accelerator:
        """Return device, precision and processes."""
        ...

    @property
    def tree_model(self) -> TreeModel:
        """Return the model that was trained."""
        ...

    def free_memory(self) -> None:
        """Free the weights; the trainer cannot be used again."""
        ...
