"""Balance classes and places, and build a test of hard and new cases (HiEval, error analysis).

Hard and new cases are told apart by question, not by row: another response to a question that an
earlier stage has learned from is neither.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from data_prep.splits.near_duplicates import cluster_together
from data_prep.splits.splits import HeldOut, Splits, as_split, shuffled
from judging.errors import CustosError, FieldError
from judging.tasks import get_task
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.tasks.truthful import A, B
from judging.types import LabelledExample, Split, type_of

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
    held: tuple[Split, ...] = ("val", "cal")
    for split in held:
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
    questions: dict[str, list[LabelledExample]] = {}
    for row in shuffled(rows, seed):
        questions.setdefault(row.group, []).append(row)
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
    by_class: dict[str, list[LabelledExample]] = {}
    for example in examples:
        by_class.setdefault(class_of(example), []).append(example)
    return dict(sorted(by_class.items()))


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
