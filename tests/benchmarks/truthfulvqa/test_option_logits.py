"""Option logits where a model names its option, against a plain forward pass of the library."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from benchmarks.framework import responses
from benchmarks.framework.base import get_benchmark
from benchmarks.framework.responses import build_questions
from benchmarks.truthfulvqa.logits import measure_lal, option_logits
from cli.main import app
from clients.chat import Reply
from clients.jobs import JobResult
from judging.files.pictures import read_image
from judging.models.backbones import load_backbone
from judging.scoring.prompts import Encoder
from tests.conftest import Folders
from tests.tiny import save_picture

REPLY_TEXTS = {
    "q1": "The river is green in spring (A), and yet it is the brown one: ",
    "q2": "<think>(C)? Neither shows it.</think>\nThe answer is ",
    "q3": "",
}
"""What a model wrote before the letter of its option."""


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


def _replies(**changed: Reply) -> dict[str, Reply]:
    """Answers that reason, and then name option B as ``(B)``."""
    return {name: Reply(text=f"{said}(B).") for name, said in REPLY_TEXTS.items()} | changed


@pytest.fixture
def in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = partial(load_backbone, dtype="float32", device="cpu")
    monkeypatch.setattr("judging.models.backbones.load_backbone", exact)


def test_logits_are_the_librarys_after_the_models_own_words(
    tiny_folder: str, tmp_path: Path, in_float32: None
) -> None:
    truthfulvqa, rows = get_benchmark("truthfulvqa"), _items(tmp_path)
    asked = build_questions(truthfulvqa, rows, "standard")
    told: list[int] = []
    results, problems = option_logits(
        truthfulvqa, rows, asked, _replies(), tiny_folder, told.append
    )
    assert problems == {}
    assert told[-1] == 3
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    by_id = {one["case"]["id"]: one for one in results}
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
        before = REPLY_TEXTS[row["question_id"]] + "("
        opened = backbone.tokenizer.encode(before, add_special_tokens=False)
        for key, more in (("input_ids", opened), ("attention_mask", [1] * len(opened))):
            encoded[key] = torch.cat([encoded[key], torch.tensor([more])], dim=1)
        if "mm_token_type_ids" in encoded:
            types = torch.zeros(1, len(opened), dtype=encoded["mm_token_type_ids"].dtype)
            encoded["mm_token_type_ids"] = torch.cat([encoded["mm_token_type_ids"], types], dim=1)
        with torch.inference_mode():
            expected = backbone.model(**encoded).logits[0, -1]
        given = by_id[row["question_id"]]["result"]["option_logits"]
        assert list(given) == list("ABCD")[: len(row["options"])]
        for letter, value in given.items():
            [token] = backbone.tokenizer.encode(letter, add_special_tokens=False)
            assert value == pytest.approx(float(expected[token]), abs=2e-4)


def test_the_two_parts_of_lal_are_those_of_logits(
    tiny_folders: Folders, tmp_path: Path, in_float32: None
) -> None:
    """A constant added to all logits of one level moves both parts, as no probability would."""
    truthfulvqa, rows = get_benchmark("truthfulvqa"), _items(tmp_path)
    asked = build_questions(truthfulvqa, rows, "standard")
    results, _ = option_logits(truthfulvqa, rows, asked, _replies(), tiny_folders("qwen3_vl"))
    logits = {one["case"]["level"]: one["result"]["option_logits"] for one in results}
    mean = measure_lal(results)["mean"]
    fall = logits[1]["B"] - logits[2]["B"]
    assert mean["correct_degradation_1_to_2"] == pytest.approx(fall)
    others = [max(v for k, v in logits[level].items() if k != "B") for level in (1, 2)]
    assert mean["incorrect_amplification_1_to_2"] == pytest.approx(others[1] - others[0])


def test_the_letters_are_tokens_in_the_form_that_the_model_uses(
    tmp_path: Path, in_float32: None
) -> None:
    """After ``is`` the embedded tokenizer writes `` B``, which is another token than ``B``."""
    truthfulvqa, rows = get_benchmark("truthfulvqa"), _items(tmp_path)[:1]
    asked = build_questions(truthfulvqa, rows, "standard")
    replies = {"q1": Reply(text="The answer is B")}
    [result], problems = option_logits(truthfulvqa, rows, asked, replies, "embedded")
    assert problems == {}
    backbone = load_backbone("embedded", dtype="float32", device="cpu")
    [message] = asked[0].chat.messages
    [prompt] = [Encoder(backbone).encode_question(message.text)]
    tokenizer = backbone.tokenizer
    ids = [*prompt.suffix_ids, *tokenizer.encode("The answer is", add_special_tokens=False)]
    with torch.inference_mode():
        expected = backbone.model(input_ids=torch.tensor([ids])).logits[0, -1]
    letters = [tokenizer.encode(f" {letter}", add_special_tokens=False) for letter in "ABCD"]
    assert [len(tokens) for tokens in letters] == [1, 1, 1, 1]
    given = list(result["result"]["option_logits"].values())
    assert given == pytest.approx([float(expected[token]) for [token] in letters], abs=2e-4)


def test_what_cannot_be_read_is_named_and_the_rest_measured(
    tiny_folders: Folders, tmp_path: Path, in_float32: None
) -> None:
    truthfulvqa, rows = get_benchmark("truthfulvqa"), _items(tmp_path)
    asked = build_questions(truthfulvqa, rows, "standard")
    rows[0]["answer"] = "none of these"
    (tmp_path / "a.png").write_bytes(b"no picture")
    backbone = tiny_folders("qwen3_vl")
    results, problems = option_logits(truthfulvqa, rows, asked, _replies(), backbone)
    assert [one["case"]["id"] for one in results] == ["q3"]
    assert "letter of the right one" in problems[1]
    assert "not a readable picture" in problems[2]
    cut = Reply(text="(B", finish_reason="length")
    for reply, message in ((Reply(text="No."), "names an option"), (cut, "whole answer")):
        results, problems = option_logits(truthfulvqa, rows, asked, _replies(q3=reply), backbone)
        assert (results, message in problems[3]) == ([], True)


def test_the_command_writes_what_lal_reads(
    tiny_folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items, out = tmp_path / "items.json", tmp_path / "out.json"
    rows = [{k: v for k, v in row.items() if k != "images"} for row in _items(tmp_path)]
    items.write_text(json.dumps(rows), encoding="utf-8")
    command = ["bench", "respond", "truthfulvqa", "--items", str(items), "--out", str(out)]
    command += ["--option-logits"]
    refused = CliRunner().invoke(app, [*command, "--base-url", "http://x/v1", "--model", "m"])
    assert refused.exit_code == 2
    assert "--option-logits: needs a local model" in refused.output
    local = [*command, "--backbone", tiny_folders("qwen2_5_vl")]
    unread = CliRunner().invoke(app, [*local, "--max-tokens", "2"])
    assert unread.exit_code == 1
    assert "option logits need the model's whole answer" in unread.output
    answered = JobResult(replies=_replies(), rejects=[], num_reused=0)
    monkeypatch.setattr(responses, "ask_backbone", lambda *args, **options: answered)
    done = CliRunner().invoke(app, local)
    assert done.exit_code == 0, done.output
    logits = tmp_path / "out.json.logits.json"
    lal = CliRunner().invoke(app, ["bench", "lal", "--results", str(logits)])
    assert lal.exit_code == 0, lal.output
    assert "1 sets, 1 with all three levels" in lal.output
