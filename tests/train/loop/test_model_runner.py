"""Scoring rows with the model of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from judging.scoring.prompts import EncodedPrompt
from tests.tiny import save_picture
from tests.train.made_up import example, examples, recipe, trainer
from train.loop import model_runner
from train.loop.batches import Row, Rows


def test_pictures_are_scored_some_at_a_time(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = save_picture(tmp_path / "a.png", 60, 60)
    data = [example(i, images=(picture,) if i % 2 else ()) for i in range(7)]
    learner = trainer(recipe(tmp_path), small, examples(16), data)
    expected = learner.runner.label_logprobs(learner.rows.val)
    sizes: list[int] = []
    prompts = Rows.prompts

    def count(self: Rows, rows: Sequence[Row]) -> list[EncodedPrompt]:
        sizes.append(len(rows))
        return prompts(self, rows)

    monkeypatch.setattr(Rows, "prompts", count)
    monkeypatch.setattr(model_runner, "PICTURED_AT_ONCE", 3)
    np.testing.assert_allclose(
        learner.runner.label_logprobs(learner.rows.val), expected, rtol=1e-5, atol=1e-5
    )
    assert sizes == [3, 3, 1]
