"""Encoded rows and the order in which they are trained on."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judging.encoder import EncodedPrompt, Encoder
from judging.errors import CustosError
from judging.tasks import get_task
from judging.tree import LabelTree
from judging.types import LabelledExample

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
    prompt: EncodedPrompt | None
    """``None`` for rows with images, which are encoded again when used."""
    length: int


class Rows:
    """Examples checked and encoded before step 0.

    Raises:
        CustosError: If an example's label is not declared or its prompt cannot be built; the
            message names the row.
    """

    def __init__(self, examples: Sequence[LabelledExample], encoder: Encoder) -> None:
        self.encoder = encoder
        trees: dict[str, LabelTree] = {}
        self.rows: list[Row] = []
        for number, example in enumerate(examples, 1):
            task = get_task(example.task)
            try:
                task.check(example)
                target = task.target(example)
                [prompt] = encoder.encode([(task, example)])
            except CustosError as error:
                raise CustosError(f"training row {number} (id '{example.id}'): {error}") from None
            rubric = f"{task.name}/{task.rubric(example)}"
            if rubric not in trees:
                trees[rubric] = encoder.tree(task.labels(task.rubric(example)))
            tree = trees[rubric]
            self.rows.append(
                Row(
                    example,
                    rubric,
                    tree,
                    tree.labels.index(target),
                    None if example.images else prompt,
                    len(prompt.suffix_ids),
                )
            )

    def __len__(self) -> int:
        return len(self.rows)

    def prompt(self, row: Row) -> EncodedPrompt:
        """The row's encoded prompt, images included."""
        if row.prompt is not None:
            return row.prompt
        return self.encoder.encode([(get_task(row.example.task), row.example)])[0]

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
            together = row.example.question if whole_questions else id(row)
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


def _mean_length(rows: list[Row]) -> float:
    return sum(row.length for row in rows) / len(rows)
