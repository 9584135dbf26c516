"""The engine gives what plain passes give, whatever it batches, shares or remembers."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from judging.errors import CustosError
from judging.models.backbones import Backbone, load_backbone
from judging.scoring import tree_engine
from judging.scoring.engine import GeneratedText, Sampling, texts_in_order
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import pack
from judging.scoring.prompts import Encoder
from judging.scoring.tree_batch import TreeBatch, TreeModel, label_logprobs
from judging.scoring.tree_engine import TreeEngine, run_on_cores
from tests.cuda_stand_in import CountedCopies
from tests.hub import save_hub_layout
from tests.judging.made_up import ask
from tests.judging.scoring.made_up import (
    GRADES,
    TOLERANCE,
    encode,
    engine_of,
    finished_texts,
    mixed_requests,
    prompts_with_pictures,
    same_question,
    score_one_pass,
    varied_tree,
)

GREEDY = Sampling(max_new_tokens=9, temperature=0.0)


def _assert_scores_match(found: Sequence[object], expected: Any) -> None:
    torch.testing.assert_close(torch.tensor(found), torch.as_tensor(expected), **TOLERANCE)


@pytest.mark.parametrize("token_budget", [1, 90, 4096])
def test_the_engine_returns_the_order_given_whatever_rows_it_shares(
    tiny: Backbone, pictures: list[str], token_budget: int
) -> None:
    prompts = encode(tiny, [*same_question(pictures), *mixed_requests(pictures)])
    tree = varied_tree(tiny)
    planned = pack(prompts, len(tree.node_tokens), token_budget)
    assert sum(map(len, planned)) < len(prompts) or token_budget < 4096, "nothing was shared"
    found = torch.tensor(engine_of(tiny, token_budget).score(prompts, tree))
    expected = torch.stack([score_one_pass(tiny, [prompt], [tree])[0] for prompt in prompts])
    torch.testing.assert_close(found, expected, **TOLERANCE)
    unlike = expected[[0, 1, 2, 4, *range(5, len(prompts))]]  # two responses are equal
    apart = torch.cdist(unlike, unlike).fill_diagonal_(1)
    assert apart.min() > 1e-2, "rows must differ, or an exchange would not show"


def test_passes_between_the_layers_of_a_pass_change_nothing(
    tiny: Backbone, pictures: list[str]
) -> None:
    prompts, tree = encode(tiny, mixed_requests(pictures)), varied_tree(tiny)
    others = encode(tiny, same_question(pictures))
    engine = engine_of(tiny, 90)
    expected = [torch.tensor(engine.score(each, tree)) for each in (prompts, others)]
    found: list[torch.Tensor] = []
    depth = 0

    def score_others() -> None:
        nonlocal depth
        if depth < 2 and len(found) < 40:
            depth += 1
            found.append(torch.tensor(engine.score(others, tree)))
            depth -= 1

    engine.call_between_layers(score_others)
    _assert_scores_match(engine.score(prompts, tree), expected[0])
    assert len(found) >= 40
    for each in found:
        torch.testing.assert_close(each, expected[1], **TOLERANCE)
    engine.call_between_layers(found.clear)  # in place of the other
    engine.score(prompts, tree)
    assert found == []


def test_engine_scores_on_two_cores_what_it_scores_on_one(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = encode(tiny, [ask("nine " * (7 * i % 11 + 1)) for i in range(11)])
    tree = Encoder(tiny).tree(GRADES)
    engine = engine_of(tiny, token_budget=90)
    cores: list[int] = []

    def counted(run: Callable[[Any], None], items: list[Any], num_cores: int) -> None:
        cores.append(num_cores)
        run_on_cores(run, items, num_cores)

    monkeypatch.setattr("judging.scoring.tree_engine.run_on_cores", counted)
    before = torch.get_num_threads()
    scores = []
    try:
        for num_threads in (1, 2):
            torch.set_num_threads(num_threads)
            scores.append(engine.score(prompts, tree))
    finally:
        torch.set_num_threads(before)
    assert cores == [1, 2]
    _assert_scores_match(*scores)


def test_scoring_after_a_text_equals_reading_it_afresh(
    tiny: Backbone, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of several lengths, one of them cut within a token, then two questions after each."""
    prompts = [*prompts_with_pictures(tiny, pictures), *prompts_with_pictures(tiny, pictures)[:1]]
    encoder = Encoder(tiny)
    engine = engine_of(tiny)
    trees = [encoder.tree(("A", "B", "None"), "</label>"), encoder.tree(("0.25", "0.75"), end="")]
    widths = _widths_read_by_resume(monkeypatch)
    sampling = Sampling(max_new_tokens=9, temperature=1.0)
    seeds = list(range(len(prompts)))
    texts = []
    for batch in engine.generate(prompts, encoder, "</never>", seeds, sampling):
        texts += finished_texts([batch])
        # As if the row's stop had come so early: the tokens drawn after it must not be seen.
        cut = [
            prompts[index].extended([*text.tokens[: 2 * row], *encoder.text("</critique> so")])
            for row, (index, text) in enumerate(zip(batch.indices, batch.texts, strict=True))
            if isinstance(text, GeneratedText)
        ]
        longer = [prompt.extended(encoder.text(" A, surely")) for prompt in cut]
        for continued, tree in zip((cut, longer), trees, strict=True):
            alone = [engine.score([one], tree)[0] for one in continued]
            _assert_scores_match(batch.score(continued, tree), alone)
    assert texts == finished_texts(engine.generate(prompts, encoder, "</never>", seeds, sampling))
    assert len(widths) == 2 and max(widths) < 60, "only what is new is read"


