"""Reward function for verl: how surely a judge names the right response after a critique.

Start a judge, and name this file in the options of your training:

    custos serve --judge embedded-pair
    CUSTOS_URL=http://127.0.0.1:8000 python -m verl.trainer.main_ppo \
        reward_model.reward_manager=batch \
        custom_reward_function.path=examples/verl_reward.py \
        custom_reward_function.name=compute_score ...

In the data, ``reward_model.ground_truth`` is the labelled pair as JSON, with ``question``,
``response_a``, ``response_b`` and ``label``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

from custos.rewards import CritiqueReward

NO_REWARD = 0.0
"""Reward where a rule decides, such as on an empty response: leave such pairs out of the data."""


@cache
def reward() -> CritiqueReward:
    """Return the reward function of the judge at ``CUSTOS_URL``."""
    return CritiqueReward.connect(os.environ["CUSTOS_URL"])


def compute_score(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[str],
    extra_infos: Sequence[Any] = (),
    **options: Any,
) -> list[float]:
    """Return a reward for every critique of a batch."""
    rewards = reward().rewards(ground_truths, solution_strs)
    return [NO_REWARD if value is None else value for value in rewards]
