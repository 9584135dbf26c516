"""Layout of one row of a batch: its tokens in the order in which a tree is walked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import trunk_length
from judging.scoring.prompts import EncodedPrompt

ALIGNMENT_COST = 16
"""Tails start in one column if that makes the batch wider by at most one part in so many."""


@dataclass(frozen=True)
class RowLayout:
    """Tokens of a row without padding, in preorder; ``n`` is their number."""

    tokens: Tensor
    """``[n]`` int64."""
    positions: Tensor
    """``[3, n]`` int64."""
    last: Tensor
    """``[n]`` int32: number of the last token that sees each token."""
    head: int
    """Tokens from the first that see all tokens before them."""
    slots: list[Tensor]
    """Numbers of the tokens at each prompt's slots."""

    def columns(self, num_causal: int) -> Tensor:
        """Return the column of each token, ``[n]``: the tail starts at ``num_causal`` or later."""
        columns = torch.arange(len(self.tokens))
        columns[self.head :] += max(0, num_causal - self.head)
        return columns


def lay_out_row(
    members: Sequence[tuple[EncodedPrompt, LabelTree]], share_prefix: bool
) -> RowLayout:
    """Lay out the prompts of a row, each followed by its tree.

    Args:
        members: Prompts with their trees.
        share_prefix: Leave the instruction out; otherwise the row starts with it.
    """
    items = [p.suffix_ids if share_prefix else (*p.prefix_ids, *p.suffix_ids) for p, _ in members]
    trunk = trunk_length(items)
    tokens = [torch.tensor(items[0][:trunk], dtype=torch.int64)]
    positions = [members[0][0].positions[:, -len(items[0]) :][:, :trunk]]
    last, slots, start = [], [], trunk
    for item, (prompt, tree) in zip(items, members, strict=True):
        item_positions = prompt.positions[:, -len(item) :]
        end, nodes = start + len(item) - trunk, len(tree.node_tokens)
        subtrees = torch.tensor(tree.subtrees(), dtype=torch.int64).view(-1, 2)
        order = subtrees[:, 0].argsort()
        depths = torch.tensor(tree.depths(), dtype=torch.int64)[order]
        tokens.append(torch.tensor(item[trunk:], dtype=torch.int64))
        tokens.append(torch.tensor(tree.node_tokens, dtype=torch.int64)[order])
        positions.append(item_positions[:, trunk:])
        positions.append((item_positions.max() + depths).expand(3, nodes))
        last.append(torch.full((end - start,), end + nodes - 1))
        last.append(end + subtrees[order, 1])
        slots.append(torch.cat([torch.tensor([end - 1]), end + subtrees[:, 0]]))
        start = end + nodes
    first_tree = members[0][1]
    return RowLayout(
        torch.cat(tokens),
        torch.cat(positions, dim=1),
        torch.cat([torch.full((trunk,), start - 1), *last]).int(),
        len(items[0]) + (len(first_tree.node_tokens) if first_tree.is_chain else 0),
        slots,
    )


def columns_of_rows(layouts: Sequence[RowLayout], column_step: int) -> tuple[int, int]:
    """Return in how many columns all tokens are causal, and the number of columns."""
    heads = [layout.head for layout in layouts]
    widths = [len(layout.tokens) for layout in layouts]
    aligned = max(heads) + max(w - head for w, head in zip(widths, heads, strict=True))
    is_aligned = (aligned - max(widths)) * ALIGNMENT_COST <= max(widths)
    num_causal = max(heads) if is_aligned else min(heads)
    # Few distinct widths, as CPU kernels are made per shape.
    width = -(-(aligned if is_aligned else max(widths)) // column_step) * column_step
    return (width if heads == widths else num_causal), width
