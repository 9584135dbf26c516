"""The engine gives what plain passes give, whatever it batches, shares or remembers."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from judging.models.backbones import Backbone, load_backbone
from judging.scoring import tree_engine
from judging.scoring.engine import GeneratedText, Sampling
from judging.scoring.packing import pack
from judging.scoring.prompts import Encoder
from judging.scoring.tree_batch import TreeBatch, TreeModel
from judging.scoring.tree_engine import TreeEngine, run_on_cores
from tests.hub import save_hub_layout
from tests.judging.made_up import ask
from tests.judging.scoring.made_up import (
    TOLERANCE,
    encode,
    finished_texts,
    mixed_requests,
    prompts_with_pictures,
    same_question,
    score_one_pass,
    varied_tree,
)

GREEDY = Sampling(max_new_tokens=9, temperature=0.0)


@pytest.mark.parametrize("token_budget", [1, 90, 4096])
def test_engine_returns_the_order_given(
    tiny: Backbone, pictures: list[str], token_budget: int
) -> None:
    requests = [
        ask("nine " * (7 * i % 11 + 1), images=(pictures[i % 3],) if i % 4 == 0 else ())
        for i in range(11)
    ]
    prompts = encode(tiny, requests)
    tree = Encoder(tiny).tree(["Correct", "Partial", "Wrong"])
    engine = TreeEngine(
        TreeModel(tiny.model), tiny.tokenizer.pad_token_id, token_budget=token_budget
    )
    found = torch.tensor(engine.score(prompts, tree))
    expected = torch.stack([score_one_pass(tiny, [prompt], [tree])[0] for prompt in prompts])
    torch.testing.assert_close(found, expected, **TOLERANCE)
    apart = torch.cdist(expected, expected).fill_diagonal_(1)
    assert apart.min() > 1e-2, "rows must differ, or an exchange would not show"


def test_engine_scores_on_two_cores_what_it_scores_on_one(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = encode(tiny, [ask("nine " * (7 * i % 11 + 1)) for i in range(11)])
    tree = Encoder(tiny).tree(["Correct", "Partial", "Wrong"])
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id, token_budget=90)
    cores: list[int] = []

    def counted(run: Callable[[int], None], numbers: range, num_cores: int) -> None:
        cores.append(num_cores)
        run_on_cores(run, numbers, num_cores)

    monkeypatch.setattr("judging.scoring.tree_engine.run_on_cores", counted)
    before = torch.get_num_threads()
    scores = []
    try:
        for num_threads in (1, 2):
            torch.set_num_threads(num_threads)
            scores.append(torch.tensor(engine.score(prompts, tree)))
    finally:
        torch.set_num_threads(before)
    assert cores == [2]
    torch.testing.assert_close(*scores, **TOLERANCE)


def test_engine_shares_rows_and_equals_each_prompt_alone(
    tiny: Backbone, pictures: list[str]
) -> None:
    prompts = encode(tiny, [*same_question(pictures), *mixed_requests(pictures)])
    tree = varied_tree(tiny)
    planned = pack(prompts, len(tree.node_tokens), 4096)
    assert sum(map(len, planned)) < len(prompts), "nothing was shared"
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id, token_budget=4096)
    expected = torch.stack([score_one_pass(tiny, [prompt], [tree])[0] for prompt in prompts])
    torch.testing.assert_close(torch.tensor(engine.score(prompts, tree)), expected, **TOLERANCE)


def test_scoring_after_a_text_equals_reading_it_afresh(
    tiny: Backbone, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of several lengths, one of them cut within a token, then two questions after each."""
    prompts = [*prompts_with_pictures(tiny, pictures), *prompts_with_pictures(tiny, pictures)[:1]]
    encoder = Encoder(tiny)
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id)
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
            _assert_scores_match(
                batch.score(continued, tree), [engine.score([one], tree)[0] for one in continued]
            )
    assert texts == finished_texts(engine.generate(prompts, encoder, "</never>", seeds, sampling))
    assert len(widths) == 2 and max(widths) < 60, "only what is new is read"


def test_other_prompts_are_scored_from_their_beginning(tiny: Backbone, pictures: list[str]) -> None:
    prompts, encoder = prompts_with_pictures(tiny, pictures), Encoder(tiny)
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id)
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
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id, text_budget=budget)
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


def _assert_scores_match(found: Sequence[object], expected: Sequence[object]) -> None:
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("family", "device", "installed", "lines"),
    [
        ("Qwen3.5-9B", "cuda", False, 1),
        ("Qwen3.5-9B", "cuda", True, 0),
        ("Qwen3.5-9B", "cpu", False, 0),
        ("Qwen3-VL-4B-Instruct", "cuda", False, 0),
    ],
)
def test_recurrent_layers_without_their_kernels_are_named_once(
    family: str,
    device: str,
    installed: bool,
    lines: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
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
