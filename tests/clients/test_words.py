from __future__ import annotations

import math

import pytest

from clients.chat import ChatToken, TokenLogprob
from clients.remote_judge import label_masses, tokens_after


def token(text: str, p: float, **others: float) -> ChatToken:
    near = {text: p, **others}.items()
    alternatives = [TokenLogprob(token=name, logprob=math.log(value)) for name, value in near]
    return ChatToken(token=text, logprob=math.log(p), top_logprobs=alternatives)


def test_label_masses_by_hand() -> None:
    labels = ("Wrong; Reasoning", "Wrong; Other", "Correct")
    said = [
        token("**", 0.9, Correct=0.05),
        token("Wrong", 0.8, Correctly=0.1, C=0.1),
        token("; ", 1.0),
        token("Other", 0.6, Reason=0.3, None_=0.1),
        token("**", 1.0),
    ]
    assert label_masses(said, labels) == pytest.approx(
        [0.9 * 0.8 * 0.3, 0.9 * 0.8 * 0.6, 0.05 + 0.9 * 0.1]
    )
    assert label_masses([token("Any", 1.0)], ("A", "B")) == [0, 0]
    assert label_masses([token(" ", 1.0)], ("A", "B")) == [0, 0]
    assert label_masses([token("Wrong", 0.5)], labels) == [0.25, 0.25, 0]
    tagged = [token("<label", 1.0), token(">", 1.0), token("B", 0.7, A=0.2)]
    assert label_masses(tokens_after(tagged, "<label>"), ("A", "B")) == pytest.approx([0.2, 0.7])
    assert tokens_after(tagged, "<other>") == tagged
