"""What a finished run leaves beside its adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

import judging.judge
from evaluation.report.pictures import plot_learning_curve
from judging import Judge
from judging.card import JudgeCard
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from tests.tiny import save_picture
from tests.train.made_up import example
from train.finish.write_judge import calibrate, watched_table
from train.loop.trainer import Progress


def test_a_calibration_split_with_pictures_is_read_some_at_a_time(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = save_picture(tmp_path / "a.png", 60, 60)
    judge = Judge.load(small, device="cpu", dtype="float32")
    rows = [example(i, images=(picture,) if i == 4 else ()) for i in range(7)]
    expected = judge.logprobs(rows)
    sizes: list[int] = []
    score = judge.engine.score

    def count(prompts: Any, tree: Any) -> Any:
        sizes.append(len(prompts))
        return score(prompts, tree)

    monkeypatch.setattr(judge.engine, "score", count)
    monkeypatch.setattr(judging.judge, "WINDOW", 3)
    np.testing.assert_allclose(judge.logprobs(rows), expected, rtol=1e-5, atol=1e-5)
    assert sizes == [3, 3, 1]


def test_scores_are_calibrated_where_a_type_is_missing(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backbone = load_backbone(small, dtype="float32", device="cpu")
    add_adapter(backbone.model, r=2, alpha=2).save_pretrained(str(tmp_path))
    card = JudgeCard.for_rubrics(backbone, {"hieval-ea": ("plain/any",)}, response_budget=50)
    (tmp_path / "judge.json").write_text(card.model_dump_json(), encoding="utf-8")
    kinds = (("Correct", None), ("Wrong; Other", "Other"))
    rows = [
        example(i, task="hieval-ea", label=kinds[i % 2][0], error_type=kinds[i % 2][1])
        for i in range(8)
    ]
    found = calibrate(tmp_path, rows)
    assert found is not None
    assert (set(found.rubrics), set(found.error_types)) == ({"hieval-ea/plain/any"}, set())
    assert "hieval-ea/plain/any: error types stay uncalibrated" in capsys.readouterr().err


def test_what_is_kept_of_an_earlier_stage() -> None:
    """Wilson's intervals of 9 of 10 and 6 of 10, by his formula."""
    before = {"step": 0, "val_accuracy": 0.1, "val_nll": 1.0, "stage1_accuracy": 0.9}
    best = {"step": 20, "val_accuracy": 0.9, "val_nll": 0.5, "stage1_accuracy": 0.6}
    last = {"step": 30, "val_accuracy": 0.8, "val_nll": 0.5, "stage1_accuracy": 0.2}
    progress = Progress(30, best, [{"step": 0, "train_loss": 2.0}, before, best, last])
    page = "\n".join(watched_table(progress, {"stage1": 10}))
    assert "| stage1 | 10 | 0.900 [0.596, 0.982] | 0.600 [0.313, 0.832] |" in page
    assert watched_table(progress, {}) == []


def test_the_learning_curve_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, list[float]] = {}
    plot = Axes.plot

    def note(self: Axes, x: Any, y: Any, **style: Any) -> Any:
        drawn[style["label"]] = list(y)
        return plot(self, x, y, **style)

    monkeypatch.setattr(Axes, "plot", note)
    entries = [{"step": i, "val_accuracy": i / 2, "stage1_accuracy": 1 - i / 2} for i in range(3)]
    plot_learning_curve(entries, tmp_path / "curve.png")
    assert drawn["stage1 kept"] == [1.0, 0.5, 0.0]
