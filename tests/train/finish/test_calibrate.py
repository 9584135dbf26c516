from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from cli.main import app
from judging.files.records import write_records
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from judging.scoring import ask_model
from judging.verdicts.calibration import HeldOutVerdicts
from serve.app import create_app
from serve.queue.service import Service
from tests.tiny import save_picture
from tests.train.made_up import example
from train.finish.grading import KeptGrades, Processes, calibrate


def test_a_calibration_split_with_pictures_is_read_some_at_a_time(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = save_picture(tmp_path / "a.png", 60, 60)
    judge = Judge.load(small, device="cpu", dtype="float32")
    rows = [example(i, images=(picture,) if i == 4 else ()) for i in range(7)]
    expected = judge.logprobs(rows)
    sizes: list[int] = []
    score = judge.engine.score

    def count(prompts: Any, tree: Any, **options: Any) -> Any:
        sizes.append(len(prompts))
        return score(prompts, tree, **options)

    monkeypatch.setattr(judge.engine, "score", count)
    monkeypatch.setattr(ask_model, "WINDOW", 3)
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
    calibration = calibrate(Judge.load(str(tmp_path)), rows, KeptGrades(tmp_path, Processes()))
    assert calibration is not None
    assert (set(calibration.rubrics), set(calibration.error_types)) == (
        {"hieval-ea/plain/any"},
        set(),
    )
    assert "hieval-ea/plain/any: error types stay uncalibrated" in capsys.readouterr().err


def test_a_stated_risk_decides_what_needs_review(small: str, tmp_path: Path) -> None:
    backbone = load_backbone(small, dtype="float32", device="cpu")
    add_adapter(backbone.model, r=2, alpha=2).save_pretrained(str(tmp_path))
    card = JudgeCard.for_rubrics(backbone, {"hieval-qs": ("plain/any",)}, response_budget=50)
    (tmp_path / "judge.json").write_text(card.model_dump_json(), encoding="utf-8")
    judge = Judge.load(str(tmp_path))
    key, stated = "hieval-qs/plain/any", example(1).request().model_copy(update={"risk": 0.1})
    [refused] = judge.grade([stated])
    assert (refused.status, refused.label) == ("invalid", None)
    assert "'custos calibrate RUN --data FILE'" in str(refused.message)

    rows = tmp_path / "cal.jsonl"
    write_records(rows, [example(i) for i in range(40)])
    result = CliRunner().invoke(
        app, ["calibrate", str(tmp_path), "--data", str(rows)], catch_exceptions=False
    )
    assert f"{key}: 40 rows, 4 questions;" in result.stdout
    judge.calibration = Judge.load(str(tmp_path)).calibration
    assert judge.calibration is not None
    assert len(judge.calibration.held_out[key].confidence) == 4, "one row of each question"

    [plain] = judge.grade([example(1).request()])
    assert not plain.needs_review
    [unknown] = judge.grade([stated])
    assert unknown.needs_review, "four questions show no level"
    assert unknown.label == plain.label
    for held_out, needs_review in (([0.2] * 60, False), ([0.9999] * 60 + [0.98] * 60, True)):
        right = tuple(confidence != 0.98 for confidence in held_out)
        verdicts = HeldOutVerdicts(confidence=tuple(held_out), right=right)
        judge.calibration = judge.calibration.model_copy(update={"held_out": {key: verdicts}})
        with TestClient(create_app(Service({"tiny": judge}))) as client:
            answer = client.post("/judge", json=stated.model_dump(mode="json", exclude_unset=True))
        assert answer.json()["needs_review"] == needs_review, answer.text
