"""Rows of label trees against plain passes, and how prompts are packed into them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from judging.models import attention
from judging.models.attention import FUSED, GROUPED
from judging.models.backbones import Backbone, load_backbone
from judging.models.fetched import embedded_folder
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import make_tree_batch, pack, pack_texts, trunk_length
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.scoring.tree_batch import TreeBatch, TreeModel, label_logprobs
from tests.judging.made_up import ask, moved_adapter
from tests.judging.scoring.made_up import (
    TEXT_ONLY,
    TOLERANCE,
    encode,
    mixed_requests,
    same_question,
    score_one_pass,
    varied_tree,
)
from tests.tiny import brute_force, plain_logprob, reference_model


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
    prompts = encode(embedded, TEXT_ONLY[:1])
    tree = Encoder(embedded).tree(["Wrong", "Wrong; Other"])
    expected = [_expected(reference, prompt, tree) for prompt in prompts]
    for rows in (
        score_one_pass(embedded, prompts, [tree]),
        score_one_pass(embedded, prompts, [tree], share_prefix=False),
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
        # A fresh adapter is zero in B, which would hide the gradients of A.
        adapted = moved_adapter(model, seed=5, size=0.1)
        if model is grafted.model:
            batch = make_tree_batch(prompts, [tree] * 5, grafted.tokenizer.pad_token_id)
            logprobs = label_logprobs(TreeModel(adapted)(batch), tree)
            chosen = logprobs[torch.arange(5), torch.tensor(targets)]
            (-chosen.sum() / 5).backward()
        else:
            for prompt, target in zip(prompts, targets, strict=True):
                ids, label = prompt.prefix_ids + prompt.suffix_ids, tree.paths[target]
                tokens = [token for _, token in label]
                (-plain_logprob(adapted, ids, tokens, prompt.vision) / 5).backward()
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


WAYS = ("dense", "split", "fused")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let short rows take the way of long ones or of GPUs."""
    if request.param != "dense":
        monkeypatch.setattr(attention, "FEW_PAIRS", 0)
    return str(request.param)


def _text_attention(model: Any, name: str) -> None:
    model.set_attn_implementation({"text_config": name, "vision_config": "sdpa"})


@pytest.fixture
def backbone(tiny_folder: str) -> Backbone:
    return load_backbone(tiny_folder, dtype="float32", device="cpu")


def _chain(length: int, seed: int) -> LabelTree:
    tokens = torch.randint(20, 200, (length,), generator=torch.Generator().manual_seed(seed))
    return LabelTree.build(["text"], [tokens.tolist()])


def _batches(
    backbone: Backbone, pictures: list[str], share_prefix: bool
) -> list[tuple[list[EncodedPrompt], list[LabelTree], TreeBatch]]:
    """Trees of one size and of several, texts, and rows that hold several prompts."""
    mixed, same = mixed_requests(pictures), [*same_question(pictures), TEXT_ONLY[0]]
    small = Encoder(backbone).tree(["Correct", "Wrong"])
    wide = varied_tree(backbone)
    cases = [
        (mixed, [wide] * 5, None),
        (mixed, [small, wide, _chain(9, 1), small, _chain(1, 2)], None),
        (mixed, [_chain(length, length) for length in (3, 1, 12, 7, 2)], None),
        (same, [wide, small] * 3, [[4, 1, 0], [5], [3, 2]]),
        (same, [_chain(4, 3)] * 6, [[4, 1, 0], [5], [3, 2]]),
    ]
    batches = []
    for requests, trees, rows in cases:
        prompts = encode(backbone, requests)
        pad = backbone.tokenizer.pad_token_id
        batch = make_tree_batch(prompts, trees, pad, rows=rows, share_prefix=share_prefix)
        batches.append((prompts, trees, batch))
    return batches


def test_branches_need_a_mask_of_their_own_tokens_only(
    backbone: Backbone, pictures: list[str]
) -> None:
    prompts = encode(backbone, mixed_requests(pictures))
    tree = varied_tree(backbone)
    batch = make_tree_batch(prompts, [tree] * 5, backbone.tokenizer.pad_token_id)
    assert batch.num_causal == max(len(prompt.suffix_ids) for prompt in prompts)
    texts = [_chain(length, length) for length in (3, 1, 12, 7, 2)]
    causal = make_tree_batch(prompts, texts, backbone.tokenizer.pad_token_id)
    assert causal.num_causal == causal.input_ids.shape[1], "texts need none"
    nodes = len(tree.node_tokens)
    assert batch.input_ids.shape[1] - batch.num_causal in range(nodes, nodes + 8)


