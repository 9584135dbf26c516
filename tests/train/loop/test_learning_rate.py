from __future__ import annotations

import math

import pytest

from train.loop.optimizer import learning_rate
from train.setup.recipe import OptimSection


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        # Two of ten steps warm up; then 8 steps of decay from 1.
        ("linear", [0.5, 1.0, 1.0, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        ("constant", [0.5] + [1.0] * 9),
        (
            "cosine",
            [0.5, 1.0, *(0.5 * (1 + math.cos(math.pi * done / 8)) for done in range(8))],
        ),
    ],
)
def test_learning_rate(schedule: str, expected: list[float]) -> None:
    given = {"lr": 1.0, "schedule": schedule, "warmup_ratio": 0.2}
    optim = OptimSection.model_validate(given)
    rates = [learning_rate(optim, step, total_steps=10) for step in range(10)]
    assert rates == pytest.approx(expected)
