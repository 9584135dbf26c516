"""Encoded rows, and the rows that every optimizer step trains on."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol

from judging.errors import errors_at
from judging.files.pictures import megapixels
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample, Mode
from train.setup.data import Splits
from train.setup.recipe import OptimSection
from train.setup.run_log import RUN_LOG

# Rows are sorted by length within windows of this many steps: little padding, much mixing.
WINDOW = 32

MicroBatch = list["Row"]


@dataclass(frozen=True)
class Row:
    """A checked training row."""

    example: LabelledExample
    rubric: str
    """``task/rubric``; all rows of a micro-batch have the same one, hence the same instruction."""
    mode: Mode
    """How the row is learnt: its label at once, or after a critique."""
    requests: tuple[JudgeRequest, ...]
    """The requests that the model reads: the example's own, or one for each response."""
    tree: LabelTree
    target: int
    """Index of the target label in the tree."""
    prompts: tuple[EncodedPrompt, ...] | None
    """One prompt for each request; ``None`` for rows with images, encoded again when used."""
    length: int
    """Tokens after the instruction, the label tree included."""


class Supervision(Protocol):
    """Decides what the model reads of an example and which label it learns."""

    encoder: Encoder

    def requests(self, example: LabelledExample) -> tuple[JudgeRequest, ...]:
        """Return the requests that the model reads; all belong to one task."""
        ...

    def mode(self, example: LabelledExample) -> Mode:
        """Return whether the label is learnt at once or after a critique."""
        ...

    def target(self, example: LabelledExample) -> tuple[LabelTree, int]:
        """Return the label tree after each prompt, and the index of the label to learn."""
        ...


