import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.scoring.label_tree import LabelTree

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