def test_what_a_token_sees_follows_from_its_ancestors(
    backbone: Backbone, pictures: list[str]
) -> None:
    """Token by token: the row's trunk, its own prompt, its own ancestors and itself."""
    tree, prompts = varied_tree(backbone), encode(backbone, same_question(pictures))
    batch = make_tree_batch(prompts, [tree] * 5, 0, rows=[[4, 1, 0], [3, 2]], share_prefix=False)
    visible = batch.visible()
    flat_columns = batch.logit_columns.flatten()
    row_of = [0, 0, 1, 1, 0]
    for i, prompt in enumerate(prompts):
        columns = flat_columns[batch.slots[i]].tolist()
        tokens = (*prompt.prefix_ids, *prompt.suffix_ids)
        for node in range(len(tree.node_tokens)):
            seen = visible[row_of[i], columns[node + 1]].nonzero().flatten()
            ancestors = tree.ancestors(node)
            assert {columns[a + 1] for a in ancestors} <= set(seen.tolist())
            path = [tree.node_tokens[a] for a in reversed(ancestors)]
            assert batch.input_ids[row_of[i], seen].tolist() == [*tokens, *path]


@pytest.mark.parametrize("share_prefix", [True, False])
def test_gradients_equal_those_under_the_librarys_eager_attention(
    backbone: Backbone, pictures: list[str], way: str, share_prefix: bool
) -> None:
    adapted = _adapted(backbone)
    for _, trees, batch in _batches(backbone, pictures, share_prefix):
        _text_attention(backbone.model, "eager")
        expected = _gradients(TreeModel(adapted), batch, trees)
        _text_attention(backbone.model, FUSED if way == "fused" else GROUPED)
        found = _gradients(TreeModel(adapted), batch, trees)
        _assert_same(found, expected)


@pytest.mark.filterwarnings("error")
def test_checkpointed_gradients_flow_through_the_shared_instruction(
    backbone: Backbone, pictures: list[str], way: str
) -> None:
    _text_attention(backbone.model, FUSED if way == "fused" else GROUPED)
    adapted = _adapted(backbone)
    batches = _batches(backbone, pictures, share_prefix=True)[1::2]
    kept = [_gradients(TreeModel(adapted).train(), batch, trees) for _, trees, batch in batches]
    model = TreeModel(adapted).train()
    model.checkpoint_activations()
    for (_, trees, batch), expected in zip(batches, kept, strict=True):
        assert len(batch.prefix_ids)
        _assert_same(_gradients(model, batch, trees), expected)


def test_checkpointing_recomputes_activations(backbone: Backbone, pictures: list[str]) -> None:
    """Fewer numbers are kept for the backward pass, with the shared instruction too."""
    batch = _batches(backbone, pictures, share_prefix=True)[0][2]
    model = TreeModel(_adapted(backbone)).train()
    sizes = [_kept_numbers(model, batch)]
    model.checkpoint_activations()
    sizes.append(_kept_numbers(model, batch))
    assert sizes[1] < 0.5 * sizes[0]


def _kept_numbers(model: TreeModel, batch: TreeBatch) -> int:
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model.hidden(batch).sum()
    assert loss.requires_grad
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    return sum(size for pointer, size in kept.items() if pointer not in weights)


def _adapted(backbone: Backbone) -> Any:
    return moved_adapter(backbone.model, seed=5, size=0.1)


def _gradients(model: TreeModel, batch: TreeBatch, trees: list[LabelTree]) -> dict[str, Tensor]:
    model.zero_grad()
    rows = zip(model(batch), trees, strict=True)
    logits = torch.cat([row[: tree.num_slots] for row, tree in rows])
    targets = torch.arange(len(logits)) % 300
    loss = torch.nn.functional.cross_entropy(logits, targets)
    loss.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return {"loss": loss.detach(), **gradients}


def _assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    assert len(found) == 1 + 2 * 7 * 2  # the loss; A and B of seven projections in two layers
    for name, gradient in expected.items():
        assert gradient.abs().max() > 1e-5, f"{name} is zero"
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-5)


# A few tokens and repeated beginnings, so that sharing is common.
TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=60)


def _prompt(suffix: Sequence[int], picture: float | None = None) -> EncodedPrompt:
    vision = {} if picture is None else {"pixel_values": torch.full((4, 8), picture)}
    positions = torch.arange(len(suffix)).expand(3, -1)
    return EncodedPrompt((), tuple(suffix), positions, vision, False)


def _columns(prompts: Sequence[EncodedPrompt], row: Sequence[int], num_nodes: int) -> int:
    trunk = trunk_length([prompts[i].suffix_ids for i in row])
    return trunk + sum(len(prompts[i].suffix_ids) - trunk + num_nodes for i in row)


