"""The label tree: every label of a task, end token included, as one tree of tokens after a prompt.

A node is a token that a label continues from. It sees the prompt and its own ancestors, and its
position is ``prompt end + depth``, so one forward pass yields the log-probability of every label.
A label's last token is its end token, which is scored but never fed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LabelTree:
    """Tokens of a label set laid out as a tree.

    Next-token logits are read at *slots*: slot 0 is the prompt's last token, and slot ``i + 1`` is
    node ``i``.
    """

    labels: tuple[str, ...]
    node_tokens: tuple[int, ...]
    """Token fed at each node, parents before children."""
    node_parents: tuple[int, ...]
    """Index of each node's parent node, ``-1`` for the prompt's end."""
    paths: tuple[tuple[tuple[int, int], ...], ...]
    """For each label its scoring tokens, as ``(slot whose logits predict it, token id)``."""

    @classmethod
    def build(cls, labels: Sequence[str], token_ids: Sequence[Sequence[int]]) -> LabelTree:
        """Lay out labels given the different tokens of each, end token included."""
        if len({tuple(ids) for ids in token_ids}) != len(labels):
            raise ValueError(f"labels must differ in their tokens: {', '.join(labels)}")
        tokens: list[int] = []
        parents: list[int] = []
        children: dict[tuple[int, int], int] = {}
        paths = []
        for ids in token_ids:
            parent, path = -1, []
            for depth, token in enumerate(ids):
                path.append((parent + 1, token))
                if depth == len(ids) - 1:
                    break
                if (parent, token) not in children:
                    children[parent, token] = len(tokens)
                    tokens.append(token)
                    parents.append(parent)
                parent = children[parent, token]
            paths.append(tuple(path))
        return cls(tuple(labels), tuple(tokens), tuple(parents), tuple(paths))

    @property
    def num_slots(self) -> int:
        """Count the slots: the prompt's end and every node."""
        return len(self.node_tokens) + 1

    @property
    def is_chain(self) -> bool:
        """Tell whether every node but the last has one child, so that the tree is a text."""
        return all(parent == node - 1 for node, parent in enumerate(self.node_parents))

    def ancestors(self, node: int) -> list[int]:
        """Return the node itself and its ancestors, nearest first."""
        ancestors = []
        while node >= 0:
            ancestors.append(node)
            node = self.node_parents[node]
        return ancestors

    def chains(self) -> list[list[int]]:
        """Return the nodes from the root to every leaf; one empty chain if there are no nodes."""
        leaves = sorted(set(range(len(self.node_tokens))) - set(self.node_parents))
        return [self.ancestors(leaf)[::-1] for leaf in leaves] or [[]]

    def depths(self) -> list[int]:
        """Return the position of each node after the prompt's last token, from 1."""
        depths: list[int] = []
        for parent in self.node_parents:
            depths.append(1 if parent < 0 else depths[parent] + 1)
        return depths

    def subtrees(self) -> list[tuple[int, int]]:
        """Return the first and the last number of each node's subtree, the node itself first.

        Nodes are numbered from 0 in preorder, so the numbers of a subtree have no gap: a node sees
        exactly the nodes whose subtree its own number lies in.
        """
        sizes = [1] * len(self.node_tokens)
        for node in range(len(sizes) - 1, -1, -1):
            if self.node_parents[node] >= 0:
                sizes[self.node_parents[node]] += sizes[node]
        free = [0] * self.num_slots  # the next number below each slot
        ranges = []
        for node, parent in enumerate(self.node_parents):
            first = free[parent + 1]
            free[parent + 1] += sizes[node]
            free[node + 1] = first + 1
            ranges.append((first, first + sizes[node] - 1))
        return ranges
