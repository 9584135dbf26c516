from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judging.judge
from judging import Judge
from judging.card import JudgeCard
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from tests.tiny import save_picture
from tests.train.made_up import example
from train.finish.calibrate import calibrate
from train.finish.processes import Processes


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
    labels = (("Correct", None), ("Wrong; Other", "Other"))
    rows = [
        example(i, task="hieval-ea", label=labels[i % 2][0], error_type=labels[i % 2][1])
        for i in range(8)
    ]
    calibration = calibrate(Judge.load(str(tmp_path)), rows, Processes(), tmp_path)
    assert calibration is not None
    assert (set(calibration.rubrics), set(calibration.error_types)) == (
        {"hieval-ea/plain/any"},
        set(),
    )
    assert "hieval-ea/plain/any: error types stay uncalibrated" in capsys.readouterr().err
