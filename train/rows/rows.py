"""Rows of a split: an index in memory; batches of tensors are made of them when they are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from judging.errors import CustosError, errors_at
from judging.files.pictures import megapixels
from judging.progress import in_batches
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import lay_out, shared_rows
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.scoring.tree_batch import TreeBatch, TreeModel
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample, Mode
from train.rows.data import RunSplits
from train.setup.run_log import RUN_LOG

MEASURED_AT_ONCE = 1024
"""Rows whose texts are tokenized in one call."""
MODES: tuple[Mode, ...] = ("score", "critique")


class Supervision:
    """What the model reads of an example, and the label that it learns.

    Here it reads the example itself and learns its label in the label tree of its rubric.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._trees: dict[tuple[str, str], LabelTree] = {}

    def requests(self, example: LabelledExample) -> tuple[JudgeRequest, ...]:
        """Make the requests that the model reads; all belong to one task."""
        return (example,)

    def mode(self, example: LabelledExample) -> Mode:
        """Choose whether the label is learnt at once or after a critique."""
        return "score"

    def target(self, example: LabelledExample) -> tuple[LabelTree, int]:
        """Build the label tree after each prompt, and the index of the label to learn."""
        task = get_task(example.task)
        label, key = task.target(example), (task.name, task.rubric(example))
        if key not in self._trees:
            self._trees[key] = self.encoder.tree(task.labels(key[1]))
        tree = self._trees[key]
        return tree, tree.labels.index(label)


@dataclass(frozen=True)
class Row:
    """A checked training row."""

    example: LabelledExample
    rubric: str
    """``task/rubric``; all rows of a micro-batch have the same one, hence the same instruction."""
    requests: tuple[JudgeRequest, ...]
    """The requests that the model reads: the example's own, or one for each response."""
    tree: LabelTree
    target: int
    """Index of the target label in the tree."""


@dataclass(frozen=True)
class Batch:
    """Rows of one rubric as the model reads them."""

    indices: Sequence[int]
    """Indices of the rows in their split."""
    rows: list[Row]
    layout: TreeBatch

    def pinned(self) -> Batch:
        """Copy the batch to memory that a GPU copies from without waiting."""
        tensors = {f.name: _pinned(getattr(self.layout, f.name)) for f in fields(self.layout)}
        return replace(self, layout=replace(self.layout, **tensors))


class RowFacts:
    """Facts of every row that need no encoding: one number of each kind per row."""

    def __init__(self, count: int) -> None:
        self.rubric: NDArray[np.int32] = np.zeros(count, np.int32)
        """Index of the row's ``task/rubric`` in :attr:`rubrics`."""
        self.rubrics: list[str] = []
        self.mode: NDArray[np.int8] = np.zeros(count, np.int8)
        """How the row is learnt, as an index in :data:`MODES`."""
        self.target: NDArray[np.int32] = np.zeros(count, np.int32)
        """Index of the target label in the row's tree."""
        self.target_tokens: NDArray[np.int32] = np.zeros(count, np.int32)
        """Tokens of the target label, end token included."""
        self.weight: NDArray[np.float64] = np.zeros(count)
        """How much the row counts."""
        self.length: NDArray[np.int64] = np.zeros(count, np.int64)
        """Tokens after the instruction, the label tree included."""
        self.width: NDArray[np.int64] = np.zeros(count, np.int64)
        """Tokens of the row's longest prompt after the instruction, with its label tree."""
        self.instruction: NDArray[np.int64] = np.zeros(count, np.int64)
        """Tokens of the instruction."""
        self.copies: NDArray[np.int64] = np.ones(count, np.int64)
        """Rows of a tensor that the row takes: one for each prompt, or for each leaf of a tree."""
        self.shared_text: NDArray[np.int64] = np.zeros(count, np.int64)
        """Number of the question, or of the pictures, that rows may share."""


