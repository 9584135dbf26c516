from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.cost.dtype_speed import computing_in, main
from judging.errors import CustosError
from judging.files.records import read_records
from judging.judge import Judge
from judging.models.attention import VARLEN, describe_attention
from judging.scoring.tree_engine import TreeEngine
from judging.types import LabelledExample
from tests.conftest import Folders


def test_both_ways_are_timed_and_compared(
    tiny_folders: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "id": str(a),
            "question": f"What is {a} plus {a}?",
            "references": [str(2 * a)],
            "reference_mode": "any",
            "responses": [f"The sum is {2 * a + a % 2}."],
            "label": "Correct",
        }
        for a in range(70)
    ]
    data, out = tmp_path / "rows.jsonl", tmp_path / "cost.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    judge = tiny_folders("qwen2_5_vl")
    main(["--judge", judge, "--data", str(data), "--rows", "66", "--out", str(out)])
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found == json.loads(capsys.readouterr().out)
    assert found["n"] == 66
    seconds = found["seconds"]
    assert found["bfloat16_over_float32"] == pytest.approx(seconds["bfloat16"] / seconds["float32"])

    requests = [row.request() for _, row in read_records(data, LabelledExample)][:66]
    exact = Judge.load(judge, dtype="float32", device="cpu")
    rounded = Judge.load(judge, dtype="bfloat16", device="cpu")
    assert any(
        one.probabilities != other.probabilities
        for one, other in zip(exact.grade(requests), rounded.grade(requests), strict=True)
    )
    # Random weights give flat posteriors, which arithmetic in bfloat16 moves by its rounding.
    assert 0 < found["probability_gap"]["mean"] <= found["probability_gap"]["largest"] < 0.1
    share = found["same_label"]
    assert 0.5 < share["value"] <= 1
    assert share["low"] < share["value"] <= share["high"]


def test_a_missing_judge_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(CustosError, match="judge 'nowhere'"):
        main(["--judge", "nowhere", "--data", str(tmp_path / "rows.jsonl")])


def test_the_other_way_has_the_attention_of_its_numbers(tiny_folders: Folders) -> None:
    """The flash kernel that a GPU's judge reads pictures with takes no float32."""
    judge = Judge.load(tiny_folders("qwen2_5_vl"), device="cpu")
    usual = describe_attention(judge.backbone.model)
    judge.backbone.model.set_attn_implementation({"vision_config": VARLEN})
    engine = computing_in(judge, "float32").engine
    assert isinstance(engine, TreeEngine)
    assert describe_attention(engine.model.backbone) == usual
    assert VARLEN in describe_attention(judge.backbone.model)