class LabelSupervision:
    """Reads the example itself and learns its label in the label tree of its rubric.

    Args:
        encoder: Encoder of the backbone to train.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._trees: dict[tuple[str, str], LabelTree] = {}

    def requests(self, example: LabelledExample) -> tuple[JudgeRequest, ...]:
        """Return the example."""
        return (example,)

    def mode(self, example: LabelledExample) -> Mode:
        """Return ``score``: the label is learnt at once."""
        return "score"

    def target(self, example: LabelledExample) -> tuple[LabelTree, int]:
        """Return the tree of the rubric's labels, built once per rubric, and the label's index."""
        task = get_task(example.task)
        label, key = task.target(example), (task.name, task.rubric(example))
        if key not in self._trees:
            self._trees[key] = self.encoder.tree(task.labels(key[1]))
        tree = self._trees[key]
        return tree, tree.labels.index(label)


class Rows:
    """Examples that were checked and encoded before step 0.

    Args:
        examples: Labelled examples.
        supervision: What the model reads and learns of each.
        split: Name of the split, for errors.

    Attributes:
        scaled_pictures: Sources of the pictures that are scaled down.

    Raises:
        CustosError: If an example's label is not declared or its prompt cannot be built; the
            message names the split and the row.
    """

    def __init__(
        self, examples: Sequence[LabelledExample], supervision: Supervision, split: str
    ) -> None:
        self.encoder = supervision.encoder
        self.rows: list[Row] = []
        self.scaled_pictures: set[str] = set()
        for example in examples:
            with errors_at(f"split '{split}': row '{example.id}'"):
                self.rows.append(self._row(example, supervision))

    def __len__(self) -> int:
        return len(self.rows)

    def prompts(self, rows: Sequence[Row]) -> list[EncodedPrompt]:
        """Return the encoded prompts of rows in order, images included."""
        return [prompt for row in rows for prompt in row.prompts or self._encode(row.requests)]

    def by_rubric(self) -> dict[str, list[int]]:
        """Return the indices of the rows of each rubric."""
        indices: dict[str, list[int]] = {}
        for index, row in enumerate(self.rows):
            indices.setdefault(row.rubric, []).append(index)
        return indices

    def _row(self, example: LabelledExample, supervision: Supervision) -> Row:
        requests = supervision.requests(example)
        prompts = None if example.images else self._encode(requests)
        if prompts:
            length = sum(len(prompt.suffix_ids) for prompt in prompts)
        else:
            length = self._measure(requests)
        tree, target = supervision.target(example)
        task = get_task(requests[0].task)
        return Row(
            example,
            f"{task.name}/{task.rubric(example)}",
            supervision.mode(example),
            requests,
            tree,
            target,
            prompts,
            length + len(tree.node_tokens),
        )

    def _encode(self, requests: Sequence[JudgeRequest]) -> tuple[EncodedPrompt, ...]:
        with_tasks = [(get_task(request.task), request) for request in requests]
        for task, request in with_tasks:
            task.check(request)
        return tuple(self.encoder.encode(with_tasks))

    def _measure(self, requests: Sequence[JudgeRequest]) -> int:
        """Return how many tokens follow the instructions of requests with pictures."""
        length = 0
        for request in requests:
            task = get_task(request.task)
            task.check(request)
            size = self.encoder.measure(task, request)
            self.scaled_pictures.update(size.scaled_pictures)
            length += size.suffix_tokens
        return length


@dataclass(frozen=True)
class EncodedSplits:
    """The rows that training uses."""

    train: Rows
    val: Rows
    watched: dict[str, Rows]
    """Rows that every validation scores and that never select an adapter, by name."""


def encode_splits(splits: Splits, supervision: Supervision) -> EncodedSplits:
    """Encode what training uses; ``cal`` and ``test`` are graded by the finished judge.

    Raises:
        CustosError: If a row cannot be trained on; the message names the split and the row.
    """
    encoded = EncodedSplits(
        Rows(splits.train, supervision, "train"),
        Rows(splits.val, supervision, "val"),
        {name: Rows(rows, supervision, name) for name, rows in splits.watched.items()},
    )
    if line := _describe_pictures(encoded):
        RUN_LOG.write(line)
    return encoded


def _describe_pictures(splits: EncodedSplits) -> str:
    """Return a line that says how many pictures are scaled down; empty if there are none."""
    every = (splits.train, splits.val, *splits.watched.values())
    pictures = {name for rows in every for row in rows.rows for name in row.example.images}
    if not pictures:
        return ""
    scaled = set().union(*(rows.scaled_pictures for rows in every))
    most = megapixels(splits.train.encoder.backbone.pixels.max_pixels)
    return f"{len(scaled):,} of {len(pictures):,} pictures are scaled down to {most}"


class StepPlan:
    """The micro-batches of every optimizer step of a run.

    The rows of a step depend on seed and epoch alone. They are the same on every process, after a
    resume, and for any number of processes and any ``micro_batch_size``: these only decide how a
    step is cut. Rows of a step have one rubric and like lengths; where a rubric or a window ends,
    a step has fewer of them.

    Args:
        rows: Training rows.
        optim: Epochs, batch sizes, and whether questions stay together.
        seed: Any integer.
        processes: Number of processes that share each step.
    """

    def __init__(self, rows: Rows, optim: OptimSection, seed: int, processes: int = 1) -> None:
        self.rows, self.optim, self.seed, self.processes = rows, optim, seed, processes
        # Epochs of whole questions may differ by some steps: windows end where a question does.
        self._epoch_ends = list(accumulate(len(self._steps(e)) for e in range(optim.epochs)))
        self.total_steps = min(self._epoch_ends[-1], optim.max_steps or 10**12)
        self._cached: tuple[int, list[list[MicroBatch]]] = (-1, [])

    def micro_batches(self, step: int) -> list[MicroBatch]:
        """Return the micro-batches of a step, counted from 0 over all epochs.

        Process ``i`` of ``n`` takes every ``n``-th from the ``i``-th.
        """
        epoch = bisect_right(self._epoch_ends, step)
        if self._cached[0] != epoch:
            self._cached = epoch, self.epoch(epoch)
        return self._cached[1][step - self._epoch_ends[epoch]]  # counted from the epoch's end

    def epoch(self, number: int) -> list[list[MicroBatch]]:
        """Return the steps of one epoch, each a list of micro-batches of one rubric."""
        size = self.optim.micro_batch_size
        return [cut_step(step, self.processes, size) for step in self._steps(number)]

    def _steps(self, epoch: int) -> list[list[Row]]:
        """Return the rows of every step of an epoch."""
        size, order = self.optim.batch_size, random.Random(f"{self.seed}/{epoch}")
        groups: dict[str, dict[object, list[Row]]] = {}
        for row in order.sample(self.rows.rows, len(self.rows)):
            group = _shared_text(row.example) if self.optim.whole_questions else id(row)
            groups.setdefault(row.rubric, {}).setdefault(group, []).append(row)
        steps = []
        for questions in groups.values():
            for window in _windows(list(questions.values()), WINDOW * size):
                ordered = [row for rows in sorted(window, key=_mean_length) for row in rows]
                steps += [ordered[i : i + size] for i in range(0, len(ordered), size)]
        order.shuffle(steps)
        return steps


def cut_step(rows: Sequence[Row], processes: int, size: int) -> list[MicroBatch]:
    """Cut the rows of a step into micro-batches of like size, equally many for each process.

    If there are too few rows, some processes get one micro-batch less, or none.

    Args:
        rows: Rows of the step, at least one.
        processes: Number of processes.
        size: Most rows of a micro-batch.
    """
    per_process = -(-len(rows) // (processes * size))  # rounded up
    count = min(len(rows), processes * per_process)
    bounds = [len(rows) * i // count for i in range(count + 1)]
    return [list(rows[start:end]) for start, end in pairwise(bounds)]


def _windows(questions: list[list[Row]], size: int) -> Iterator[list[list[Row]]]:
    """Yield consecutive questions, at least ``size`` rows at a time except for the last."""
    window: list[list[Row]] = []
    for rows in questions:
        window.append(rows)
        if sum(map(len, window)) >= size:
            yield window
            window = []
    if window:
        yield window


def _shared_text(example: LabelledExample) -> str:
    """Return what rows of one batch may share: a question, or a group's pictures."""
    return example.group if example.images and example.group else example.question


def _mean_length(rows: list[Row]) -> float:
    return sum(row.length for row in rows) / len(rows)
