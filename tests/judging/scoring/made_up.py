"""Requests, trees and plain passes for the tests of this folder."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from judging.models.backbones import Backbone
from judging.scoring.engine import GeneratedText, TextBatch, texts_in_order
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import make_tree_batch
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.scoring.tree_batch import TreeModel, label_logprobs
from judging.scoring.tree_engine import TreeEngine
from judging.tasks import get_task
from judging.types import JudgeRequest
from tests.judging.made_up import ask

# float32 log-probabilities of magnitude up to about 50 over two to thirty layers.
TOLERANCE: dict[str, Any] = {"rtol": 0.0, "atol": 1e-4}

TEXT_ONLY = [
    ask(),
    ask("It is 18, for one was eaten by the keeper before breakfast; 18 it is, and no more."),
    ask("?", question="Which river runs past the old town?", references=("Green", "the Green")),
]


def encode(backbone: Backbone, requests: Sequence[JudgeRequest]) -> list[EncodedPrompt]:
    task = get_task("hieval-qs")
    return Encoder(backbone, shows_all_pictures=True).encode(
        [(task, request) for request in requests]
    )


def varied_tree(backbone: Backbone) -> LabelTree:
    """Labels of one to five tokens (end token aside); two begin others; branches are shared."""
    tokenizer = backbone.tokenizer
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    a, b, c, d, e, f = (tokenizer.encode(letter)[0] for letter in "abcdef")
    ids = [[a], [a, b], [a, b, c], [a, b, c, d, e], [a, d, c, b], [f, e]]
    return LabelTree.build([str(row) for row in ids], [[*row, end] for row in ids])


@torch.inference_mode()
def score_one_pass(
    backbone: Backbone,
    prompts: Sequence[EncodedPrompt],
    trees: Sequence[LabelTree],
    share_prefix: bool = True,
) -> list[Tensor]:
    pad = backbone.tokenizer.pad_token_id
    batch = make_tree_batch(prompts, trees, pad, share_prefix=share_prefix)
    logits = TreeModel(backbone.model)(batch)
    return [label_logprobs(logits[i : i + 1], tree)[0] for i, tree in enumerate(trees)]


def mixed_requests(pictures: Sequence[str]) -> list[JudgeRequest]:
    """Rows with pictures of several shapes among rows without."""
    return [
        TEXT_ONLY[0],
        ask(images=(pictures[0],)),
        TEXT_ONLY[1],
        ask("Two gardens.", images=(pictures[1], pictures[2])),
        TEXT_ONLY[2],
    ]


def same_question(pictures: Sequence[str]) -> list[JudgeRequest]:
    """Responses to one question about one picture: two equal, one the beginning of another."""
    return [
        ask(response, images=(pictures[1],))
        for response in ("Nine.", "Nine boats before breakfast", "Nine boats", "Nine.", "?")
    ]


def prompts_with_pictures(backbone: Backbone, pictures: Sequence[str]) -> list[EncodedPrompt]:
    eaten = ask("It is 18, for one was eaten before breakfast.", images=(pictures[0],))
    return encode(backbone, [ask(), eaten, ask("?", images=(pictures[1], pictures[2]))])


def finished_texts(batches: Iterable[TextBatch]) -> list[GeneratedText]:
    texts = texts_in_order(batches)
    return [text for text in texts if isinstance(text, GeneratedText)]


GRADES = ("Correct", "Partial", "Wrong")


def engine_of(backbone: Backbone, token_budget: int | None = None, **options: Any) -> TreeEngine:
    pad = backbone.tokenizer.pad_token_id
    return TreeEngine(TreeModel(backbone.model), pad, token_budget, **options)
