"""Drawn text against the library's own generate, and what may not change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from judging.models.backbones import Backbone
from judging.scoring.engine import GeneratedText, Sampling
from judging.scoring.generation import GrowingText
from judging.scoring.prefix import Prefix
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.scoring.tree_batch import TreeBatch, TreeModel
from judging.scoring.tree_engine import TreeEngine
from tests.cuda_stand_in import CountedCopies
from tests.judging.scoring.made_up import finished_texts, prompts_with_pictures
from tests.tiny import reference_model

GREEDY = Sampling(max_new_tokens=9, temperature=0.0)


def _generate(
    backbone: Backbone, prompts: Sequence[EncodedPrompt], sampling: Sampling, seed: int = 0
) -> list[GeneratedText]:
    engine = TreeEngine(TreeModel(backbone.model), backbone.tokenizer.pad_token_id)
    seeds = [seed + 10 * len(prompt.suffix_ids) for prompt in prompts]
    return finished_texts(engine.generate(prompts, Encoder(backbone), "</never>", seeds, sampling))


def test_greedy_text_is_the_librarys(tiny: Backbone, pictures: list[str]) -> None:
    reference = reference_model(tiny.name)
    prompts = prompts_with_pictures(tiny, pictures)
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
    prompts = prompts_with_pictures(tiny, pictures)
    warm = Sampling(max_new_tokens=12, temperature=1.0, top_p=0.9)
    together = _generate(tiny, prompts, warm)
    assert together == _generate(tiny, prompts, warm)
    assert [_generate(tiny, [prompt], warm)[0] for prompt in prompts] == together
    assert together != _generate(tiny, prompts, warm, seed=1)


def test_only_the_drawn_tokens_leave_the_device(
    tiny: Backbone, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [prompts_with_pictures(tiny, pictures)[0]] * 3
    counted = CountedCopies(monkeypatch)
    sizes = []
    for count in (4, 9):
        counted.sizes.clear()
        _generate(tiny, prompts, Sampling(count, temperature=1.0))
        sizes.append(sorted(counted.sizes))
    assert Counter(sizes[1]) - Counter(sizes[0]) == {len(prompts): 5}


def test_a_prompt_of_several_texts_is_read_once(
    tiny: Backbone, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = prompts_with_pictures(tiny, pictures)
    pixels = {"pixel_values": 1 - prompts[-1].vision["pixel_values"]}
    other_picture = replace(prompts[-1], vision=prompts[-1].vision | pixels)
    several = [prompt for prompt in [*prompts, other_picture] for _ in range(3)]
    warm, seeds = Sampling(max_new_tokens=12, temperature=1.0), list(range(len(several)))
    model, encoder = TreeModel(tiny.model), Encoder(tiny)
    engine = TreeEngine(model, tiny.tokenizer.pad_token_id)
    alone = [
        finished_texts(engine.generate([prompt], encoder, "</never>", [seed], warm))[0]
        for prompt, seed in zip(several, seeds, strict=True)
    ]
    rows_read = []
    begin = TreeModel.begin

    def counting(model: TreeModel, batch: TreeBatch, prefix: Prefix | None) -> object:
        rows_read.append(len(batch.input_ids))
        return begin(model, batch, prefix)

    monkeypatch.setattr(TreeModel, "begin", counting)
    together = finished_texts(engine.generate(several, encoder, "</never>", seeds, warm))
    assert together == alone
    if model.is_recurrent:
        assert rows_read == [1] * len(several)
    else:
        assert rows_read == [len(prompts) + 1]


def test_stop_text_ends_and_is_left_out(tiny: Backbone, pictures: list[str]) -> None:
    [prompt] = prompts_with_pictures(tiny, pictures)[:1]
    long = Sampling(max_new_tokens=30, temperature=0.0)
    [whole] = _generate(tiny, [prompt], long)
    stop = whole.text[6:8]
    pieces: list[str] = []
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id)
    batches = engine.generate(
        [prompt], Encoder(tiny), stop, [0], long, lambda row, piece: pieces.append(piece)
    )
    [text] = finished_texts(batches)
    assert text.finished
    assert text.text == whole.text[: whole.text.index(stop)]
    assert "".join(pieces) == text.text
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
def test_reported_text_never_changes(text: str, finished: bool, settled: str) -> None:
    pieces: list[str] = []
    end = len(text)
    growing = GrowingText(lambda tokens: text[: len(tokens)], end, "</critique>", pieces.append)
    for token in range(len(text)):
        growing.add(token)
    if finished:
        growing.add(end)
    assert "".join(pieces) == settled
    assert growing.finished == finished
