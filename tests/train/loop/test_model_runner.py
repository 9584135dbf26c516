"""Scoring rows with the model of a run."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judging.scoring.tree_batch import TreeModel
from tests.tiny import save_picture
from tests.train.made_up import example, examples, recipe, trainer


def test_a_small_budget_scores_alike(small: str, tmp_path: Path) -> None:
    picture = save_picture(tmp_path / "a.png", 60, 60)
    data = [example(i, images=(picture,) if i % 2 else ()) for i in range(7)]
    large, some = (
        trainer(recipe(tmp_path, optim__token_budget=budget), small, examples(16), data)
        for budget in (10_000, 120)
    )
    sizes = [
        [len(batch.rows) for batch, _ in learner.runner.passes(learner.rows.val)]
        for learner in (large, some)
    ]
    assert len(sizes[0]) == 1 and len(sizes[1]) > 2
    np.testing.assert_allclose(
        some.runner.label_logprobs(some.rows.val),
        large.runner.label_logprobs(large.rows.val),
        rtol=1e-5,
        atol=1e-5,
    )


def test_one_instruction_is_kept_at_a_time(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[Any]] = []

    def prefill(model: TreeModel, *arguments: Any) -> Any:
        prefix = compute(model, *arguments)
        made.append(weakref.ref(prefix))
        return prefix

    compute = TreeModel.prefill
    monkeypatch.setattr(TreeModel, "prefill", prefill)
    variants = ("plain", "tolerance", "plain", "tolerance")
    data = [example(i, variant=variant) for i, variant in enumerate(variants)]
    learner = trainer(recipe(tmp_path, optim__token_budget=1), small, examples(16), data)
    alive = []
    for _ in learner.runner.passes(learner.rows.val):
        gc.collect()
        alive.append(sum(prefix() is not None for prefix in made))
    assert (len(made), alive) == (2, [1, 1, 1, 1])