def test_other_prompts_are_scored_from_their_beginning(tiny: Backbone, pictures: list[str]) -> None:
    prompts, encoder = prompts_with_pictures(tiny, pictures), Encoder(tiny)
    engine = engine_of(tiny)
    tree = encoder.tree(("A", "B"))
    alone = engine.score(prompts, tree)
    for batch in engine.generate(prompts, encoder, "</never>", [0, 1, 2], GREEDY):
        # The prompts themselves: nothing of the texts after them may be seen.
        same = batch.score([prompts[index] for index in batch.indices], tree)
        _assert_scores_match(same, [alone[index] for index in batch.indices])
        _assert_scores_match(batch.score(prompts[:1], tree), alone[:1])
    pixels = prompts[2].vision | {"pixel_values": -prompts[2].vision["pixel_values"]}
    other = replace(prompts[2].extended(encoder.text("So")), vision=pixels)
    repainted = engine.score([other], tree)
    for batch in engine.generate(prompts[2:], encoder, "</never>", [2], GREEDY):
        _assert_scores_match(batch.score([other], tree), repainted)


def test_a_batch_is_forgotten_when_the_next_one_is_asked_for(
    tiny: Backbone, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, encoder = prompts_with_pictures(tiny, pictures), Encoder(tiny)
    longest = max(prompt.positions.shape[1] for prompt in prompts)
    budget = 2 * (longest + GREEDY.max_new_tokens)
    engine = engine_of(tiny, text_budget=budget)
    tree = encoder.tree(("A", "B"))
    widths = _widths_read_by_resume(monkeypatch)
    batches = list(engine.generate(prompts, encoder, "</never>", [0, 1, 2], GREEDY))
    assert [len(batch.indices) for batch in batches] == [2, 1]
    assert sorted(index for batch in batches for index in batch.indices) == [0, 1, 2]
    for batch in batches:
        continued = [prompts[index].extended(encoder.text("So")) for index in batch.indices]
        _assert_scores_match(batch.score(continued, tree), engine.score(continued, tree))
    assert widths == []


def _widths_read_by_resume(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the width of every batch read after remembered texts."""
    widths: list[int] = []
    resume = TreeModel.resume

    def counted(model: TreeModel, batch: TreeBatch, *memory: Any) -> torch.Tensor:
        widths.append(batch.input_ids.shape[1])
        return resume(model, batch, *memory)

    monkeypatch.setattr(TreeModel, "resume", counted)
    return widths


@pytest.mark.parametrize(
    "case",
    [
        ("Qwen3.5-9B", "cuda", False, 1),
        ("Qwen3.5-9B", "cuda", True, 0),
        ("Qwen3.5-9B", "cpu", False, 0),
        ("Qwen3-VL-4B-Instruct", "cuda", False, 0),
    ],
)
def test_recurrent_layers_without_their_kernels_are_named_once(
    case: tuple[str, str, bool, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    family, device, installed, lines = case
    save_hub_layout(tmp_path, family)
    backbone = load_backbone(str(tmp_path), weights=False).model
    kernels = SimpleNamespace(chunk_gated_delta_rule=print) if installed else None
    for name in ("fla", "fla.ops", "fla.ops.gated_delta_rule"):
        monkeypatch.setitem(sys.modules, name, kernels)
    model = SimpleNamespace(backbone=backbone, device=torch.device(device))
    tree_engine.warn_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            TreeEngine(cast(TreeModel, model), 0, dtype="bfloat16", text_budget=1)
    said = [record.getMessage() for record in caplog.records if record.name == "custos"]
    assert len(said) == lines
    assert all("flash-linear-attention" in line for line in said)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_numbers_run_at_the_same_time_each_once_on_one_core_without_gradients() -> None:
    seen: list[tuple[int, int, bool]] = []
    together = threading.Barrier(2, timeout=20)

    def run(number: int) -> None:
        together.wait()
        seen.append((number, torch.get_num_threads(), torch.is_inference_mode_enabled()))

    run_on_cores(run, range(26), num_cores=2)
    assert sorted(seen) == [(number, 1, True) for number in range(26)]
    assert not torch.is_inference_mode_enabled()
    # Threads are as before, here and in threads that start later.
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert (torch.get_num_threads(), later) == (2, [2])


@pytest.mark.usefixtures("two_threads")
def test_the_first_error_is_raised_and_what_has_not_begun_is_left_out() -> None:
    begun: list[int] = []

    def run(number: int) -> None:
        begun.append(number)
        if number == 1:
            raise ValueError(f"number {number}")
        time.sleep(0.001)

    with pytest.raises(ValueError, match="number 1"):
        run_on_cores(run, range(10_000), num_cores=2)
    assert len(begun) < 10_000
    assert torch.get_num_threads() == 2


WARM = Sampling(max_new_tokens=8, temperature=1.0)


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
    tree = Encoder(tiny).tree(GRADES)
    engine = engine_of(tiny, 4096)
    expected = torch.tensor(engine.score(prompts, tree))
    limit = 600
    _raises_where(monkeypatch, "forward", lambda batch, _: batch.input_ids.numel() > limit)
    with caplog.at_level(logging.WARNING):
        _assert_scores_match(engine.score(prompts, tree), expected)
        assert limit / 2 <= engine.token_budget <= limit + 8 * len(prompts)
        num_lines = len(caplog.records)
        engine.score(prompts, tree)
    assert 1 <= num_lines == len(caplog.records), "it is not said again"


def test_what_was_read_before_a_failure_is_not_read_again(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = encode(tiny, [ask(f"{i}", question=f"{i}{' why' * i}?") for i in range(12)])
    tree = Encoder(tiny).tree(GRADES)
    engine = engine_of(tiny, token_budget=400)
    read: list[int] = []

    def counted(logits: torch.Tensor, tree: LabelTree) -> torch.Tensor:
        read.append(len(logits))
        return label_logprobs(logits, tree)

    monkeypatch.setattr("judging.scoring.tree_engine.label_logprobs", counted)
    calls = _raises_where(monkeypatch, "forward", lambda *_: calls[0] == 3)
    assert not any(isinstance(scores, CustosError) for scores in engine.score(prompts, tree))
    assert calls[0] > 3
    assert sum(read) == len(prompts)


def test_a_prompt_or_text_that_never_fits_fails_alone(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [ask("nine " * length, question=f"{length}?") for length in (3, 400, 5, 7, 300)]
    prompts, engine, encoder = encode(tiny, requests), engine_of(tiny, 4096), Encoder(tiny)
    tree = encoder.tree(GRADES)
    expected = engine.score(prompts, tree)
    _raises_where(monkeypatch, "forward", lambda batch, _: batch.input_ids.shape[1] > 250)
    _raises_where(monkeypatch, "begin", lambda batch, _: batch.input_ids.shape[1] > 250)
    found = engine_of(tiny, 4096).score(prompts, tree)
    texts = texts_in_order(engine.generate(prompts, encoder, "</never>", list(range(5)), WARM))
    for index, (scores, text, whole) in enumerate(zip(found, texts, expected, strict=True)):
        assert isinstance(text, CustosError) == isinstance(scores, CustosError) == (index in (1, 4))
        if index not in (1, 4):
            _assert_scores_match([scores], [whole])


def test_an_instruction_takes_the_memory_of_others_or_fails_in_words(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = encode(tiny, [ask(f"{i}") for i in range(3)])
    tree = Encoder(tiny).tree(GRADES)
    engine = engine_of(tiny, 4096)
    expected = torch.tensor(engine.score(prompts, tree))
    engine._prefixes.clear()
    calls = _raises_where(monkeypatch, "prefill", lambda *_: calls[0] != 2)
    _assert_scores_match(engine.score(prompts, tree), expected)
    engine._prefixes.clear()
    found = engine.score(prompts, tree)
    assert calls[0] == 4
    assert [isinstance(scores, CustosError) for scores in found] == [True] * 3


def test_nobody_is_asked_to_wait_for_what_is_unwanted(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = encode(tiny, [ask(f"{i}") for i in range(6)])
    tree = Encoder(tiny).tree(GRADES)
    engine = engine_of(tiny, token_budget=1)
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
    engine = engine_of(tiny)

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
    assert calls[0] > skipped, "nothing failed"


def test_labels_after_texts_are_read_afresh_where_memory_is_short(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, encoder = encode(tiny, [ask("nine " * i) for i in range(3)]), Encoder(tiny)
    engine = engine_of(tiny, 4096)
    tree = encoder.tree(("A", "B"))
    calls = _raises_where(monkeypatch, "resume", lambda *_: True)
    for batch in engine.generate(prompts, encoder, "</never>", [0, 1, 2], WARM):
        continued = [prompts[index].extended(encoder.text("So")) for index in batch.indices]
        _assert_scores_match(batch.score(continued, tree), engine.score(continued, tree))
    assert calls == [1]


def test_scores_leave_the_device_once_for_all_passes(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = encode(tiny, [ask("nine " * (i + 1), question=f"{i}?") for i in range(9)])
    tree = Encoder(tiny).tree(GRADES)
    numbers_of_copies = []
    counted = CountedCopies(monkeypatch)
    for budget in (90, 4096):
        engine = engine_of(tiny, budget)
        engine.score(prompts[:1], tree)  # reads the instruction
        calls = _raises_where(monkeypatch, "forward", lambda *_: False)
        counted.sizes.clear()
        engine.score(prompts, tree)
        numbers_of_copies.append((calls[0] > 1, counted.sizes[:]))
    copied = len(prompts) * len(tree.labels)
    assert numbers_of_copies == [(True, [copied]), (False, [copied])]
