"""The engine on a server keeps the contract of engines, and gives what the tree engine gives."""

from __future__ import annotations

import numpy as np
import pytest

from clients.connection import RequestRefused
from clients.remote_judge import remote_judge
from judging.errors import CustosError
from judging.judge import Judge
from judging.models.backbones import Backbone
from judging.scoring.engine import UNWANTED, Engine, GeneratedText, texts_in_order
from judging.scoring.prompts import EncodedPrompt
from judging.tasks import get_task
from tests.clients.fake_server import RESET, FakeServer, Say
from tests.clients.made_up import SHORT, pair, server
from tests.clients.remote.vllm_replies import VllmReplies

LABELS = ("A", "B")


@pytest.fixture
def there(fake: FakeServer, backbone: Backbone) -> Judge:
    fake.answer = VllmReplies(backbone)
    return remote_judge(server(fake), backbone.name)


@pytest.fixture
def prompts(here: Judge) -> list[EncodedPrompt]:
    """Three prompts; the second is the longest."""
    task = get_task("truthful-pair")
    requests = [pair(), pair(question="Is it green, as they say?"), pair(question="Is it?")]
    return here.encoder.encode([(task, request) for request in requests])


def is_close(found: object, expected: object) -> bool:
    return bool(np.array(found) == pytest.approx(np.array(expected), abs=1e-3))


def test_a_server_that_is_down_is_one_error(
    fake: FakeServer, there: Judge, prompts: list[EncodedPrompt]
) -> None:
    fake.answer = lambda seen: Say(400, "no")  # it refuses, and is not down
    scores = there.engine.score(prompts, there.encoder.tree(LABELS))
    assert [type(one) for one in scores] == [RequestRefused] * 3
    fake.answer = lambda seen: RESET
    with pytest.raises(CustosError, match="2 tries"):
        there.engine.score(prompts, there.encoder.tree(LABELS))
    with pytest.raises(CustosError, match="2 tries"):
        list(there.engine.generate(prompts, there.encoder, "</critique>", [0, 1, 2], SHORT))


def test_prompts_that_nobody_waits_for_are_not_sent_and_are_no_fault_of_the_server(
    fake: FakeServer, there: Judge, prompts: list[EncodedPrompt]
) -> None:
    tree = there.encoder.tree(LABELS)
    num_sent = len(fake.seen)
    assert there.engine.score(prompts, tree, lambda index: False) == [UNWANTED] * 3
    assert len(fake.seen) == num_sent
    first, *others = there.engine.score(prompts, tree, lambda index: index == 0)
    assert others == [UNWANTED] * 2 and is_close(first, there.engine.score(prompts, tree)[0])
    fake.answer = lambda seen: RESET
    with pytest.raises(CustosError, match="2 tries"):
        there.engine.score(prompts, tree, lambda index: index == 2)


def test_batches_score_what_continues_them(
    there: Judge, here: Judge, prompts: list[EncodedPrompt]
) -> None:
    engine: Engine = there.engine
    encoder, tree = here.encoder, here.encoder.tree(LABELS)
    scored: list[int] = []
    for batch in engine.generate(prompts, encoder, "</critique>", [0, 1, 2], SHORT):
        continued = [
            prompts[index].extended([*encoder.data(text.text), *encoder.text("</critique>")])
            for index, text in zip(batch.indices, batch.texts, strict=True)
            if isinstance(text, GeneratedText)
        ]
        assert is_close(batch.score(continued, tree), here.engine.score(continued, tree))
        scored += batch.indices
    assert sorted(scored) == [0, 1, 2]


def test_texts_are_those_of_the_tree_engine(there: Judge, here: Judge, picture: str) -> None:
    task = get_task("truthful-pair")
    for images in ((), (picture,)):
        prompts = there.encoder.encode([(task, pair(images=images))])
        opened = [one.extended(there.encoder.text("<critique>")) for one in prompts]
        given = (opened, there.encoder, "</critique>", [0], SHORT)
        [found] = texts_in_order(there.engine.generate(*given))
        [expected] = texts_in_order(here.engine.generate(*given))
        assert isinstance(found, GeneratedText) and isinstance(expected, GeneratedText)
        assert (found.text, found.finished) == (expected.text, expected.finished)
        assert len(found.tokens) == SHORT.max_new_tokens


def test_a_listener_may_ask_for_scores_while_texts_are_reported(there: Judge, here: Judge) -> None:
    given = there.encoder.encode([(get_task("truthful-pair"), pair())] * 2)
    tree = there.encoder.tree(LABELS)
    heard = []
    batches = there.engine.generate(
        *(given, there.encoder, "</critique>", [0, 1], SHORT),
        on_text=lambda row, text: heard.append((row, text, there.engine.score(given, tree))),
    )
    texts = [text for text in texts_in_order(batches) if isinstance(text, GeneratedText)]
    assert [(row, text) for row, text, _ in heard] == [(0, texts[0].text), (1, texts[1].text)]
    expected = here.engine.score(given, tree)
    assert all(is_close(scores, expected) for _, _, scores in heard)
