from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from judging import JudgeRequest
from serve.queue.estimate import (
    PICTURE_TOKENS,
    WINDOW_BATCHES,
    WINDOW_TOKENS,
    request_tokens,
    text_tokens,
    window_tokens,
)
from tests.serve.made_up import FakeJudge


@pytest.mark.parametrize(("order", "critiques"), [("both", 2), ("given", 1)])
def test_a_critique_is_counted_in_every_order(order: str, critiques: int) -> None:
    pair = {"task": "truthful-pair", "question": "q", "responses": ["a", "b"], "order": order}
    critique = JudgeRequest.model_validate({**pair, "mode": "critique", "critique_tokens": 700})
    plain = JudgeRequest.model_validate(pair)
    assert request_tokens(critique) - request_tokens(plain) == critiques * 700


def test_texts_and_pictures_count() -> None:
    fields: dict[str, Any] = {"question": "q" * 400, "references": ["r" * 40], "response": "x"}
    plain = request_tokens(JudgeRequest.model_validate(fields))
    longer = JudgeRequest.model_validate({**fields, "response": "x" * 4001})
    assert request_tokens(longer) - plain == 1000
    pictures = JudgeRequest.model_validate({**fields, "images": ["a", "b"]})
    assert request_tokens(pictures) - plain == 2 * PICTURE_TOKENS
    assert text_tokens(["é" * 10, "\ud800"]) == 5


def test_a_window_suits_the_judge_with_the_largest_budget() -> None:
    small, large = FakeJudge(), FakeJudge()
    assert window_tokens([small]) == WINDOW_TOKENS
    large.engine = SimpleNamespace(posterior="exact", token_budget=1000)
    assert window_tokens([small, large]) == 1000 * WINDOW_BATCHES
