from __future__ import annotations

import pytest

from judging import JudgeRequest
from serve.requests.checks import estimated_tokens


@pytest.mark.parametrize(("order", "critiques"), [("both", 2), ("given", 1)])
def test_a_critique_is_counted_in_every_order(order: str, critiques: int) -> None:
    pair = {"task": "truthful-pair", "question": "q", "responses": ["a", "b"], "order": order}
    drawn = JudgeRequest.model_validate({**pair, "mode": "critique", "critique_tokens": 700})
    plain = JudgeRequest.model_validate(pair)
    assert estimated_tokens(drawn) - estimated_tokens(plain) == critiques * 700
