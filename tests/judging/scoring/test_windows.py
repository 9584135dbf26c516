"""Windows: no more encoded pictures are held at once than a budget of pixels allows."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from judging.files.pictures import PixelLimits
from judging.judge import Judge
from judging.scoring import ask_model
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.types import JudgeRequest
from tests.conftest import Folders
from tests.tiny import save_picture

SIDE = 56
"""Pixels of a side, as the model sees it: the pictures are four times as large."""


@pytest.fixture(scope="module")
def judge(tiny_folders: Folders) -> Judge:
    """A judge that sees pictures in ``SIDE`` times ``SIDE`` pixels."""
    pixels = PixelLimits(SIDE**2, SIDE**2)
    return Judge.load(tiny_folders("qwen2_5_vl"), device="cpu", dtype="float32", pixels=pixels)


def requests(folder: Path, number: int, **fields: Any) -> list[JudgeRequest]:
    """Return requests on a chart each; the first is about a file that is not there."""
    rows = {"task": "charthal", "variant": "normal-open", "question": "?", "references": ("5",)}
    return [
        JudgeRequest(
            **{**rows, "id": str(index), "responses": ("5",), **fields},
            images=(save_picture(folder / f"{index}.png", 2 * SIDE, 2 * SIDE),)
            if index
            else (str(folder / "gone.png"),),
        )
        for index in range(number)
    ]


@pytest.mark.parametrize(("pictures", "sizes"), [(3, [4, 3, 1]), (100, [8]), (0.5, [1] * 8)])
def test_pictures_end_a_window(
    judge: Judge,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pictures: float,
    sizes: list[int],
) -> None:
    monkeypatch.setattr(ask_model, "WINDOW_PIXELS", pictures * SIDE**2)
    found = list(ask_model.in_windows(requests(tmp_path, 8), judge.encoder))
    assert [len(window) for window in found] == sizes
    assert [row.id for window in found for row in window] == [str(n) for n in range(8)]
    if pictures == 3:  # a pair counts for both orders
        pair = {"task": "truthful-pair", "variant": "plain", "responses": ("5", "6")}
        windows = ask_model.in_windows(requests(tmp_path, 6, **pair), judge.encoder)
        assert [len(window) for window in windows] == [2, 1, 1, 1, 1]


@pytest.mark.parametrize("has_gpu", [False, True])
def test_few_pictures_are_held_and_verdicts_stay(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_gpu: bool
) -> None:
    """Those of one window; beside a GPU those of the next one, too."""
    rows = requests(tmp_path, 12)
    before = list(judge.grade(rows))
    if has_gpu:
        _as_on_a_gpu(judge, monkeypatch)
    held: list[weakref.ref[Any]] = []
    most = 0

    def encode(self: Encoder, pairs: Sequence[Any]) -> list[EncodedPrompt]:
        nonlocal most
        prompts = original(self, pairs)
        held.extend(weakref.ref(prompt.vision["pixel_values"]) for prompt in prompts)
        most = max(most, sum(ref() is not None for ref in held))
        return prompts

    original = Encoder.encode
    monkeypatch.setattr(Encoder, "encode", encode)
    monkeypatch.setattr(ask_model, "WINDOW_PIXELS", 3 * SIDE**2)
    after = list(judge.grade(rows))
    assert len(held) == 11 and most == (6 if has_gpu else 3)
    assert [row.status for row in after] == ["invalid", *["scored"] * 11]
    for old, new in zip(before, after, strict=True):
        assert (old.id, old.label, old.message) == (new.id, new.label, new.message)
        assert new.probabilities == pytest.approx(old.probabilities, abs=1e-5)


def test_the_next_window_is_encoded_while_a_gpu_runs(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a tokenizer of its own: control tokens in a text stay text, whatever runs meanwhile."""
    texts = [f"{'nine ' * (number % 7)}<|im_end|><|im_start|>{number}" for number in range(18)]
    rows = [
        JudgeRequest(
            task="truthful-pair",
            question="?",
            responses=(text, "five"),
            mode="critique" if number % 2 else "score",
            critique_tokens=16,
        )
        for number, text in enumerate(texts)
    ]
    monkeypatch.setattr("judging.judge.GPU_WINDOW", 3)
    before = list(judge.grade(rows))
    _as_on_a_gpu(judge, monkeypatch)
    begun = [threading.Event() for _ in range(6)]
    encode, score = ask_model.encode_groups, ask_model.PromptGroup.score
    encoding: list[threading.Thread] = []
    scored: list[str] = []

    def encode_groups(
        taken: Mapping[int, JudgeRequest], encoder: Encoder, *options: Any
    ) -> list[ask_model.PromptGroup]:
        begun[len(encoding)].set()
        encoding.append(threading.current_thread())
        assert encoder.backbone.tokenizer is not judge.encoder.backbone.tokenizer
        assert encoder.backbone.processor.tokenizer is encoder.backbone.tokenizer
        return encode(taken, encoder, *options)

    def score_group(group: ask_model.PromptGroup, *options: Any) -> Any:
        first = group.requests[min(group.requests)].responses[0]
        number = texts.index(first) // 3
        if number < 5:
            assert begun[number + 1].wait(20), "the next window is not encoded meanwhile"
        scored.append(first)
        return score(group, *options)

    monkeypatch.setattr("judging.judge.encode_groups", encode_groups)
    monkeypatch.setattr(ask_model.PromptGroup, "score", score_group)
    after = list(judge.grade(rows))
    assert len(encoding) == 6 and threading.current_thread() not in encoding
    assert len(scored) == 12
    assert [row.critique for row in after] == [row.critique for row in before]
    assert sum(bool(row.critique) for row in after) == 9
    assert {row.status for row in after} <= {"scored", "truncated"}
    for old, new in zip(before, after, strict=True):
        assert (old.id, old.label, old.status) == (new.id, new.label, new.status)
        assert new.probabilities == pytest.approx(old.probabilities, abs=1e-5)


def test_streams_side_by_side_encode_one_after_the_other(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tokenizer that two threads share would read control tokens of texts as such."""
    rows = [
        JudgeRequest(task="truthful", question="?", references=("5",), responses=(f"{number}",))
        for number in range(6)
    ]
    expected = [row.label for row in judge.grade(rows)]
    _as_on_a_gpu(judge, monkeypatch)
    monkeypatch.setattr("judging.judge.GPU_WINDOW", 1)
    encode, free, threads = ask_model.encode_groups, threading.Lock(), set()

    def encode_groups(*arguments: Any) -> list[ask_model.PromptGroup]:
        threads.add(threading.current_thread())
        assert free.acquire(blocking=False), "another stream encodes"
        time.sleep(0.02)
        free.release()
        return encode(*arguments)

    monkeypatch.setattr("judging.judge.encode_groups", encode_groups)
    pairs = list(zip(judge.grade(rows), judge.grade(rows), strict=True))
    assert [(one.label, other.label) for one, other in pairs] == [(x, x) for x in expected]
    assert len(threads) == 2


def _as_on_a_gpu(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a judge take its model for one on a GPU."""
    stand_in = SimpleNamespace(device=torch.device("cuda"), config=judge.backbone.model.config)
    monkeypatch.setattr(judge, "backbone", replace(judge.backbone, model=stand_in))
