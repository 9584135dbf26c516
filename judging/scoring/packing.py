"""Planning of batches: which prompts share a row, and which rows share a batch.

Benchmarks ask for verdicts on many models' answers to the same question. Prompts that begin alike
(same pictures, same question and references) share one row, which holds that beginning once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import takewhile

from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import EncodedPrompt

PAIRS_PER_TOKEN = 1024
"""Pairs of a query and a key that may be computed in vain to save one token.

Attention between the responses of a row is masked, but computed. Counted in multiplications, one
layer of the embedded backbone spends on a token what it spends on 3,000 pairs; larger backbones
favour sharing more.
"""


def trunk_length(items: Sequence[Sequence[int]]) -> int:
    """Return how many leading tokens a row of prompts shares, so that each keeps one of its own."""
    if len(items) == 1:
        return 0
    same = takewhile(lambda tokens: len(set(tokens)) == 1, zip(*items, strict=False))
    return min(sum(1 for _ in same), min(map(len, items)) - 1)


def pack(
    prompts: Sequence[EncodedPrompt], num_nodes: int, token_budget: int
) -> list[list[list[int]]]:
    """Plan batches of rows of prompts.

    Args:
        prompts: Prompts of one rubric.
        num_nodes: Label-tree tokens after every prompt.
        token_budget: Most item tokens (padding included) of a batch; a single longer prompt is a
            batch of its own.

    Returns:
        Batches, each a list of rows, each a list of indices into ``prompts``. The widest rows come
        first, so that the largest batch is first and padding is least.
    """
    rows = _joined(prompts, num_nodes, token_budget)
    batches: list[list[list[int]]] = []
    widest = 0
    for columns, row in sorted(rows, key=lambda entry: -entry[0]):
        if not batches or (len(batches[-1]) + 1) * widest > token_budget:
            batches.append([])
            widest = columns
        batches[-1].append(row)
    return batches


def pack_apart(lengths: Sequence[int], tree: LabelTree, token_budget: int) -> list[list[list[int]]]:
    """Plan batches of prompts that share nothing and have a row for every leaf of the tree.

    Args:
        lengths: Tokens of each prompt.
        tree: Label tree after every prompt.
        token_budget: As in :func:`pack`.

    Returns:
        As :func:`pack`, longest prompts first.
    """
    chains = tree.chains()
    depth = max(map(len, chains))
    batches: list[list[list[int]]] = []
    widest = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if not batches or (len(batches[-1]) + 1) * len(chains) * widest > token_budget:
            batches.append([])
            widest = lengths[index] + depth
        batches[-1].append([index])
    return batches


def pack_texts(lengths: Sequence[int], max_new_tokens: int, token_budget: int) -> list[list[int]]:
    """Plan batches of prompts after which texts are generated.

    Args:
        lengths: Tokens of each prompt, with its instruction.
        max_new_tokens: Most tokens of a text.
        token_budget: Most tokens (padding included) whose keys and values a batch remembers in the
            end; a single longer prompt is a batch of its own.

    Returns:
        Batches, each a list of indices into ``lengths``, shortest prompts first.
    """
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        width = lengths[index] + max_new_tokens
        if not batches or (len(batches[-1]) + 1) * width > token_budget:
            batches.append([])
        batches[-1].append(index)
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
    """Return whether two prompts show the same pictures, or none."""
    return left.vision.keys() == right.vision.keys() and all(
        value.equal(right.vision[name]) for name, value in left.vision.items()
    )
