"""Batches for any backbone: label trees where attention masks allow branches, chains elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import EncodedPrompt
from judging.scoring.tree_batch import TreeBatch, TreeModel, make_tree_batch


def lay_out(
    model: TreeModel,
    prompts: Sequence[EncodedPrompt],
    trees: Sequence[LabelTree],
    pad_id: int,
    *,
    rows: Sequence[Sequence[int]] | None = None,
    share_prefix: bool = True,
) -> TreeBatch:
    """Lay prompts out for a model: :func:`make_tree_batch`, or chains if it is recurrent."""
    if model.is_recurrent:
        return make_chain_batch(prompts, trees, pad_id)
    return make_tree_batch(prompts, trees, pad_id, rows=rows, share_prefix=share_prefix)


def make_chain_batch(
    prompts: Sequence[EncodedPrompt], trees: Sequence[LabelTree], pad_id: int
) -> TreeBatch:
    """Lay prompts out for recurrent layers, which read every column from left to right.

    They know no branches: a prompt has a row of its own for every leaf of its tree, and each row
    starts with the instruction. Only padding comes after a row's end.
    """
    row_prompts, row_trees, chains = [], [], []
    for index, tree in enumerate(trees):
        for nodes in tree.chains():
            tokens = tuple(tree.node_tokens[node] for node in nodes)
            row_prompts.append(prompts[index])
            row_trees.append(LabelTree((), tokens, tuple(range(-1, len(nodes) - 1)), ()))
            chains.append((index, nodes))
    batch = make_tree_batch(row_prompts, row_trees, pad_id, share_prefix=False, column_step=1)
    slots = torch.zeros(len(prompts), max(tree.num_slots for tree in trees), dtype=torch.int64)
    for row, (index, nodes) in enumerate(chains):
        for depth, node in enumerate([-1, *nodes]):
            slots[index, node + 1] = batch.slots[row, depth]
    return replace(batch, slots=slots)
