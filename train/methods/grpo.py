"""Group relative policy optimisation of critiques that the judge draws itself (by TRL).

At every step the judge draws several critiques of each pair. Each is worth the log-probability that
its label tree gives the right label after it, the mean over both orders of the pair, less a penalty
if the orders lead to different labels. Rows need labels and no critiques, and have no pictures. It
runs in one process.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import Field

from judging.tasks import get_task
from judging.types import LabelledExample
from judging.verdicts.critiques import CritiqueScorer, critique_in
from train.methods.own_critiques import CritiqueRun, OwnCritiqueRecipe, OwnCritiques
from train.setup.recipe import Section

QUIET = "TRL_EXPERIMENTAL_SILENCE"
"""TRL's variable that silences the notice that ``rollout_func`` may change between versions."""


class GrpoSection(Section):
    """Group relative policy optimisation (Shao et al., 2024)."""

    beta: float = Field(default=0.0, ge=0)
    """How strongly the judge is held to the one that it started from (KL divergence)."""


class GrpoRecipe(OwnCritiqueRecipe):
    """Recipe of GRPO."""

    grpo: GrpoSection = GrpoSection()

    @property
    def units_per_step(self) -> int:
        """Count the critiques of a step, all those that are drawn of its rows."""
        return self.optim.batch_size * self.critiques.drawn


def draw_rollouts(run: CritiqueRun, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
    """Draw the critiques of a step, with a judge's prompts and stop, as TRL's ``rollout_func``.

    The prompts are rows. TRL takes the mean over tokens by a mask, which holds weights: those of
    the rows, 1 on average over all tokens of the step.
    """
    rows = [LabelledExample.model_validate_json(prompt) for prompt in prompts]
    requests = [row.request() for row in rows]
    rng = random.Random(f"rollouts/{run.recipe.run.seed}/{run.progress.step}")
    seeds = [rng.getrandbits(31) for _ in requests]
    drawn = run.policy.draw(requests, seeds, run.recipe.critiques.temperature)
    lengths = [len(critique.token_ids) for critique in drawn]
    weighted = sum(row.weight * length for row, length in zip(rows, lengths, strict=True))
    scale = sum(lengths) / weighted
    return {
        "prompt_ids": [list(critique.prompt_ids) for critique in drawn],
        "completion_ids": [list(critique.token_ids) for critique in drawn],
        "logprobs": None,
        "env_mask": [
            [row.weight * scale] * length for row, length in zip(rows, lengths, strict=True)
        ],
    }


class RightLabel:
    """The reward of critiques, as TRL asks for it."""

    def __init__(self, scorer: CritiqueScorer) -> None:
        self.scorer = scorer

    def __call__(
        self, prompts: Sequence[str], completions: Sequence[str], **columns: Any
    ) -> list[float | None]:
        """Reward every critique."""
        rows = [LabelledExample.model_validate_json(prompt) for prompt in prompts]
        critiques = []
        for row, completion in zip(rows, completions, strict=True):
            form = get_task(row.task).critique
            assert form is not None  # checked for all rows
            critiques.append(critique_in(completion, form))
        scores = self.scorer.score(rows, critiques)
        return [None if score is None else score.reward for score in scores]


class Grpo(OwnCritiques):
    """Trains a judge on rewards of its critiques."""

    recipe_class = GrpoRecipe
    script = "critique_grpo"
    default_recipe = "embedded/pair_grpo"
    takes_pictures = False

    def trainer(self, run: CritiqueRun) -> Any:
        """Make TRL's trainer of rewards."""
        os.environ.setdefault(QUIET, "1")
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer

        policy, critiques = run.policy, self.recipe.critiques
        rows = (self.splits.train[i] for i in run.items_left)
        return GRPOTrainer(
            model=policy.backbone.model,
            reward_funcs=RightLabel(CritiqueScorer(policy, critiques.flip_penalty)),
            args=GRPOConfig(
                **run.settings(critiques.micro_batch),
                shuffle_dataset=False,
                beta=self.recipe.grpo.beta,
                num_generations=critiques.drawn,
                max_completion_length=critiques.max_tokens,
                temperature=critiques.temperature,
                # Rewards of most pairs hardly differ. Scaled within each pair, they would count as
                # much as those of a pair whose critiques lead to different labels.
                scale_rewards="batch",
            ),
            train_dataset=Dataset.from_list([{"prompt": row.model_dump_json()} for row in rows]),
            processing_class=policy.backbone.tokenizer,
            rollout_func=partial(draw_rollouts, run),
            optimizers=run.optimizers(),
        )


METHOD = Grpo
