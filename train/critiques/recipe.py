"""The part of a recipe that only the scripts on critiques have."""

from __future__ import annotations

import os
from importlib.util import find_spec

from pydantic import Field, model_validator

from judging.errors import CustosError
from judging.types import MAX_CRITIQUE_TOKENS
from train.setup.recipe import Recipe, Section, check_has_effect

WITHOUT_EFFECT = (
    *("optim.token_budget", "optim.whole_questions"),
    *("run.quantization", "run.workers", "run.peak_tflops", "run.patience"),
)
"""Keys that these scripts do not read: TRL makes the batches and takes the steps."""


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
    those of a step; memory depends on it, the judge does not."""


class CritiqueRecipe(Recipe):
    """Recipe of a script that trains on critiques of the judge's own."""

    critiques: CritiqueSection = CritiqueSection()

    @model_validator(mode="after")
    def _only_known_keys(self) -> CritiqueRecipe:
        check_has_effect(self, WITHOUT_EFFECT)
        return self

    @model_validator(mode="after")
    def _whole_micro_batches(self) -> CritiqueRecipe:
        if self.units_per_step % self.critiques.micro_batch:
            raise ValueError(
                f"critiques.micro_batch: {self.critiques.micro_batch} does not divide "
                f"{self.units_per_step}, as many as a step has"
            )
        return self

    @property
    def units_per_step(self) -> int:
        """Return how many units ``critiques.micro_batch`` counts in a step: a pair of each row."""
        return self.optim.batch_size


def check_setting() -> None:
    """Check that TRL is installed and that there is one process.

    Raises:
        CustosError: If not.
    """
    if find_spec("trl") is None:
        raise CustosError("trl is not installed: pip install 'custos[trl]'")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise CustosError(
            "critiques are trained on in one process: give 'custos train' --processes 1, or start "
            "the script with 'python'"
        )
