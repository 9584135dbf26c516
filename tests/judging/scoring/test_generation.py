"""Drawn text against the library's own generate, and what may not change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from judging.models.backbones import Backbone
from judging.scoring.engine import TreeEngine
from judging.scoring.generation import Generated, Sampling, _draw, _nucleus, _settled
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.scoring.tree_batch import TreeBatch, TreeModel
from judging.tasks import get_task
from tests.judging.made_up import ask
from tests.tiny import reference_model

GREEDY = Sampling(max_new_tokens=9, temperature=0.0)


def _prompts(backbone: Backbone, pictures: Sequence[str]) -> list[EncodedPrompt]:
    task = get_task("hieval-qs")
    requests = [
        ask(),
        ask("It is 18, for one was eaten before breakfast.", images=(pictures[0],)),
        ask("?", images=(pictures[1], pictures[2])),
    ]
    return Encoder(backbone).encode([(task, request) for request in requests])


def _generate(
    backbone: Backbone, prompts: Sequence[EncodedPrompt], sampling: Sampling, seed: int = 0
) -> list[Generated]:
    engine = TreeEngine(TreeModel(backbone.model), backbone.tokenizer.pad_token_id)
    seeds = [seed + 10 * len(prompt.suffix_ids) for prompt in prompts]
    return engine.generate(prompts, Encoder(backbone), "</never>", seeds, sampling)


def test_greedy_text_is_the_librarys(tiny: Backbone, pictures: list[str]) -> None:
    reference = reference_model(tiny.name)
    prompts = _prompts(tiny, pictures)
    expected = []
    for prompt in prompts:
        ids = torch.tensor([prompt.prefix_ids + prompt.suffix_ids])
        vision = dict(prompt.vision)
        if vision:
            vision["mm_token_type_ids"] = (ids == reference.config.image_token_id).int()
        out = reference.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=GREEDY.max_new_tokens,
            do_sample=False,
            eos_token_id=tiny.tokenizer.convert_tokens_to_ids("<|im_end|>"),
            **vision,
        )
        expected.append(tuple(out[0, ids.shape[1] :].tolist()))
    together = [text.tokens for text in _generate(tiny, prompts, GREEDY)]
    alone = [_generate(tiny, [prompt], GREEDY)[0].tokens for prompt in prompts]
    end = tiny.tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert together == alone == [tuple(t for t in row if t != end) for row in expected]
    assert len(set(together)) == len(prompts), "texts must differ, or the comparison shows little"


def test_samples_follow_their_own_seed_not_their_company(
    tiny: Backbone, pictures: list[str]
) -> None:
    prompts = _prompts(tiny, pictures)
    warm = Sampling(max_new_tokens=12, temperature=1.0, top_p=0.9)
    together = _generate(tiny, prompts, warm)
    assert together == _generate(tiny, prompts, warm)
    assert [_generate(tiny, [prompt], warm)[0] for prompt in prompts] == together
    assert together != _generate(tiny, prompts, warm, seed=1)


def test_stop_text_ends_and_is_left_out(tiny: Backbone, pictures: list[str]) -> None:
    [prompt] = _prompts(tiny, pictures)[:1]
    long = Sampling(max_new_tokens=30, temperature=0.0)
    [whole] = _generate(tiny, [prompt], long)
    stop = whole.text[6:8]
    told: list[str] = []
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id)
    [text] = engine.generate(
        [prompt], Encoder(tiny), stop, [0], long, lambda row, piece: told.append(piece)
    )
    assert text.finished
    assert text.text == whole.text[: whole.text.index(stop)]
    assert "".join(told) == text.text
    assert len(text.tokens) < len(whole.tokens)


@pytest.mark.parametrize(
    ("text", "finished", "settled"),
    [
        ("good", False, "good"),
        ("good</cri", False, "good"),
        ("good<", False, "good"),
        ("good</cri", True, "good</cri"),
        ("good</x", False, "good</x"),
        ("caf\ufffd", False, "caf"),
    ],
)
def test_what_is_told_never_changes(text: str, finished: bool, settled: str) -> None:
    assert text[: _settled(text, "</critique>", finished)] == settled


def test_nucleus_and_temperature() -> None:
    chances = torch.tensor([[0.5, 0.3, 0.15, 0.05]])
    draw = [torch.Generator().manual_seed(0)]

    def shares(sampling: Sampling, count: int = 4000) -> list[float]:
        drawn = Counter(_draw(chances.log(), sampling, draw)[0] for _ in range(count))
        return [drawn[i] / count for i in range(4)]

    # .5 + .3 reach .8; the rest is cut off and the two share out the whole.
    assert shares(Sampling(1, 1.0, 0.8)) == pytest.approx([0.625, 0.375, 0, 0], abs=0.03)
    assert shares(Sampling(1, 1.0, 0.81)) == pytest.approx([0.526, 0.316, 0.158, 0], abs=0.03)
    assert shares(Sampling(1, 1.0, 1.0)) == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.03)
    # At temperature 1/2 chances are squared: .25, .09, .0225, .0025 of .365.
    assert shares(Sampling(1, 0.5, 1.0)) == pytest.approx([0.685, 0.247, 0.062, 0.007], abs=0.03)
    assert shares(Sampling(1, 0.0, 1.0), 5) == [1, 0, 0, 0]


@given(st.integers(0, 2**32), st.sampled_from([0.3, 0.9, 0.95, 0.9999]), st.floats(0.0, 6.0))
def test_a_nucleus_is_the_fewest_likeliest_that_reach_top_p(
    seed: int, top_p: float, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    weights = np.exp(spread * rng.standard_normal(2000))
    chances = (weights / weights.sum()).astype(np.float32)
    found, tokens = _nucleus(torch.from_numpy(chances), top_p)
    kept = tokens.numpy()
    assert len(set(kept.tolist())) == len(kept)
    assert found.tolist() == chances[kept].tolist() == sorted(chances[kept].tolist(), reverse=True)
    # Nothing left out is likelier, they reach top_p, and without the last of them do not.
    assert np.delete(chances, kept).max(initial=0.0) <= found[-1]
    reached = chances[kept].astype(np.float64).cumsum()
    assert reached[-1] >= top_p - 1e-5
    assert len(kept) == 1 or reached[-2] < top_p + 1e-5


def test_what_follows_a_text_is_scored_as_if_read_afresh(
    tiny: Backbone, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of several lengths, one of them cut within a token, then two questions after each."""
    prompts = [*_prompts(tiny, pictures), *_prompts(tiny, pictures)[:1]]
    encoder = Encoder(tiny)
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id)
    trees = [encoder.tree(("A", "B", "None"), "</label>"), encoder.tree(("0.25", "0.75"), end="")]
    read: dict[int, tuple[list[EncodedPrompt], list[torch.Tensor]]] = {}
    fed: list[int] = []
    resume = TreeModel.resume

    def counted(model: TreeModel, batch: TreeBatch, *memory: Any) -> torch.Tensor:
        fed.append(batch.input_ids.shape[1])
        return resume(model, batch, *memory)

    monkeypatch.setattr(TreeModel, "resume", counted)

    def on_texts(rows: Sequence[int], texts: Sequence[Generated]) -> None:
        # As if the row's stop had come so early: what was drawn after it must not be seen.
        kept = [
            prompts[row].extended([*text.tokens[: 2 * place], *encoder.text("</critique> so")])
            for place, (row, text) in enumerate(zip(rows, texts, strict=True))
        ]
        longer = [prompt.extended(encoder.text(" A, surely")) for prompt in kept]
        scores = [
            engine.score(asked, tree) for asked, tree in zip((kept, longer), trees, strict=True)
        ]
        read.update(
            (row, ([one, two], [score[place] for score in scores]))
            for place, (row, one, two) in enumerate(zip(rows, kept, longer, strict=True))
        )

    sampling = Sampling(max_new_tokens=9, temperature=1.0)
    seeds = list(range(len(prompts)))
    texts = engine.generate(prompts, encoder, "</never>", seeds, sampling, on_texts=on_texts)
    assert texts == engine.generate(prompts, encoder, "</never>", seeds, sampling)
    assert sorted(read) == seeds
    for asked, scores in read.values():
        for prompt, tree, score in zip(asked, trees, scores, strict=True):
            torch.testing.assert_close(engine.score([prompt], tree)[0], score, atol=1e-5, rtol=0)
    assert len(fed) == 2 and max(fed) < 60, "only what is new is read"


def test_other_prompts_are_scored_from_their_beginning(tiny: Backbone, pictures: list[str]) -> None:
    prompts, encoder = _prompts(tiny, pictures), Encoder(tiny)
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id)
    tree = encoder.tree(("A", "B"))
    alone = engine.score(prompts, tree)
    pixels = prompts[2].vision | {"pixel_values": -prompts[2].vision["pixel_values"]}
    other = replace(prompts[2].extended(encoder.text("So")), vision=pixels)
    repainted = engine.score([other], tree)

    def on_texts(rows: Sequence[int], texts: Sequence[Generated]) -> None:
        # The prompts themselves: nothing of what was written after them may be seen.
        torch.testing.assert_close(engine.score([prompts[row] for row in rows], tree), alone[rows])
        torch.testing.assert_close(engine.score(prompts[:1], tree), alone[:1])

    def on_repainted(rows: Sequence[int], texts: Sequence[Generated]) -> None:
        torch.testing.assert_close(engine.score([other], tree), repainted)

    engine.generate(prompts, encoder, "</never>", [0, 1, 2], GREEDY, on_texts=on_texts)
    engine.generate(prompts[2:], encoder, "</never>", [2], GREEDY, on_texts=on_repainted)
