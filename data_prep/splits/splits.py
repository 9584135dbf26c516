"""Train, validation, calibration and test splits that share no question, and their balance.

Whole clusters of questions (``near_duplicates``) are dealt to the splits so that every split gets
its share of every label. The result depends on the set of examples and the seed, not on their
order.

A test of hard and new cases (HiEval, error analysis) tells them apart by question, not by row:
another response to a question that an earlier stage has learned from is neither.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from data_prep.splits.near_duplicates import cluster_examples, cluster_together
from judging.errors import CustosError, FieldError
from judging.progress import grouped
from judging.tasks import get_task
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.tasks.truthful import A, B
from judging.types import LabelledExample, Split, type_of

SPLITS: tuple[Split, ...] = get_args(Split)
_FILLED_FIRST: tuple[Split, ...] = ("val", "cal")

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


def deal_made(
    make: Callable[[int, Literal["train", "test"]], Iterable[T]],
    num_rows: int,
    held_out: HeldOut,
    seed: int,
    group_of: Callable[[T], str],
) -> dict[Split, list[T]]:
    """Make rows whose test split has wordings of its own, and deal the others by group.

    Whole groups go, in random order, to val until it is full, then to cal, then to train; those of
    the test are left out. Labels are not balanced, and only equal groups are kept together: rows
    drawn from a generator have no near-duplicates by chance. A group may exceed the size of its
    split. ``make`` and ``num_rows`` are those of :func:`split_made`.
    """
    sizes = held_out.targets(num_rows)
    num_test = round(sizes["test"])
    splits: dict[Split, list[T]] = {"val": [], "cal": [], "train": []}
    splits["test"] = list(make(num_test, "test"))
    tested = set(map(group_of, splits["test"]))
    groups = grouped(make(num_rows - num_test, "train"), group_of)
    for group in sorted(groups.keys() - tested, key=lambda name: _digest(seed, name)):
        to_fill = (split for split in _FILLED_FIRST if len(splits[split]) < round(sizes[split]))
        splits[next(to_fill, "train")] += groups[group]
    return splits


def in_splits(dealt: Mapping[Split, Sequence[LabelledExample]], seed: int) -> Splits:
    """Name the split in every row, and put the rows of each split in an order fixed by the seed."""
    return {
        split: shuffled(
            (row.model_copy(update={"split": split}) for row in dealt.get(split, ())), seed
        )
        for split in SPLITS
    }


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


HARD_SHARE = 0.6
"""Share of the paper's test that is hard: cases of the quick-scoring test that models get wrong.
The other cases are new."""

PUBLISHED_TEST = dict(zip(ERROR_TYPES, (260, 265, 100, 210, 165), strict=True))
"""Size of the paper's test by error type. The paper does not print it: these counts sum to its
1,000 and give the percentages of its Table 5."""

Item = tuple[str, tuple[str, ...]]
"""Question and responses: the same item under two tasks."""


def item_of(example: LabelledExample) -> Item:
    """Identify the item of an example: question and responses, the same under every task."""
    return example.question, example.responses


def class_of(example: LabelledExample) -> str:
    """Name the error type, or the label of an example without one."""
    return type_of(example.label) or example.label


def balanced_sample(
    examples: Iterable[LabelledExample], per_class: int | None = None, seed: int = 0
) -> list[LabelledExample]:
    """Draw equally many examples of every error type, and no more that are correct.

    The paper balances errors alone. Correct examples are a class more where there are some; few of
    them make no other class smaller. Each class has ``per_class`` examples at most, by default as
    many as the rarest error type has. The seed, not the order given, fixes the order.
    """
    by_class = _by_class(shuffled(examples, seed))
    if per_class is None:
        types = [rows for rows in by_class.values() if type_of(rows[0].label)]
        per_class = min(map(len, types or by_class.values()), default=0)
    return shuffled((row for rows in by_class.values() for row in rows[:per_class]), seed)


def hard_and_new_test(
    examples: Sequence[LabelledExample],
    hard: Sequence[LabelledExample],
    seen: Sequence[LabelledExample],
    per_type: int | Mapping[str, int],
    seed: int = 0,
) -> tuple[list[LabelledExample], list[LabelledExample]]:
    """Draw a test in which a fixed share of every error type is hard; give it and the rest.

    Examples without an error type are never drawn. An example is hard if its item (:func:`item_of`)
    is in ``hard``, the quick-scoring test. It is new if its question is near none of ``hard`` and
    none of ``seen``, which the earlier stage was trained on or chosen by. ``per_type`` examples of
    each error type are drawn, or one number for every single one; a type with too few hard or too
    few new cases gets fewer, in the same proportion.

    The rest, to train on, has questions near none of the test and none of ``hard``. In both
    ``group`` is the cluster. Raise ``CustosError`` if an error type has no hard or no new case.
    """
    hard_clusters, seen_clusters, clusters = cluster_together(hard, seen, examples)
    old_clusters = {*hard_clusters, *seen_clusters}
    examples = [
        row.model_copy(update={"group": cluster})
        for row, cluster in zip(examples, clusters, strict=True)
    ]
    hard_items = {item_of(row) for row in hard}
    test: list[LabelledExample] = []
    errors = [example for example in shuffled(examples, seed) if type_of(example.label)]
    for name, rows in _by_class(errors).items():
        hard_rows = [row for row in rows if item_of(row) in hard_items]
        new_rows = [row for row in rows if row.group not in old_clusters]
        num = min(
            per_type if isinstance(per_type, int) else per_type[name],
            math.floor(len(hard_rows) / HARD_SHARE),
            math.floor(len(new_rows) / (1 - HARD_SHARE)),
        )
        num_hard = round(HARD_SHARE * num)
        if not 0 < num_hard < num:
            raise CustosError(
                f"'{name}' has {len(hard_rows)} hard and {len(new_rows)} new cases: too few for a "
                "test of both"
            )
        test += hard_rows[:num_hard] + new_rows[: num - num_hard]
    excluded = {*hard_clusters, *(row.group for row in test)}
    return test, [row for row in examples if row.group not in excluded]


def balanced_splits(
    examples: Sequence[LabelledExample],
    test: Sequence[LabelledExample],
    held_out: HeldOut,
    seen: Sequence[LabelledExample] = (),
    per_class: int | None = None,
    seed: int = 0,
) -> Splits:
    """Draw train, val and cal beside a test; no question is in two of them.

    Every error type has as many examples, as in the paper, in cal too: a calibration that is fitted
    on the natural shares would undo the balance in its labels. Shares of ``held_out`` are of the
    balanced examples. What shares a cluster with ``seen``, which an earlier stage was trained on or
    chosen by, is for training only, where a class has ``per_class`` examples at most. Raise
    ``CustosError`` if a class has too few examples for val and cal, or none is left to train on.
    """
    seen_clusters, test_clusters, clusters = cluster_together(seen, test, examples)
    in_seen = set(seen_clusters)
    rows = as_split("train", zip(examples, clusters, strict=True), seed)
    familiar = [row for row in rows if row.group in in_seen]
    unseen = [row for row in rows if row.group not in in_seen]
    even = dict(sorted(Counter(map(class_of, balanced_sample(rows, None, seed))).items()))
    beside = held_out.model_copy(update={"test": 0})
    sizes = beside.targets(sum(even.values()) + len(test))
    splits: Splits = {"test": as_split("test", zip(test, test_clusters, strict=True), seed)}
    for split in _FILLED_FIRST:
        # In proportion to the classes, in whole examples.
        ends = [round(sizes[split]) * end / sum(even.values()) for end in accumulate(even.values())]
        counts = np.diff([round(end) for end in ends], prepend=0).tolist()
        drawn, unseen = _whole_questions(unseen, dict(zip(even, counts, strict=True)), seed)
        splits[split] = [row.model_copy(update={"split": split}) for row in drawn]
    splits["train"] = balanced_sample([*familiar, *unseen], per_class, seed)
    if missing := even.keys() - map(class_of, splits["train"]):
        raise CustosError(
            f"val {held_out.val:g} and cal {held_out.cal:g} leave no example of "
            f"'{min(missing)}' for training; ask for less"
        )
    return splits


def _whole_questions(
    rows: Sequence[LabelledExample], wanted: Mapping[str, int], seed: int
) -> tuple[list[LabelledExample], list[LabelledExample]]:
    """Draw the wanted number of examples of every class; give them and those of other questions.

    Of a question that is drawn all wanted examples are taken, those of the rarest class first, so
    that few questions are used up.
    """
    questions = grouped(shuffled(rows, seed), lambda row: row.group)
    have, missing = Counter(map(class_of, rows)), Counter(wanted)
    drawn: list[LabelledExample] = []
    taken: set[str] = set()
    for row in sorted(shuffled(rows, seed), key=lambda row: have[class_of(row)]):
        if not missing[class_of(row)] or row.group in taken:
            continue
        taken.add(row.group)
        for member in questions[row.group]:
            if missing[class_of(member)]:
                missing[class_of(member)] -= 1
                drawn.append(member)
    for name, count in missing.items():
        if count:
            raise CustosError(
                f"val and cal need {count} more examples of '{name}' whose questions no earlier "
                "stage has seen; ask for less"
            )
    return drawn, [row for row in rows if row.group not in taken]


def _by_class(examples: Iterable[LabelledExample]) -> dict[str, list[LabelledExample]]:
    return dict(sorted(grouped(examples, class_of).items()))


def in_both_orders(pairs: Iterable[LabelledExample]) -> list[LabelledExample]:
    """List every pair, and after all of them every pair with its responses exchanged.

    Labels, critiques and what people said of each response follow the exchange; the id of an
    exchanged pair ends with ``-swapped``. Raise ``FieldError`` if an example has one response only;
    the error names the example.
    """
    as_given = list(pairs)
    return [*as_given, *map(_swapped, as_given)]


def _swapped(pair: LabelledExample) -> LabelledExample:
    task = get_task(pair.task)
    if task.num_responses != 2:
        raise FieldError("task", f"'{pair.task}' judges one response, which has no order").at(
            f"row '{pair.id}'"
        )

    def swapped_tag(tag: str) -> str:  # such as "A: off-topic or vague", which names a response
        name, colon, fault = tag.partition(": ")
        return f"{task.unswap(name)}{colon}{fault}" if colon else tag

    def swapped_entry(name: str, value: Any) -> Any:  # of the metadata that our forms write
        if isinstance(value, dict) and value.keys() == {A, B}:
            return {A: value[B], B: value[A]}
        if name == "rationale" and isinstance(value, str):
            return task.unswap_text(value)
        return value[::-1] if name == "answerers" else value

    changed: dict[str, object] = {
        "id": f"{pair.id}-swapped",
        "responses": pair.responses[::-1],
        "label": task.unswap(pair.label),
        "tags": tuple(map(swapped_tag, pair.tags)),
        "metadata": {name: swapped_entry(name, value) for name, value in pair.metadata.items()},
    }
    if pair.second_label:
        changed["second_label"] = task.unswap(pair.second_label)
    if people := pair.annotator_labels:
        changed["annotator_labels"] = {name: task.unswap(people[name]) for name in people}
    if pair.critique:
        changed["critique"] = task.unswap_text(pair.critique)
    return pair.model_copy(update=changed)
