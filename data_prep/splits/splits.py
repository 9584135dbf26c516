"""Train, validation, calibration and test splits that share no question.

Whole clusters of questions (``near_duplicates``) are dealt to the splits so that every split gets
its share of every label. The result depends on the set of examples and the seed, not on their
order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from data_prep.splits.near_duplicates import cluster_examples, cluster_together
from judging.errors import CustosError
from judging.types import LabelledExample, Split

SPLITS: tuple[Split, ...] = get_args(Split)

Splits = dict[Split, list[LabelledExample]]

T = TypeVar("T")


class HeldOut(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Sizes of the held-out splits. Below 1: a share of the examples; otherwise: a number."""

    val: float = Field(default=0.05, ge=0)
    """For choosing between runs and checkpoints."""
    cal: float = Field(default=0.07, ge=0)
    """For fitting calibration; no selection ever sees it."""
    test: float = Field(default=0.12, ge=0)

    def targets(self, num_examples: int) -> dict[Split, float]:
        """Compute the number of examples in each split; training gets what the others leave.

        Raise ``CustosError`` if a size is neither a share nor whole, or nothing is left to train
        on.
        """
        amounts: dict[Split, float] = {"val": self.val, "cal": self.cal, "test": self.test}
        sizes: dict[Split, float] = {}
        for split, amount in amounts.items():
            if amount >= 1 and amount != int(amount):
                raise CustosError(
                    f"{split} size {amount}: give a share below 1 or a whole number of examples"
                )
            sizes[split] = amount * num_examples if amount < 1 else amount
        num_train = num_examples - sum(sizes.values())
        if num_train <= 0:
            raise CustosError(
                f"val {self.val:g}, cal {self.cal:g} and test {self.test:g} leave none of "
                f"{num_examples} examples for training; ask for less"
            )
        return {"train": num_train, **sizes}


def split_examples(
    examples: Sequence[LabelledExample], held_out: HeldOut | None = None, seed: int = 0
) -> Splits:
    """Deal examples to the four splits, cluster by cluster.

    Sizes and label shares come as near to the targets as whole clusters permit. Examples come back
    with ``split`` set and ``group`` set to their cluster, each split in an order fixed by the seed,
    so that the head of a file is a random sample of it. Raise ``CustosError`` if there are no
    examples, or the held-out splits leave none for training.
    """
    if not examples:
        raise CustosError("there are no labelled examples to split")
    targets = (held_out or HeldOut()).targets(len(examples))
    clusters = cluster_examples(examples)
    split_of = _deal(clusters, [example.label for example in examples], targets, seed)
    members = list(zip(examples, clusters, strict=True))
    return {
        split: as_split(split, [pair for pair in members if split_of[pair[1]] == split], seed)
        for split in SPLITS
    }


def all_to_test(examples: Sequence[LabelledExample], seed: int = 0) -> Splits:
    """Put all examples into the test split, in an order fixed by the seed, grouped by cluster."""
    test = as_split("test", zip(examples, cluster_examples(examples), strict=True), seed)
    return {**{split: [] for split in SPLITS}, "test": test}


def split_beside_test(
    examples: Sequence[LabelledExample],
    test: Sequence[LabelledExample],
    held_out: HeldOut | None = None,
    seed: int = 0,
) -> tuple[Splits, int]:
    """Split examples into train, val and cal beside a test split that is already chosen.

    Shares of ``held_out`` are of all examples. Examples that share a cluster with the test are left
    out, and their number is returned too. Raise ``CustosError`` if nothing remains to split or to
    train on.
    """
    test_clusters, clusters = cluster_together(test, examples)
    in_test = set(test_clusters)
    kept = [row for row, name in zip(examples, clusters, strict=True) if name not in in_test]
    sizes = (held_out or HeldOut()).targets(len(examples) + len(test))
    beside = HeldOut(val=round(sizes["val"]), cal=round(sizes["cal"]), test=0)
    splits = split_examples(kept, beside, seed)
    splits["test"] = as_split("test", zip(test, test_clusters, strict=True), seed)
    return splits, len(examples) - len(kept)


