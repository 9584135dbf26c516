"""Too little memory on a GPU: smaller passes, the same results, an error for what never fits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch

from judging.errors import CustosError
from judging.models.backbones import Backbone
from judging.scoring.engine import GeneratedText, Sampling, texts_in_order
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import Encoder
from judging.scoring.tree_batch import TreeModel, label_logprobs
from judging.scoring.tree_engine import TreeEngine
from tests.cuda_stand_in import CountedCopies
from tests.judging.made_up import ask
from tests.judging.scoring.made_up import TOLERANCE, encode

WARM = Sampling(max_new_tokens=8, temperature=1.0)


def _engine(tiny: Backbone) -> TreeEngine:
    return TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id, token_budget=4096)


def _raises_where(
    monkeypatch: pytest.MonkeyPatch, method: str, is_full: Callable[..., bool]
) -> list[int]:
    """Have a method of the model run out of memory where asked; count its calls in the list."""
    run, calls = getattr(TreeModel, method), [0]

    def limited(model: TreeModel, *arguments: Any) -> Any:
        calls[0] += 1
        if is_full(*arguments):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(model, *arguments)

    monkeypatch.setattr(TreeModel, method, limited)
    return calls


def test_passes_become_smaller_and_scores_stay(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prompts = encode(tiny, [ask("nine " * (7 * i % 11 + 1), question=f"{i}?") for i in range(24)])
    tree = Encoder(tiny).tree(["Correct", "Partial", "Wrong"])
    engine = _engine(tiny)
    expected = torch.tensor(engine.score(prompts, tree))
    limit = 600
    _raises_where(monkeypatch, "forward", lambda batch, _: batch.input_ids.numel() > limit)
    with caplog.at_level(logging.WARNING):
        torch.testing.assert_close(torch.tensor(engine.score(prompts, tree)), expected, **TOLERANCE)
        assert limit / 2 <= engine.token_budget <= limit + 8 * len(prompts)
        num_lines = len(caplog.records)
        engine.score(prompts, tree)
    assert 1 <= num_lines == len(caplog.records), "it is not said again"


def test_one_failure_halves_the_passes_once(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prompts = encode(tiny, [ask(f"{i}") for i in range(6)])
    tree = Encoder(tiny).tree(["Correct", "Partial", "Wrong"])
    engine = _engine(tiny)
    expected = torch.tensor(engine.score(prompts, tree))
    calls = _raises_where(monkeypatch, "forward", lambda *_: calls[0] == 1)
    with caplog.at_level(logging.WARNING):
        found = torch.tensor(engine.score(prompts, tree))
    torch.testing.assert_close(found, expected, **TOLERANCE)
    assert len(caplog.records) == 1
    assert str(engine.token_budget) in caplog.text


def test_what_was_read_before_a_failure_is_not_read_again(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = encode(tiny, [ask(f"{i}", question=f"{i}{' why' * i}?") for i in range(12)])
    tree = Encoder(tiny).tree(["Correct", "Partial", "Wrong"])
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id, token_budget=400)
    read: list[int] = []

    def counted(logits: torch.Tensor, tree: LabelTree) -> torch.Tensor:
        read.append(len(logits))
        return label_logprobs(logits, tree)

    monkeypatch.setattr("judging.scoring.tree_engine.label_logprobs", counted)
    calls = _raises_where(monkeypatch, "forward", lambda *_: calls[0] == 3)
    assert not any(isinstance(scores, CustosError) for scores in engine.score(prompts, tree))
    assert calls[0] > 3
    assert sum(read) == len(prompts)


def test_a_prompt_that_never_fits_fails_alone(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [ask("nine " * length, question=f"{length}?") for length in (3, 400, 5, 7, 300)]
    prompts = encode(tiny, requests)
    tree = Encoder(tiny).tree(["Correct", "Partial", "Wrong"])
    expected = _engine(tiny).score(prompts, tree)
    _raises_where(monkeypatch, "forward", lambda batch, _: batch.input_ids.shape[1] > 250)
    found = _engine(tiny).score(prompts, tree)
    for index, (scores, whole) in enumerate(zip(found, expected, strict=True)):
        if index in (1, 4):
            assert isinstance(scores, CustosError)
        else:
            torch.testing.assert_close(torch.tensor(scores), torch.tensor(whole), **TOLERANCE)


def test_an_instruction_takes_the_memory_of_others_or_fails_in_words(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = encode(tiny, [ask(f"{i}") for i in range(3)])
    tree = Encoder(tiny).tree(["Correct", "Partial", "Wrong"])
    engine = _engine(tiny)
    expected = torch.tensor(engine.score(prompts, tree))
    engine._prefixes.clear()
    calls = _raises_where(monkeypatch, "prefill", lambda *_: calls[0] != 2)
    torch.testing.assert_close(torch.tensor(engine.score(prompts, tree)), expected, **TOLERANCE)
    engine._prefixes.clear()
    found = engine.score(prompts, tree)
    if not engine.model.is_recurrent:
        assert calls[0] == 4
        assert [isinstance(scores, CustosError) for scores in found] == [True] * 3


def test_nobody_is_asked_to_wait_for_what_is_unwanted(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = encode(tiny, [ask(f"{i}") for i in range(6)])
    tree = Encoder(tiny).tree(["Correct", "Partial", "Wrong"])
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id, token_budget=1)
    calls = _raises_where(monkeypatch, "forward", lambda *_: calls[0] == 1)
    found = engine.score(prompts, tree, lambda index: index in (1, 2))
    assert [isinstance(scores, CustosError) for scores in found].count(True) == 5


@pytest.mark.parametrize(("method", "skipped"), [("begin", 0), ("extend", 3)])
def test_texts_are_written_in_smaller_batches(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch, method: str, skipped: int
) -> None:
    """Each text is reported once, though it began a second time."""
    prompts = encode(tiny, [ask("nine " * i, question=f"{i}?") for i in range(6)])
    encoder, seeds = Encoder(tiny), list(range(6))
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id)

    def write() -> tuple[list[GeneratedText | CustosError], dict[int, str]]:
        pieces: dict[int, str] = {}

        def on_text(index: int, piece: str) -> None:
            pieces[index] = pieces.get(index, "") + piece

        batches = engine.generate(prompts, encoder, "</never>", seeds, WARM, on_text)
        return texts_in_order(batches), pieces

    expected = write()
    calls = _raises_where(
        monkeypatch,
        method,
        lambda batch, *_: calls[0] > skipped and len(getattr(batch, "input_ids", batch)) > 2,
    )
    assert write() == expected
    if not engine.model.is_recurrent:
        assert calls[0] > skipped, "nothing failed"


def test_a_text_that_never_fits_fails_alone(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = encode(tiny, [ask("nine " * length) for length in (3, 400, 5)])
    encoder = Encoder(tiny)
    _raises_where(monkeypatch, "begin", lambda batch, _: batch.input_ids.shape[1] > 250)
    found = texts_in_order(_engine(tiny).generate(prompts, encoder, "</never>", [0, 1, 2], WARM))
    assert [isinstance(text, CustosError) for text in found] == [False, True, False]


def test_labels_after_texts_are_read_afresh_where_memory_is_short(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, encoder = encode(tiny, [ask("nine " * i) for i in range(3)]), Encoder(tiny)
    engine = _engine(tiny)
    tree = encoder.tree(("A", "B"))
    calls = _raises_where(monkeypatch, "resume", lambda *_: True)
    for batch in engine.generate(prompts, encoder, "</never>", [0, 1, 2], WARM):
        continued = [prompts[index].extended(encoder.text("So")) for index in batch.indices]
        torch.testing.assert_close(
            torch.tensor(batch.score(continued, tree)),
            torch.tensor(engine.score(continued, tree)),
            **TOLERANCE,
        )
    if not engine.model.is_recurrent:
        assert calls == [1]


def test_scores_leave_the_device_once_for_all_passes(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = encode(tiny, [ask("nine " * (i + 1), question=f"{i}?") for i in range(9)])
    tree = Encoder(tiny).tree(["Correct", "Partial", "Wrong"])
    numbers_of_copies = []
    counted = CountedCopies(monkeypatch)
    for budget in (90, 4096):
        engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id, budget)
        engine.score(prompts[:1], tree)  # reads the instruction
        calls = _raises_where(monkeypatch, "forward", lambda *_: False)
        counted.sizes.clear()
        engine.score(prompts, tree)
        numbers_of_copies.append((calls[0] > 1, counted.sizes[:]))
    copied = len(prompts) * len(tree.labels)
    assert numbers_of_copies == [(True, [copied]), (False, [copied])]
