"""Planning of batches: which prompts share a row, and which rows share a batch.

Benchmarks ask for verdicts on many models' answers to the same question. Prompts that begin alike
(same pictures, same question and references) share one row, which holds that beginning once.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeVar

import torch
from torch import Tensor

from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import EncodedPrompt
from judging.scoring.tree_batch import TreeBatch, TreeModel

MemberT = TypeVar("MemberT")

COLUMN_STEP = 8
ALIGNMENT_COST = 16
"""Tails start in one column if that makes the batch wider by at most one part in so many."""
PAIRS_PER_TOKEN = 1024
"""Pairs of a query and a key that may be computed in vain to save one token.

Attention between the responses of a row is masked, but computed. Counted in multiplications, one
layer of the embedded backbone spends on a token what it spends on 3,000 pairs; larger backbones
favour sharing more.
"""


def trunk_length(items: Sequence[Sequence[int]]) -> int:
    """Tell how many leading tokens a row of prompts shares, so that each keeps one of its own."""
    if len(items) == 1:
        return 0
    same = takewhile(lambda tokens: len(set(tokens)) == 1, zip(*items, strict=False))
    return min(sum(1 for _ in same), min(map(len, items)) - 1)


def pack(
    prompts: Sequence[EncodedPrompt], num_nodes: int, token_budget: int
) -> list[list[list[int]]]:
    """Plan batches of rows of prompts of one rubric: rows are lists of indices into ``prompts``.

    A batch has at most ``token_budget`` item tokens, padding included; a single longer prompt is a
    batch of its own. The widest rows come first, so that the largest batch is first and padding is
    least.
    """
    rows = _joined(prompts, num_nodes, token_budget)
    return _filled(sorted(rows, key=lambda entry: -entry[0]), token_budget)


def pack_apart(lengths: Sequence[int], tree: LabelTree, token_budget: int) -> list[list[list[int]]]:
    """Plan batches of prompts that share nothing and have a row for every leaf of the tree.

    As :func:`pack`, longest prompts first.
    """
    chains = tree.chains()
    depth = max(map(len, chains))
    longest_first = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    widths = [(len(chains) * (lengths[i] + depth), [i]) for i in longest_first]
    return _filled(widths, token_budget)


def pack_texts(lengths: Sequence[int], max_new_tokens: int, token_budget: int) -> list[list[int]]:
    """Plan batches of prompts after which texts are generated, shortest prompts first.

    The budget bounds the tokens, padding included, whose keys and values a batch remembers in the
    end.
    """
    shortest_first = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return _filled([(lengths[i] + max_new_tokens, i) for i in shortest_first], token_budget)


def _filled(
    widths_and_members: Iterable[tuple[int, MemberT]], token_budget: int
) -> list[list[MemberT]]:
    """Fill one batch after another up to the budget; padding makes its members equally wide."""
    batches: list[list[MemberT]] = []
    widest = 0
    for width, member in widths_and_members:
        widest = max(widest, width)
        if not batches or (len(batches[-1]) + 1) * widest > token_budget:
            batches.append([])
            widest = width
        batches[-1].append(member)
    return batches


def shared_rows(prompts: Sequence[EncodedPrompt], num_nodes: int) -> list[list[int]]:
    """Plan the rows of one batch: indices into ``prompts``, those that begin alike together.

    Where wide rows would make more padding than sharing saves, each prompt has its own row.
    """
    rows = _joined(prompts, num_nodes, token_budget=sys.maxsize)
    alone = [len(prompt.suffix_ids) + num_nodes for prompt in prompts]
    if len(rows) * max(width for width, _ in rows) > len(prompts) * max(alone):
        return [[index] for index in range(len(prompts))]
    return [row for _, row in rows]


def _joined(
    prompts: Sequence[EncodedPrompt], num_nodes: int, token_budget: int
) -> list[tuple[int, list[int]]]:
    """Return rows with their widths; neighbours in token order are joined if that saves work."""
    rows: list[tuple[int, list[int]]] = []
    trunk = 0
    for index in sorted(range(len(prompts)), key=lambda i: prompts[i].suffix_ids):
        alone = len(prompts[index].suffix_ids) + num_nodes
        if rows:
            width, members = rows[-1]
            last = prompts[members[-1]]
            shared = min(trunk, trunk_length([last.suffix_ids, prompts[index].suffix_ids]))
            joined = width + alone - shared + (trunk - shared) * (len(members) - 1)
            saved_tokens = width + alone - joined
            vain_pairs = joined**2 - width**2 - alone**2
            if (
                joined <= token_budget
                and vain_pairs < saved_tokens * PAIRS_PER_TOKEN
                and same_pictures(last, prompts[index])
            ):
                rows[-1] = (joined, [*members, index])
                trunk = shared
                continue
        rows.append((alone, [index]))
        trunk = len(prompts[index].suffix_ids)
    return rows


def same_pictures(left: EncodedPrompt, right: EncodedPrompt) -> bool:
    """Tell whether two prompts show the same pictures, or none."""
    return left.vision.keys() == right.vision.keys() and all(
        value.equal(right.vision[name]) for name, value in left.vision.items()
    )


def make_tree_batch(
    prompts: Sequence[EncodedPrompt],
    trees: Sequence[LabelTree],
    pad_id: int,
    *,
    rows: Sequence[Sequence[int]] | None = None,
    share_prefix: bool = True,
    column_step: int = COLUMN_STEP,
) -> TreeBatch:
    """Lay prompts and their trees out as rows of one batch.

    Each of ``rows`` has the indices of prompts with the same pictures; by default every prompt has
    its own. With ``share_prefix`` all prompts must have the same instruction, which is taken out of
    the rows; another one raises ``ValueError``. The number of columns is a multiple of
    ``column_step``.
    """
    prefix = prompts[0].prefix_ids if share_prefix else ()
    if share_prefix and any(prompt.prefix_ids != prefix for prompt in prompts):
        raise ValueError("rows that share a prefix must have the same instruction")
    rows = rows or [[index] for index in range(len(prompts))]
    layouts = [lay_out_row([(prompts[i], trees[i]) for i in row], share_prefix) for row in rows]
    num_causal, width = columns_of_rows(layouts, column_step)
    input_ids = torch.full((len(rows), width), pad_id)
    position_ids = torch.zeros(3, len(rows), width, dtype=torch.int64)
    # Padding has numbers after those of all tokens and is seen by nothing but itself.
    subtrees = torch.arange(width, 2 * width, dtype=torch.int32).repeat(2, len(rows), 1)
    columns = [layout.columns(num_causal) for layout in layouts]
    for b, (layout, places) in enumerate(zip(layouts, columns, strict=True)):
        input_ids[b, places] = layout.tokens
        position_ids[:, b, places] = layout.positions
        subtrees[0, b, places] = torch.arange(len(places), dtype=torch.int32)
        subtrees[1, b, places] = layout.last
    slots_by_row = [
        [places[slots] for slots in layout.slots]
        for layout, places in zip(layouts, columns, strict=True)
    ]
    logit_columns, slots = _index_slots(slots_by_row, rows, max(tree.num_slots for tree in trees))
    pictures = [vision for row in rows if (vision := prompts[row[0]].vision)]
    names = pictures[0] if pictures else ()
    return TreeBatch(
        torch.tensor(prefix, dtype=torch.int64),
        input_ids,
        position_ids,
        subtrees,
        num_causal,
        logit_columns,
        slots,
        {name: torch.cat([vision[name] for vision in pictures]) for name in names},
    )


def _index_slots(
    slots_by_row: Sequence[Sequence[Tensor]], rows: Sequence[Sequence[int]], num_slots: int
) -> tuple[Tensor, Tensor]:
    """Return ``logit_columns`` and ``slots`` of a batch, given the columns of all slots."""
    num_prompts = sum(map(len, rows))
    num_columns = max(sum(map(len, row)) for row in slots_by_row)
    logit_columns = torch.zeros(len(rows), num_columns, dtype=torch.int64)
    slots = torch.zeros(num_prompts, num_slots, dtype=torch.int64)
    for b, (row, members) in enumerate(zip(slots_by_row, rows, strict=True)):
        start = 0
        for index, columns in zip(members, row, strict=True):
            end = start + len(columns)
            logit_columns[b, start:end] = columns
            slots[index, : len(columns)] = b * num_columns + torch.arange(start, end)
            start = end
    return logit_columns, slots


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
    """Lay out the prompts of a row, each followed by its tree, with or without the instruction."""
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