def as_split(
    split: Split, clustered: Iterable[tuple[LabelledExample, str]], seed: int
) -> list[LabelledExample]:
    """Make a split of rows and their clusters, which become ``group``; the seed fixes the order."""
    rows = (row.model_copy(update={"split": split, "group": name}) for row, name in clustered)
    return shuffled(rows, seed)


def split_made(
    make: Callable[[int, Literal["train", "test"]], Iterable[LabelledExample]],
    num_rows: int,
    held_out: HeldOut,
    seed: int = 0,
) -> tuple[Splits, int]:
    """Make examples with other wordings for the test split, and split the rest.

    ``make`` makes a number of examples in the wordings of ``train`` or of ``test``; ``num_rows``
    counts all splits together. Returns too how many were left out as too like the test.
    """
    num_test = round(held_out.targets(num_rows)["test"])
    made = list(make(num_rows - num_test, "train"))
    return split_beside_test(made, list(make(num_test, "test")), held_out, seed)


def fill_by_group(
    rows: Sequence[T], group_of: Callable[[T], str], sizes: Mapping[Split, float], seed: int
) -> dict[Split, list[T]]:
    """Deal whole groups, in random order, to val until it is full, then to cal, then to train.

    Labels are not balanced, and only equal groups are kept together: for rows drawn from a
    generator, which has no near-duplicates by chance. A group may exceed the size of its split.
    """
    groups: dict[str, list[T]] = {}
    for row in rows:
        groups.setdefault(group_of(row), []).append(row)
    splits: dict[Split, list[T]] = {"val": [], "cal": [], "train": []}
    held_out: tuple[Split, ...] = ("val", "cal")
    for group in sorted(groups, key=lambda name: _digest(seed, name)):
        open_splits = (split for split in held_out if len(splits[split]) < round(sizes[split]))
        splits[next(open_splits, "train")] += groups[group]
    return splits


def shuffled(examples: Iterable[LabelledExample], seed: int) -> list[LabelledExample]:
    """Put examples in an order that depends on the seed and on the examples alone.

    The order given does not matter, nor the folder of a data set: of an absolute image path only
    the name counts.
    """

    def key(example: LabelledExample) -> bytes:
        images = tuple(Path(n).name if n.startswith("/") else n for n in example.images)
        return _digest(seed, example.model_copy(update={"images": images}).model_dump_json())

    return sorted(examples, key=key)


def _deal(
    clusters: Sequence[str], labels: Sequence[str], targets: Mapping[Split, float], seed: int
) -> dict[str, Split]:
    """Give every cluster, the largest first, to the split that then deviates least.

    The deviation of a split sums ``(count - target)^2 / target`` over the labels and over all
    examples; the division makes the splits fill up in proportion.
    """
    column = {label: number for number, label in enumerate(sorted(set(labels)))}
    counts: dict[str, npt.NDArray[np.float64]] = {}  # of each label, then of all examples
    for cluster, label in zip(clusters, labels, strict=True):
        counts.setdefault(cluster, np.zeros(len(column) + 1))[[column[label], -1]] += 1
    shares = sum(counts.values(), start=np.zeros(1)) / len(labels)
    goals = {split: size * shares for split, size in targets.items() if size > 0}
    filled = {split: np.zeros_like(shares) for split in goals}
    split_of: dict[str, Split] = {}
    for cluster in sorted(counts, key=lambda c: (-counts[c].sum(), _digest(seed, c))):
        added = counts[cluster]
        growth = {s: added * (added + 2 * (filled[s] - goals[s])) / goals[s] for s in goals}
        split = min(goals, key=lambda s: float(growth[s].sum()))
        filled[split] += added
        split_of[cluster] = split
    return split_of


def _digest(seed: int, text: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{text}".encode()).digest()