class Rows:
    """Rows of a split, which errors name, that were checked and measured before step 0.

    Attributes:
        facts: Length, rubric, target and so on of every row.
        share_prefix: Whether a batch reads its instruction once; otherwise every row does, and the
            model runs once for each batch.
        pictures: Whether each picture is scaled down, by the hash of its source.
        left_out: How many rows have pictures that the model does not see, by task.
    """

    def __init__(
        self, examples: Sequence[LabelledExample], supervision: Supervision, split: str
    ) -> None:
        self.examples, self.supervision, self.split = examples, supervision, split
        self.encoder = supervision.encoder
        self.facts = RowFacts(len(examples))
        self.pictures: dict[int, bool] = {}
        self.left_out: Counter[str] = Counter()
        self.share_prefix = True
        numbers: dict[str, dict[str, int]] = {"rubric": {}, "shared_text": {}}
        for start in range(0, len(examples), MEASURED_AT_ONCE):
            self._measure(start, examples[start : start + MEASURED_AT_ONCE], numbers)
        self.facts.rubrics = list(numbers["rubric"])

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> Row:
        return self._row(self.examples[index])

    def __iter__(self) -> Iterator[Row]:
        return map(self._row, self.examples)

    def prompts(self, rows: Sequence[Row]) -> list[EncodedPrompt]:
        """Encode the prompts of rows in order, pictures included; an error names split and row."""
        try:
            return self._encode([request for row in rows for request in row.requests])
        except CustosError:
            for row in rows:
                with errors_at(self._location(row.example)):
                    self._encode(row.requests)
            raise

    def batch(self, indices: Sequence[int]) -> Batch:
        """Read, encode and lay out rows of one rubric; an error names split and row."""
        rows = [self[int(index)] for index in indices]
        prompts = self.prompts(rows)
        trees = [row.tree for row in rows for _ in row.requests]
        backbone = self.encoder.backbone
        layout = lay_out(
            TreeModel(backbone.model),
            prompts,
            trees,
            backbone.tokenizer.pad_token_id,
            rows=shared_rows(prompts, max(len(tree.node_tokens) for tree in trees)),
            share_prefix=self.share_prefix,
        )
        return Batch(indices, rows, layout)

    def by_rubric(self) -> dict[str, list[int]]:
        """Group the indices of the rows by rubric, in the order of their first rows."""
        return {
            rubric: np.flatnonzero(self.facts.rubric == number).tolist()
            for number, rubric in enumerate(self.facts.rubrics)
        }

    def modes(self) -> dict[str, tuple[Mode, ...]]:
        """List by rubric how its rows are learnt, the mode of most rows first."""
        counts = {
            rubric: np.bincount(self.facts.mode[indices], minlength=len(MODES))
            for rubric, indices in self.by_rubric().items()
        }
        return {
            rubric: tuple(MODES[i] for i in np.argsort(-n, kind="stable") if n[i])
            for rubric, n in counts.items()
        }

    def widths(self) -> NDArray[np.int64]:
        """Count the columns that each row needs in a tensor, padding not included."""
        is_recurrent = TreeModel(self.encoder.backbone.model).is_recurrent
        is_alone = is_recurrent or not self.share_prefix
        return self.facts.width + (self.facts.instruction if is_alone else 0)

    def weights(self, indices: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give how much each row counts, and the tokens of its target label."""
        return self.facts.weight[indices], self.facts.target_tokens[indices]

    def _location(self, example: LabelledExample) -> str:
        return f"split '{self.split}': row '{example.id}'"

    def _row(self, example: LabelledExample) -> Row:
        requests = self.supervision.requests(example)
        tree, target = self.supervision.target(example)
        task = get_task(requests[0].task)
        return Row(example, f"{task.name}/{task.rubric(example)}", requests, tree, target)

    def _measure(
        self,
        start: int,
        examples: Sequence[LabelledExample],
        numbers: dict[str, dict[str, int]],
    ) -> None:
        """Fill the index for some examples from a start on."""
        facts, rows = self.facts, []
        is_recurrent = TreeModel(self.encoder.backbone.model).is_recurrent
        for example in examples:
            with errors_at(self._location(example)):
                rows.append(self._row(example))
        requests = [request for row in rows for request in row.requests]
        measured = self.encoder.measure([(get_task(each.task), each) for each in requests])
        for number, row in enumerate(rows, start):
            with errors_at(self._location(row.example)):
                sizes = [next(measured) for _ in row.requests]
            tree, example = row.tree, row.example
            shown = self.encoder.pictures(get_task(row.requests[0].task), example)
            # Rows of one batch may share a question, or a group's pictures if it has some.
            text = example.group if shown and example.group else example.asked
            facts.rubric[number] = numbers["rubric"].setdefault(row.rubric, len(numbers["rubric"]))
            texts = numbers["shared_text"]  # numbered as they come, as rubrics are
            facts.shared_text[number] = texts.setdefault(text, len(texts))
            facts.mode[number] = MODES.index(self.supervision.mode(example))
            path = tree.paths[row.target] if row.target < len(tree.paths) else ()
            facts.target[number], facts.target_tokens[number] = row.target, len(path)
            facts.weight[number] = example.weight
            leaves = len(tree.chains()) if is_recurrent else 1
            facts.copies[number] = leaves * len(row.requests)
            suffixes, nodes = [size.suffix_tokens for size in sizes], len(tree.node_tokens)
            facts.length[number], facts.width[number] = sum(suffixes) + nodes, max(suffixes) + nodes
            facts.instruction[number] = sizes[0].prefix_tokens
            scaled = {name for size in sizes for name in size.scaled_pictures}
            self.pictures |= {hash(name): name in scaled for name in shown}
            self.left_out[row.requests[0].task] += len(shown) < len(example.images)

    def _encode(self, requests: Sequence[JudgeRequest]) -> list[EncodedPrompt]:
        return self.encoder.encode([(get_task(request.task), request) for request in requests])


@dataclass(frozen=True)
class IndexedSplits:
    """The rows that training uses."""

    train: Rows
    val: Rows
    watched: dict[str, Rows]
    """Rows that every validation scores and that never select an adapter, by name."""
    replayed: int = 0
    """How many of the last training rows are replayed."""

    @property
    def by_name(self) -> dict[str, Rows]:
        """List the rows of every split."""
        return {"train": self.train, "val": self.val, **self.watched}


def index_splits(
    splits: RunSplits, supervision: Supervision, validation: Supervision | None = None
) -> IndexedSplits:
    """Measure what training uses.

    Rows of ``cal`` are scored by the finished judge, but measured now: one that cannot be read
    would end the run after its last step. Those of ``test`` may fail one by one.
    """
    scored = validation or supervision
    indexed = IndexedSplits(
        Rows(splits.train, supervision, "train"),
        Rows(splits.val, scored, "val"),
        {name: Rows(rows, scored, name) for name, rows in splits.watched.items()},
        splits.replayed,
    )
    check_readable(splits.cal or (), supervision.encoder, "split 'cal'")
    left_out = sum((rows.left_out for rows in indexed.by_name.values()), Counter[str]())
    for task, count in left_out.items():  # a sum of counters has no zeros
        text = f"the pictures of {count:,} rows are left out: task '{task}' reads text alone"
        RUN_LOG.write(text)
    pictures = dict(chain.from_iterable(rows.pictures.items() for rows in indexed.by_name.values()))
    if pictures:
        most = megapixels(supervision.encoder.backbone.pixels.max_pixels)
        scaled = f"{sum(pictures.values()):,} of {len(pictures):,} pictures are scaled down"
        RUN_LOG.write(f"{scaled} to {most}")
    return indexed


def check_readable(examples: Sequence[LabelledExample], encoder: Encoder, location: str) -> None:
    """Check that every prompt fits the backbone's context; an error names location and row."""
    for batch in in_batches(examples, MEASURED_AT_ONCE):
        sizes = encoder.measure([(get_task(example.task), example) for example in batch])
        for example in batch:
            with errors_at(f"{location}: row '{example.id}'"):
                next(sizes)


def _pinned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _pinned(entry) for name, entry in value.items()}
    return cast(Any, value).pin_memory() if isinstance(value, Tensor) else value