@given(
    beginnings=st.lists(TOKENS, min_size=1, max_size=3),
    endings=st.lists(st.tuples(st.integers(0, 2), TOKENS), min_size=1, max_size=20),
    num_nodes=st.integers(0, 20),
    token_budget=st.integers(1, 600),
)
def test_every_prompt_once_within_the_budget_and_never_more_columns(
    beginnings: list[list[int]],
    endings: list[tuple[int, list[int]]],
    num_nodes: int,
    token_budget: int,
) -> None:
    prompts = [_prompt([*beginnings[which % len(beginnings)], *rest]) for which, rest in endings]
    batches = pack(prompts, num_nodes, token_budget)
    rows = [row for batch in batches for row in batch]
    assert sorted(i for row in rows for i in row) == list(range(len(prompts)))
    for batch in batches:
        widest = max(_columns(prompts, row, num_nodes) for row in batch)
        assert widest * len(batch) <= token_budget or (len(batch) == 1 and len(batch[0]) == 1)
    alone = sum(len(prompt.suffix_ids) + num_nodes for prompt in prompts)
    assert sum(_columns(prompts, row, num_nodes) for row in rows) <= alone


def test_responses_to_one_question_share_a_row_in_any_order() -> None:
    questions = [list(range(start, start + 40)) for start in (100, 200)]
    prompts = [_prompt([*questions[i % 2], 1000 + i, 1001]) for i in range(10)]
    [batch] = pack(prompts, 3, 4096)
    assert sorted(sorted(row) for row in batch) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


def test_different_pictures_never_share_a_row() -> None:
    same = [_prompt([*range(50), 7], 1.0), _prompt([*range(50), 8], 1.0)]
    [batch] = pack(same, 3, 4096)
    assert [sorted(row) for row in batch] == [[0, 1]]
    for other in (2.0, None):
        differ = [_prompt([*range(50), 7], 1.0), _prompt([*range(50), 8], other)]
        [batch] = pack(differ, 3, 4096)
        assert sorted(batch) == [[0], [1]]


def test_equal_prompts_keep_a_token_each() -> None:
    assert trunk_length([(1, 2, 3), (1, 2, 3)]) == 2
    assert trunk_length([(1, 2, 3), (1, 2)]) == 1
    assert trunk_length([(1, 2, 3)]) == 0


@given(
    lengths=st.lists(st.integers(1, 300), max_size=30),
    max_new_tokens=st.integers(1, 200),
    token_budget=st.integers(1, 2000),
)
def test_texts_are_drawn_together_within_the_budget(
    lengths: list[int], max_new_tokens: int, token_budget: int
) -> None:
    batches = pack_texts(lengths, max_new_tokens, token_budget)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        width = max(lengths[index] for index in batch) + max_new_tokens
        assert len(batch) == 1 or len(batch) * width <= token_budget
    for batch, following in pairwise(batches):
        width = lengths[following[0]] + max_new_tokens
        assert (len(batch) + 1) * width > token_budget, "a batch was closed before it was full"


END = 99


def test_errors() -> None:
    with pytest.raises(ValueError, match="labels must differ in their tokens: yes, Yes"):
        LabelTree.build(["yes", "Yes"], [[1, END], [1, END]])


# Few token values, so that prefixes collide often.
_LABELS = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=5).map(lambda ids: (*ids, END)),
    min_size=1,
    max_size=12,
    unique=True,
)


@given(_LABELS)
def test_one_node_per_distinct_proper_prefix(labels: list[tuple[int, ...]]) -> None:
    tree = LabelTree.build([str(ids) for ids in labels], labels)
    for ids, path in zip(labels, tree.paths, strict=True):
        assert tuple(token for _, token in path) == ids
        assert path[0][0] == 0
        for (slot, token), (next_slot, _) in zip(path, path[1:], strict=False):
            node = next_slot - 1
            assert tree.node_tokens[node] == token
            assert tree.node_parents[node] == slot - 1
    prefixes = {ids[:length] for ids in labels for length in range(1, len(ids))}
    spelled = {
        tuple(tree.node_tokens[a] for a in reversed(tree.ancestors(node)))
        for node in range(len(tree.node_tokens))
    }
    assert spelled == prefixes
    assert len(tree.node_tokens) == tree.num_slots - 1 == len(prefixes)
    depths = tree.depths()
    for node, parent in enumerate(tree.node_parents):
        assert parent < node
        assert depths[node] == (depths[parent] + 1 if parent >= 0 else 1)
