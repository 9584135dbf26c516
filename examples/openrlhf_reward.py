"""Reward function for OpenRLHF: how surely a judge names the right response after a critique.

Start a judge, and name this file in the options of your training:

    custos serve --judge embedded-pair
    CUSTOS_URL=http://127.0.0.1:8000 python -m openrlhf.cli.train_ppo_ray \
        --remote_rm_url examples/openrlhf_reward.py --label_key label ...

In the data, ``label`` is the labelled pair as JSON, with ``question``, ``response_a``,
``response_b`` and ``label``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from custos.rewards import CritiqueReward

NO_REWARD = 0.0
"""Reward where a rule decides, such as on an empty response: leave such pairs out of the data."""


@cache
def reward() -> CritiqueReward:
    """Return the reward function of the judge at ``CUSTOS_URL``."""
    return CritiqueReward.connect(os.environ["CUSTOS_URL"])


def reward_func(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **options: Any
) -> dict[str, Any]:
    """Return a reward for every critique of a batch.

    Args:
        queries: Prompts, each followed by the critique.
        prompts: Prompts.
        labels: Labelled pairs as JSON.
        options: What else OpenRLHF hands over (unused).
    """
    critiques = [query[len(prompt) :] for query, prompt in zip(queries, prompts, strict=True)]
    scores = reward().scores(labels, critiques)
    rewards = torch.tensor([NO_REWARD if score is None else score.reward for score in scores])
    flips = torch.tensor([float(score is not None and score.flips) for score in scores])
    # Scores lie between 0 and 1: OpenRLHF filters groups by them.
    return {"rewards": rewards, "scores": rewards.exp(), "extra_logs": {"flips": flips}}
