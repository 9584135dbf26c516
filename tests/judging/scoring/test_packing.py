"""Label trees, and rows and batches: every prompt once, sharing only what is the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import pack, pack_texts, trunk_length
from judging.scoring.prompts import EncodedPrompt

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


def _build(*token_ids: list[int]) -> LabelTree:
    return LabelTree.build([f"label {i}" for i in range(len(token_ids))], token_ids)


def test_trees_by_hand() -> None:
    tree = _build([1, 2, 3, END], [1, 2, 4, END], [1, 5, END], [1, 2, END])
    assert tree.node_tokens == (1, 2, 3, 4, 5)
    assert tree.node_parents == (-1, 0, 1, 1, 0)
    assert tree.depths() == [1, 2, 3, 3, 2]
    assert (tree.ancestors(3), tree.ancestors(4)) == ([3, 1, 0], [4, 0])
    # Slot 0 is the prompt's end; slot i + 1 is node i. One label ends where others go on.
    assert tree.paths[3] == ((0, 1), (1, 2), (2, END))
    assert tree.paths[0] == ((0, 1), (1, 2), (2, 3), (3, END))
    bare = _build([4], [5])
    assert (bare.node_tokens, bare.num_slots, bare.paths) == ((), 1, (((0, 4),), ((0, 5),)))


def test_errors() -> None:
    with pytest.raises(ValueError, match="at least one label"):
        LabelTree.build([], [])
    with pytest.raises(ValueError, match="each with its tokens"):
        LabelTree.build(["one", "two"], [[1, END]])
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
