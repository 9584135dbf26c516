import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.scoring.label_tree import LabelTree

END = 99


def _build(*token_ids: list[int]) -> LabelTree:
    return LabelTree.build([f"label {i}" for i in range(len(token_ids))], token_ids)


def test_labels_with_nothing_in_common() -> None:
    tree = _build([1, END], [2, 3, END])
    assert tree.node_tokens == (1, 2, 3)
    assert tree.node_parents == (-1, -1, 1)
    # Slot 0 is the prompt's end; slot i + 1 is node i.
    assert tree.paths == (((0, 1), (1, END)), ((0, 2), (2, 3), (3, END)))
    assert tree.depths() == [1, 1, 2]
    assert tree.num_slots == 4


def test_shared_prefixes_are_laid_out_once() -> None:
    tree = _build([1, 2, 3, END], [1, 2, 4, END], [1, 5, END])
    assert tree.node_tokens == (1, 2, 3, 4, 5)
    assert tree.node_parents == (-1, 0, 1, 1, 0)
    assert tree.depths() == [1, 2, 3, 3, 2]
    assert tree.ancestors(3) == [3, 1, 0]
    assert tree.ancestors(4) == [4, 0]


def test_a_label_may_begin_another() -> None:
    tree = _build([1, 2, END], [1, 2, 3, END])
    assert tree.node_tokens == (1, 2, 3)
    # Both are told apart at the same slot: one ends there, the other goes on.
    assert tree.paths[0][2] == (2, END)
    assert tree.paths[1][2] == (2, 3)


def test_same_token_under_different_parents_is_two_nodes() -> None:
    tree = _build([1, 3, END], [2, 3, END])
    assert tree.node_tokens == (1, 3, 2, 3)
    assert tree.node_parents == (-1, 0, -1, 2)


def test_single_label() -> None:
    tree = _build([4, END])
    assert tree.node_tokens == (4,)
    assert tree.paths == (((0, 4), (1, END)),)


def test_labels_of_one_token_need_no_nodes() -> None:
    tree = _build([4], [5])
    assert tree.node_tokens == ()
    assert tree.num_slots == 1
    assert tree.depths() == []
    assert tree.paths == (((0, 4),), ((0, 5),))


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
def test_every_path_spells_its_label_along_parents(labels: list[tuple[int, ...]]) -> None:
    tree = LabelTree.build([str(ids) for ids in labels], labels)
    for ids, path in zip(labels, tree.paths, strict=True):
        assert tuple(token for _, token in path) == ids
        assert path[0][0] == 0
        for (slot, token), (next_slot, _) in zip(path, path[1:], strict=False):
            node = next_slot - 1
            assert tree.node_tokens[node] == token
            assert tree.node_parents[node] == slot - 1


@given(_LABELS)
def test_one_node_per_distinct_proper_prefix(labels: list[tuple[int, ...]]) -> None:
    tree = LabelTree.build([str(ids) for ids in labels], labels)
    prefixes = {ids[:length] for ids in labels for length in range(1, len(ids))}
    spelled = {
        tuple(tree.node_tokens[a] for a in reversed(tree.ancestors(node)))
        for node in range(len(tree.node_tokens))
    }
    assert spelled == prefixes
    assert len(tree.node_tokens) == len(prefixes)
    assert tree.num_slots == len(prefixes) + 1


@given(_LABELS)
def test_parents_come_first_and_depth_counts_them(labels: list[tuple[int, ...]]) -> None:
    tree = LabelTree.build([str(ids) for ids in labels], labels)
    depths = tree.depths()
    for node, parent in enumerate(tree.node_parents):
        assert parent < node
        assert depths[node] == (depths[parent] + 1 if parent >= 0 else 1)
