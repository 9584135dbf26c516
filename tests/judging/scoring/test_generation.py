"""Drawn text against the library's own generate, and what may not change it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from judging.models.backbones import Backbone
from judging.scoring.engine import GeneratedText, Sampling
from judging.scoring.generation import GrowingText
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.scoring.tree_batch import TreeModel
from judging.scoring.tree_engine import TreeEngine
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
