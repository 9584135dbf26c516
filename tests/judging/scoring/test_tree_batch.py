"""One pass over a label tree must equal one plain pass of the library's own model per label."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from judging.models.adapters import add_adapter
from judging.models.backbones import Backbone, load_backbone
from judging.models.embedded import embedded_folder
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import make_tree_batch
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.scoring.tree_batch import TreeModel, label_logprobs
from tests.judging.made_up import ask
from tests.judging.scoring.made_up import (
    TEXT_ONLY,
    TOLERANCE,
    encode,
    mixed_requests,
    same_question,
    score_one_pass,
    varied_tree,
)
from tests.tiny import brute_force, reference_model


@torch.inference_mode()
def _expected(model: torch.nn.Module, prompt: EncodedPrompt, tree: LabelTree) -> Tensor:
    ids = prompt.prefix_ids + prompt.suffix_ids
    return torch.tensor(
        [brute_force(model, ids, [token for _, token in p], prompt.vision) for p in tree.paths]
    )


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_tiny_equals_brute_force_alone_and_in_every_slot(
    tiny: Backbone, pictures: list[str], attention: str
) -> None:
    reference = reference_model(tiny.name, attention)
    prompts = encode(tiny, mixed_requests(pictures))
    assert len({len(p.suffix_ids) for p in prompts}) == len(prompts), "lengths must be mixed"
    tree = varied_tree(tiny)
    expected = [_expected(reference, prompt, tree) for prompt in prompts]
    spread = torch.stack(expected).std(0)
    assert spread.min() > 0.1, "prompts must matter, or the comparison shows nothing"
    for i, prompt in enumerate(prompts):
        [alone] = score_one_pass(tiny, [prompt], [tree])
        torch.testing.assert_close(alone, expected[i], **TOLERANCE)
    for shift in range(len(prompts)):
        order = [(i + shift) % len(prompts) for i in range(len(prompts))]
        rows = score_one_pass(tiny, [prompts[i] for i in order], [tree] * len(order))
        for row, i in zip(rows, order, strict=True):
            torch.testing.assert_close(row, expected[i], **TOLERANCE)


def test_the_vocabulary_is_computed_at_the_slots_alone(
    tiny: Backbone, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    projected = list[tuple[int, ...]]()
    project = tiny.model.lm_head.forward

    def record(states: Tensor) -> Tensor:
        projected.append(tuple(states.shape))
        result: Tensor = project(states)
        return result

    monkeypatch.setattr(tiny.model.lm_head, "forward", record)
    prompts, tree = encode(tiny, mixed_requests(pictures)), varied_tree(tiny)
    score_one_pass(tiny, prompts, [tree] * len(prompts))
    hidden = tiny.model.get_input_embeddings().embedding_dim
    assert prompts[0].prefix_ids, "there must be an instruction to prefill"
    assert projected == [(len(prompts) * tree.num_slots, hidden)]


def test_rows_with_different_trees(tiny: Backbone, pictures: list[str]) -> None:
    reference = reference_model(tiny.name)
    prompts = encode(tiny, mixed_requests(pictures))
    small = Encoder(tiny).tree(["Correct", "Wrong"])
    trees = [small, varied_tree(tiny), small, varied_tree(tiny), small]
    for prompt, tree, row in zip(prompts, trees, score_one_pass(tiny, prompts, trees), strict=True):
        torch.testing.assert_close(row, _expected(reference, prompt, tree), **TOLERANCE)


def test_separate_instructions_equal_the_shared_one(tiny: Backbone, pictures: list[str]) -> None:
    prompts = encode(tiny, mixed_requests(pictures))
    trees = [varied_tree(tiny)] * len(prompts)
    shared = score_one_pass(tiny, prompts, trees)
    separate = score_one_pass(tiny, prompts, trees, share_prefix=False)
    torch.testing.assert_close(torch.stack(shared), torch.stack(separate), **TOLERANCE)


def test_rows_of_different_rubrics_need_their_own_instruction(tiny: Backbone) -> None:
    prompts = encode(tiny, [ask(), ask(variant="tolerance")])
    trees = [varied_tree(tiny)] * 2
    with pytest.raises(ValueError, match="must have the same instruction"):
        make_tree_batch(prompts, trees, 0)
    reference = reference_model(tiny.name)
    rows = score_one_pass(tiny, prompts, trees, share_prefix=False)
    for prompt, row in zip(prompts, rows, strict=True):
        torch.testing.assert_close(row, _expected(reference, prompt, trees[0]), **TOLERANCE)


def test_embedded_equals_brute_force(embedded: Backbone) -> None:
    reference = reference_model(str(embedded_folder()), "sdpa")
    prompts = encode(embedded, TEXT_ONLY[::2])
    tree = Encoder(embedded).tree(["Correct", "Wrong", "Wrong; Other"])
    expected = [_expected(reference, prompt, tree) for prompt in prompts]
    for rows in (
        [score_one_pass(embedded, [prompt], [tree])[0] for prompt in prompts],
        score_one_pass(embedded, prompts, [tree] * 2),
        score_one_pass(embedded, prompts, [tree] * 2, share_prefix=False),
    ):
        torch.testing.assert_close(torch.stack(rows), torch.stack(expected), **TOLERANCE)


def test_responses_that_share_a_row_do_not_see_each_other(
    tiny: Backbone, pictures: list[str]
) -> None:
    reference = reference_model(tiny.name)
    prompts = encode(tiny, [*same_question(pictures), TEXT_ONLY[0]])
    trees = [varied_tree(tiny), Encoder(tiny).tree(["Correct", "Wrong"])] * 3
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


def test_adapter_gradients_through_the_shared_instruction(
    tiny_folder: str, pictures: list[str]
) -> None:
    """One shared-prefix batch against the library's model, one plain row per label."""
    grafted = load_backbone(tiny_folder, dtype="float32", device="cpu")
    prompts = encode(grafted, mixed_requests(pictures))
    tree = varied_tree(grafted)
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
    prompts = encode(half, TEXT_ONLY[::2])
    tree = Encoder(half).tree(["Correct", "Wrong"])
    exact = torch.stack(score_one_pass(embedded, prompts, [tree] * 2))
    alone = torch.stack([score_one_pass(half, [prompt], [tree])[0] for prompt in prompts])
    together = torch.stack(score_one_pass(half, prompts, [tree] * 2))
    drift = (alone - together).abs().max().item()
    rounding = (alone - exact).abs().max().item()
    # One step of bfloat16 at a logit of 16 to 32 is 0.125; a label sums two or three tokens.
    assert drift < 0.5
    assert rounding < 1.0
