"""One pass over a label tree must equal one plain pass of the library's own model per label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from judging.models.adapters import add_adapter
from judging.models.backbones import Backbone, load_backbone
from judging.models.embedded import embedded_folder
from judging.scoring.engine import TreeEngine
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import pack
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.scoring.tree_batch import TreeModel, label_logprobs, make_tree_batch
from judging.tasks import get_task
from judging.types import JudgeRequest
from tests.judging.made_up import ask
from tests.tiny import brute_force, reference_model

# float32 log-probabilities of magnitude up to about 50 over two to thirty layers.
TOLERANCE: dict[str, Any] = {"rtol": 0.0, "atol": 1e-4}


def _encode(backbone: Backbone, requests: Sequence[JudgeRequest]) -> list[EncodedPrompt]:
    task = get_task("hieval-qs")
    return Encoder(backbone).encode([(task, request) for request in requests])


def _varied_tree(backbone: Backbone) -> LabelTree:
    """Labels of one to five tokens (end token aside); two begin others; branches are shared."""
    tokenizer = backbone.tokenizer
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    a, b, c, d, e, f = (tokenizer.encode(letter)[0] for letter in "abcdef")
    ids = [[a], [a, b], [a, b, c], [a, b, c, d, e], [a, d, c, b], [f, e]]
    return LabelTree.build([str(row) for row in ids], [[*row, end] for row in ids])


@torch.inference_mode()
def _expected(model: torch.nn.Module, prompt: EncodedPrompt, tree: LabelTree) -> Tensor:
    ids = prompt.prefix_ids + prompt.suffix_ids
    return torch.tensor(
        [brute_force(model, ids, [token for _, token in p], prompt.vision) for p in tree.paths]
    )


@torch.inference_mode()
def _found(
    backbone: Backbone,
    prompts: Sequence[EncodedPrompt],
    trees: Sequence[LabelTree],
    share_prefix: bool = True,
) -> list[Tensor]:
    pad = backbone.tokenizer.pad_token_id
    batch = make_tree_batch(prompts, trees, pad, share_prefix=share_prefix)
    logits = TreeModel(backbone.model)(batch)
    return [label_logprobs(logits[i : i + 1], tree)[0] for i, tree in enumerate(trees)]


TEXT_ONLY = [
    ask(),
    ask("It is 18, for one was eaten by the keeper before breakfast; 18 it is, and no more."),
    ask("?", question="Which river runs past the old town?", references=("Green", "the Green")),
]


def _requests(pictures: Sequence[str]) -> list[JudgeRequest]:
    """Rows with pictures of several shapes among rows without."""
    return [
        TEXT_ONLY[0],
        ask(images=(pictures[0],)),
        TEXT_ONLY[1],
        ask("Two gardens.", images=(pictures[1], pictures[2])),
        TEXT_ONLY[2],
    ]


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_tiny_equals_brute_force_alone_and_in_every_slot(
    tiny: Backbone, pictures: list[str], attention: str
) -> None:
    reference = reference_model(tiny.name, attention)
    prompts = _encode(tiny, _requests(pictures))
    assert len({len(p.suffix_ids) for p in prompts}) == len(prompts), "lengths must be mixed"
    tree = _varied_tree(tiny)
    expected = [_expected(reference, prompt, tree) for prompt in prompts]
    spread = torch.stack(expected).std(0)
    assert spread.min() > 0.1, "prompts must matter, or the comparison shows nothing"
    for i, prompt in enumerate(prompts):
        [alone] = _found(tiny, [prompt], [tree])
        torch.testing.assert_close(alone, expected[i], **TOLERANCE)
    for shift in range(len(prompts)):
        order = [(i + shift) % len(prompts) for i in range(len(prompts))]
        rows = _found(tiny, [prompts[i] for i in order], [tree] * len(order))
        for row, i in zip(rows, order, strict=True):
            torch.testing.assert_close(row, expected[i], **TOLERANCE)


def test_rows_with_different_trees(tiny: Backbone, pictures: list[str]) -> None:
    reference = reference_model(tiny.name)
    prompts = _encode(tiny, _requests(pictures))
    small = Encoder(tiny).tree(["Correct", "Wrong"])
    trees = [small, _varied_tree(tiny), small, _varied_tree(tiny), small]
    for prompt, tree, row in zip(prompts, trees, _found(tiny, prompts, trees), strict=True):
        torch.testing.assert_close(row, _expected(reference, prompt, tree), **TOLERANCE)


def test_separate_instructions_equal_the_shared_one(tiny: Backbone, pictures: list[str]) -> None:
    prompts = _encode(tiny, _requests(pictures))
    trees = [_varied_tree(tiny)] * len(prompts)
    shared = _found(tiny, prompts, trees)
    separate = _found(tiny, prompts, trees, share_prefix=False)
    torch.testing.assert_close(torch.stack(shared), torch.stack(separate), **TOLERANCE)


def test_rows_of_different_rubrics_need_their_own_instruction(tiny: Backbone) -> None:
    prompts = _encode(tiny, [ask(), ask(variant="tolerance")])
    trees = [_varied_tree(tiny)] * 2
    with pytest.raises(ValueError, match="must have the same instruction"):
        make_tree_batch(prompts, trees, 0)
    reference = reference_model(tiny.name)
    rows = _found(tiny, prompts, trees, share_prefix=False)
    for prompt, row in zip(prompts, rows, strict=True):
        torch.testing.assert_close(row, _expected(reference, prompt, trees[0]), **TOLERANCE)


def test_embedded_equals_brute_force(embedded: Backbone) -> None:
    reference = reference_model(str(embedded_folder()), "sdpa")
    prompts = _encode(embedded, TEXT_ONLY[:2])
    tree = _varied_tree(embedded)
    expected = [_expected(reference, prompt, tree) for prompt in prompts]
    for rows in (
        [_found(embedded, [prompt], [tree])[0] for prompt in prompts],
        _found(embedded, prompts, [tree] * 2),
        _found(embedded, prompts, [tree] * 2, share_prefix=False),
    ):
        torch.testing.assert_close(torch.stack(rows), torch.stack(expected), **TOLERANCE)


@pytest.mark.parametrize("token_budget", [1, 90, 4096])
def test_engine_returns_the_order_given(
    tiny: Backbone, pictures: list[str], token_budget: int
) -> None:
    requests = [
        ask("nine " * (7 * i % 11 + 1), images=(pictures[i % 3],) if i % 4 == 0 else ())
        for i in range(11)
    ]
    prompts = _encode(tiny, requests)
    tree = Encoder(tiny).tree(["Correct", "Partial", "Wrong"])
    engine = TreeEngine(
        TreeModel(tiny.model), tiny.tokenizer.pad_token_id, token_budget=token_budget
    )
    found = engine.score(prompts, tree)
    expected = torch.stack([_found(tiny, [prompt], [tree])[0] for prompt in prompts])
    torch.testing.assert_close(found, expected, **TOLERANCE)
    apart = torch.cdist(expected, expected).fill_diagonal_(1)
    assert apart.min() > 1e-2, "rows must differ, or an exchange would not show"


def _same_question(pictures: Sequence[str]) -> list[JudgeRequest]:
    """Responses to one question about one picture: two equal, one the beginning of another."""
    return [
        ask(response, images=(pictures[1],))
        for response in ("Nine.", "Nine boats before breakfast", "Nine boats", "Nine.", "?")
    ]


def test_responses_that_share_a_row_do_not_see_each_other(
    tiny: Backbone, pictures: list[str]
) -> None:
    reference = reference_model(tiny.name)
    prompts = _encode(tiny, [*_same_question(pictures), TEXT_ONLY[0]])
    trees = [_varied_tree(tiny), Encoder(tiny).tree(["Correct", "Wrong"])] * 3
    rows = [[4, 1, 0], [5], [3, 2]]
    for share_prefix in (True, False):
        batch = make_tree_batch(
            prompts, trees, tiny.tokenizer.pad_token_id, rows=rows, share_prefix=share_prefix
        )
        assert batch.input_ids.shape[0] == len(rows)
        assert len(batch.vision["image_grid_thw"]) == 2, "a row shows its picture once"
        with torch.inference_mode():
            logits = TreeModel(tiny.model)(batch)
        for i, (prompt, tree) in enumerate(zip(prompts, trees, strict=True)):
            found = label_logprobs(logits[i : i + 1], tree)[0]
            torch.testing.assert_close(found, _expected(reference, prompt, tree), **TOLERANCE)


def test_engine_shares_rows_and_equals_each_prompt_alone(
    tiny: Backbone, pictures: list[str]
) -> None:
    prompts = _encode(tiny, [*_same_question(pictures), *_requests(pictures)])
    tree = _varied_tree(tiny)
    planned = pack(prompts, len(tree.node_tokens), 4096)
    assert sum(map(len, planned)) < len(prompts), "nothing was shared"
    engine = TreeEngine(TreeModel(tiny.model), tiny.tokenizer.pad_token_id, token_budget=4096)
    expected = torch.stack([_found(tiny, [prompt], [tree])[0] for prompt in prompts])
    torch.testing.assert_close(engine.score(prompts, tree), expected, **TOLERANCE)


def test_adapter_gradients_through_the_shared_instruction(
    tiny_folder: str, pictures: list[str]
) -> None:
    """One shared-prefix batch against the library's model, one plain row per label."""
    grafted = load_backbone(tiny_folder, dtype="float32", device="cpu")
    prompts = _encode(grafted, _requests(pictures))
    tree = _varied_tree(grafted)
    targets = [3, 0, 4, 2, 5]
    gradients = []
    for model in (grafted.model, reference_model(tiny_folder)):
        adapted = add_adapter(model, r=4, alpha=8, seed=3)
        generator = torch.Generator().manual_seed(5)
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:  # zero at the start, which would hide lora_A's gradient
                parameter.data = 0.1 * torch.randn(parameter.shape, generator=generator)
        if model is grafted.model:
            batch = make_tree_batch(prompts, [tree] * 5, grafted.tokenizer.pad_token_id)
            logprobs = label_logprobs(TreeModel(adapted)(batch), tree)
            chosen = logprobs[torch.arange(5), torch.tensor(targets)]
            (-chosen.sum() / 5).backward()
        else:
            for prompt, target in zip(prompts, targets, strict=True):
                _plain_loss(adapted, prompt, tree.paths[target], 5).backward()
        gradients.append(
            {name: p.grad for name, p in adapted.named_parameters() if p.requires_grad}
        )
    shared, separate = gradients
    assert shared.keys() == separate.keys()
    assert len(shared) == 2 * 7 * 2  # A and B of seven projections in two layers
    for name, gradient in separate.items():
        assert gradient is not None
        assert gradient.abs().max() > 1e-4, f"{name} gets no gradient"
        torch.testing.assert_close(shared[name], gradient, rtol=1e-4, atol=1e-5)


