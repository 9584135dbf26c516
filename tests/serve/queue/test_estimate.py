from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from judging import JudgeRequest
from judging.models.backbones import load_backbone
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from serve.queue.estimate import (
    WINDOW_BATCHES,
    WINDOW_TOKENS,
    request_tokens,
    text_tokens,
    window_tokens,
)
from tests.conftest import HubFolders
from tests.serve.made_up import FakeJudge
from tests.tiny import save_picture

FIELDS: dict[str, Any] = {"question": "q" * 400, "references": ["r" * 40], "response": "x"}


@pytest.mark.parametrize(("order", "critiques"), [("both", 2), ("given", 1)])
def test_a_critique_is_counted_in_every_order(order: str, critiques: int) -> None:
    pair = {"task": "truthful-pair", "question": "q", "responses": ["a", "b"], "order": order}
    critique = JudgeRequest.model_validate({**pair, "mode": "critique", "critique_tokens": 700})
    plain = JudgeRequest.model_validate(pair)
    judge = FakeJudge()
    assert request_tokens(critique, judge) - request_tokens(plain, judge) == critiques * 700


def test_texts_count() -> None:
    assert _tokens(FakeJudge(), response="x" * 4001) - _tokens(FakeJudge()) == 1000
    assert text_tokens(["é" * 10, "\ud800"]) == 5


def test_what_stands_between_the_items_of_a_list_counts() -> None:
    judge = FakeJudge()
    texts = [_tokens(judge, references=[""] * number) for number in (1, 100)]
    assert texts[1] - texts[0] >= 100 // 4


def test_a_picture_counts_as_the_judge_sees_it(hub_folders: HubFolders, tmp_path: Path) -> None:
    """A large picture is scaled down to the judge's limit, a small one up to it."""
    backbone = load_backbone(hub_folders("Qwen3-VL-4B-Instruct"), weights=False)
    judge = FakeJudge()
    judge.backbone = backbone.with_pixels(max_pixels=200_000)
    pictures = [
        save_picture(tmp_path / "large.png", 1200, 900),
        save_picture(tmp_path / "small.png", 64, 64),
    ]
    before = _tokens(judge)
    for images in ([pictures[0]], [pictures[1]], pictures):
        request = JudgeRequest.model_validate({**FIELDS, "images": images})
        [prompt] = Encoder(judge.backbone, shows_all_pictures=True).encode(
            [(get_task(request.task), request)]
        )
        seen = sum(t * h * w // 4 for t, h, w in prompt.vision["image_grid_thw"].tolist())
        assert _tokens(judge, images=images) - before == seen


def test_a_picture_that_the_judge_refuses_counts_nothing() -> None:
    judge = FakeJudge()
    assert _tokens(judge, images=["data:image/png;base64,AAAA"]) == _tokens(judge)


def _tokens(judge: FakeJudge, **fields: Any) -> int:
    return request_tokens(JudgeRequest.model_validate({**FIELDS, **fields}), judge)


def test_a_window_suits_the_judge_with_the_largest_budget() -> None:
    small, large = FakeJudge(), FakeJudge()
    assert window_tokens([small]) == WINDOW_TOKENS
    large.engine = SimpleNamespace(posterior="exact", token_budget=1000)
    assert window_tokens([small, large]) == 1000 * WINDOW_BATCHES
