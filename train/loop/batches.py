"""Encoded rows and the order in which they are trained on."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from judging.errors import CustosError
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, LabelledExample

# Rows are sorted by length within windows of so many micro-batches: little padding, much mixing.
_WINDOW = 32


@dataclass(frozen=True)
class Row:
    """A checked training row."""

    example: LabelledExample
    rubric: str
    """``task/rubric``; rows of one micro-batch share it, hence the instruction."""
    tree: LabelTree
    target: int
    """Index of the target label in the tree."""
    prompts: tuple[EncodedPrompt, ...] | None
    """One prompt, or one per response; ``None`` for rows with images, encoded again when used."""
    length: int


Layout = Callable[[JudgeTask, LabelledExample, Encoder], tuple[LabelTree, int]]
"""Lays out what a row is trained towards: a label tree and the target's index in it."""
Views = Callable[[LabelledExample], Sequence[JudgeRequest]]
"""What of an example is put before the model: itself, or each of its responses."""


class Rows:
    """Examples checked and encoded before step 0.

    Args:
        examples: Labelled examples.
        encoder: Encoder of the backbone to train.
        layout: What rows are trained towards; default the label tree of their rubric.
        views: What is put before the model; default the example itself.

    Raises:
        CustosError: If an example's label is not declared or its prompt cannot be built; the
            message names the row.
    """

    def __init__(
        self,
        examples: Sequence[LabelledExample],
        encoder: Encoder,
        layout: Layout | None = None,
        views: Views = lambda example: (example,),
    ) -> None:
        self.encoder, self.views = encoder, views
        layout = layout or LabelLayout()
        self.rows: list[Row] = []
        for example in examples:
            try:
                prompts = self._encode(example)
                tree, target = layout(get_task(example.task), example, encoder)
            except CustosError as error:
                raise CustosError(f"row '{example.id}': {error}") from None
            task = get_task(views(example)[0].task)
            self.rows.append(
                Row(
                    example,
                    f"{task.name}/{task.rubric(example)}",
                    tree,
                    target,
                    None if example.images else prompts,
                    sum(len(prompt.suffix_ids) for prompt in prompts) + len(tree.node_tokens),
                )
            )

    def __len__(self) -> int:
        return len(self.rows)

    def prompts(self, rows: Sequence[Row]) -> list[EncodedPrompt]:
        """Encoded prompts of rows in order, images included."""
        return [prompt for row in rows for prompt in row.prompts or self._encode(row.example)]

    def _encode(self, example: LabelledExample) -> tuple[EncodedPrompt, ...]:
        requests = [(get_task(view.task), view) for view in self.views(example)]
        for task, view in requests:
            task.check(view)
        return tuple(self.encoder.encode(requests))

    def steps(
        self,
        batch_size: int,
        micro_batch_size: int,
        seed: int,
        epoch: int,
        *,
        whole_questions: bool = False,
    ) -> list[list[list[Row]]]:
        """The epoch's optimizer steps, each a list of micro-batches.

        Shuffled by ``(seed, epoch)`` alone, so the order survives a resume and is the same on every
        process. Rows that do not fill a step at the end of the epoch are left out.
        """
        order = random.Random(f"{seed}/{epoch}")
        by_rubric: dict[str, dict[object, list[Row]]] = {}
        for row in order.sample(self.rows, len(self.rows)):
            together = _read_once(row.example) if whole_questions else id(row)
            by_rubric.setdefault(row.rubric, {}).setdefault(together, []).append(row)
        micro_batches = []
        for questions in by_rubric.values():
            for window in _windows(list(questions.values()), _WINDOW * micro_batch_size):
                ordered = [row for rows in sorted(window, key=_mean_length) for row in rows]
                micro_batches += [
                    ordered[i : i + micro_batch_size]
                    for i in range(0, len(ordered), micro_batch_size)
                ]
        order.shuffle(micro_batches)
        per_step = batch_size // micro_batch_size
        return [
            micro_batches[i : i + per_step]
            for i in range(0, len(micro_batches) - per_step + 1, per_step)
        ]


class LabelLayout:
    """The label tree of a row's rubric, built once per rubric."""

    def __init__(self) -> None:
        self._trees: dict[tuple[str, str], LabelTree] = {}

    def __call__(
        self, task: JudgeTask, example: LabelledExample, encoder: Encoder
    ) -> tuple[LabelTree, int]:
        """Tree and index of the example's label."""
        target, key = task.target(example), (task.name, task.rubric(example))
        if key not in self._trees:
            self._trees[key] = encoder.tree(task.labels(key[1]))
        tree = self._trees[key]
        return tree, tree.labels.index(target)


def _windows(questions: list[list[Row]], size: int) -> Iterator[list[list[Row]]]:
    """Consecutive questions, at least ``size`` rows at a time but for the last."""
    window: list[list[Row]] = []
    for rows in questions:
        window.append(rows)
        if sum(map(len, window)) >= size:
            yield window
            window = []
    if window:
        yield window


def _read_once(example: LabelledExample) -> str:
    """What rows of one batch may share: a question, or a group's pictures."""
    return example.group if example.images and example.group else example.question


def _mean_length(rows: list[Row]) -> float:
    return sum(row.length for row in rows) / len(rows)