def _plain_loss(
    model: Any, prompt: EncodedPrompt, path: tuple[tuple[int, int], ...], rows: int
) -> Tensor:
    ids = prompt.prefix_ids + prompt.suffix_ids
    label = [token for _, token in path]
    row = torch.tensor([[*ids, *label]])
    vision: dict[str, Tensor] = dict(prompt.vision)
    if vision:
        image_token = model.get_base_model().config.image_token_id
        vision["mm_token_type_ids"] = (row == image_token).int()
    logits = model(input_ids=row, use_cache=False, **vision).logits[0]
    logprobs = logits[len(ids) - 1 : -1].log_softmax(-1)
    total: Tensor = logprobs[torch.arange(len(label)), torch.tensor(label)].sum()
    return -total / rows


@pytest.mark.usefixtures("bfloat16_cpu")
def test_bfloat16_drifts_little_with_the_company_a_row_keeps(embedded: Backbone) -> None:
    """Rounding depends on the shapes of a batch: verdicts near a tie may flip, others must not."""
    half = load_backbone("embedded", dtype="bfloat16", device="cpu")
    prompts = _encode(half, TEXT_ONLY)
    tree = Encoder(half).tree(["Correct", "Wrong"])
    exact = torch.stack(_found(embedded, prompts, [tree] * 3))
    alone = torch.stack([_found(half, [prompt], [tree])[0] for prompt in prompts])
    together = torch.stack(_found(half, prompts, [tree] * 3))
    drift = (alone - together).abs().max().item()
    rounding = (alone - exact).abs().max().item()
    # One step of bfloat16 at a logit of 16 to 32 is 0.125; a label sums two or three tokens.
    assert drift < 0.5
    assert rounding < 1.0
