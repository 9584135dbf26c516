"""Supervision: the part of a labelled example that the model reads, and the label it learns."""

from __future__ import annotations

from typing import Protocol

from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample, Mode


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
