"""Option log-probabilities through the tree against a plain forward pass of the library."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.responses import build_questions
from benchmarks.truthfulvqa.option_logits import option_logits
from cli.main import app
from judging.files.pictures import read_image
from judging.models.backbones import load_backbone
from tests.conftest import Folders
from tests.tiny import save_picture


def _items(folder: Path) -> list[dict[str, Any]]:
    picture = save_picture(folder / "a.png", 84, 56)
    return [
        {
            "question_id": f"q{level}",
            "set_id": "s1",
            "level": level,
            "question": "Which river" + " runs" * level + "?",
            "options": ["green", "brown", "red", "blue"][: 4 if level < 3 else 3],
            "answer": "(B)",
            "images": [picture] if level == 2 else [],
        }
        for level in (1, 2, 3)
    ]


@pytest.fixture
def in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = partial(load_backbone, dtype="float32", device="cpu")
    monkeypatch.setattr("judging.models.backbones.load_backbone", exact)


def test_log_probabilities_are_the_librarys(
    tiny_folder: str, tmp_path: Path, in_float32: None
) -> None:
    truthfulvqa, rows = get_benchmark("truthfulvqa"), _items(tmp_path)
    asked = build_questions(truthfulvqa, rows, "standard")
    told: list[int] = []
    found, problems = option_logits(truthfulvqa, rows, asked, tiny_folder, told.append)
    assert problems == {}
    assert told[-1] == 3
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    by_id = {one["case"]["id"]: one for one in found}
    for row, question in zip(rows, asked, strict=True):
        [message] = question.chat.messages
        content: list[dict[str, Any]] = [
            {"type": "image", "image": read_image(name)} for name in message.images
        ]
        encoded = backbone.processor.apply_chat_template(
            [{"role": "user", "content": [*content, {"type": "text", "text": message.text}]}],
            tokenize=True,
            return_dict=True,
            add_generation_prompt=True,
            return_tensors="pt",
        )
        opened = backbone.tokenizer.encode("(", add_special_tokens=False)
        for key, more in (("input_ids", opened), ("attention_mask", [1] * len(opened))):
            encoded[key] = torch.cat([encoded[key], torch.tensor([more])], dim=1)
        if "mm_token_type_ids" in encoded:
            types = torch.zeros(1, len(opened), dtype=encoded["mm_token_type_ids"].dtype)
            encoded["mm_token_type_ids"] = torch.cat([encoded["mm_token_type_ids"], types], dim=1)
        with torch.inference_mode():
            expected = backbone.model(**encoded).logits[0, -1].log_softmax(-1)
        given = by_id[row["question_id"]]["result"]["option_logits"]
        assert list(given) == list("ABCD")[: len(row["options"])]
        for letter, value in given.items():
            [token] = backbone.tokenizer.encode(letter, add_special_tokens=False)
            assert value == pytest.approx(float(expected[token]), abs=2e-4)


def test_bad_items_are_named_and_the_others_measured(
    tiny_folders: Folders, tmp_path: Path, in_float32: None
) -> None:
    truthfulvqa, rows = get_benchmark("truthfulvqa"), _items(tmp_path)
    asked = build_questions(truthfulvqa, rows, "standard")
    rows[0]["answer"] = "none of these"
    (tmp_path / "a.png").write_bytes(b"no picture")
    found, problems = option_logits(truthfulvqa, rows, asked, tiny_folders("qwen3_vl"))
    assert [one["case"]["id"] for one in found] == ["q3"]
    assert "letter of the right one" in problems[1]
    assert "not a readable picture" in problems[2]


def test_the_command_writes_what_lal_reads(tiny_folders: Folders, tmp_path: Path) -> None:
    items, out = tmp_path / "items.json", tmp_path / "out.json"
    rows = [{k: v for k, v in row.items() if k != "images"} for row in _items(tmp_path)]
    items.write_text(json.dumps(rows), encoding="utf-8")
    command = ["bench", "respond", "truthfulvqa", "--items", str(items), "--out", str(out)]
    command += ["--option-logits", "--max-tokens", "2"]
    refused = CliRunner().invoke(app, [*command, "--base-url", "http://x/v1", "--model", "m"])
    assert refused.exit_code == 2
    assert "--option-logits: needs a local model" in refused.output
    done = CliRunner().invoke(app, [*command, "--backbone", tiny_folders("qwen2_5_vl")])
    assert done.exit_code == 0, done.output
    logits = tmp_path / "out.json.logits.json"
    lal = CliRunner().invoke(app, ["bench", "lal", "--results", str(logits)])
    assert lal.exit_code == 0, lal.output
    assert "1 sets, 1 with all three levels" in lal.output
