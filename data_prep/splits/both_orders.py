"""Pairs in both orders of their responses, so that a judge learns no preference for a place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from judging.errors import FieldError
from judging.tasks import get_task
from judging.tasks.base import JudgeTask
from judging.tasks.truthful import A, B
from judging.types import LabelledExample


def in_both_orders(pairs: Iterable[LabelledExample]) -> list[LabelledExample]:
    """Return every pair, and after all of them every pair with its responses exchanged.

    Labels, critiques and what people said of each response follow the exchange; the id of an
    exchanged pair ends with ``-swapped``.

    Raises:
        FieldError: If an example has one response only; the message names it.
    """
    as_given = list(pairs)
    return [*as_given, *map(_swapped, as_given)]


def _swapped(pair: LabelledExample) -> LabelledExample:
    task = get_task(pair.task)
    if task.num_responses != 2:
        raise FieldError("task", f"'{pair.task}' judges one response, which has no order").at(
            f"row '{pair.id}'"
        )
    changed: dict[str, object] = {
        "id": f"{pair.id}-swapped",
        "responses": pair.responses[::-1],
        "label": task.unswap(pair.label),
        "tags": tuple(_swapped_tag(tag, task) for tag in pair.tags),
        "metadata": {name: _swapped_entry(name, pair, task) for name in pair.metadata},
    }
    if pair.second_label:
        changed["second_label"] = task.unswap(pair.second_label)
    if pair.annotator_labels:
        changed["annotator_labels"] = {
            name: task.unswap(label) for name, label in pair.annotator_labels.items()
        }
    if pair.critique:
        changed["critique"] = task.unswap_text(pair.critique)
    return pair.model_copy(update=changed)


def _swapped_tag(tag: str, task: JudgeTask) -> str:
    """Return a tag such as ``A: off-topic or vague``, which names a response, for the other."""
    name, colon, fault = tag.partition(": ")
    return f"{task.unswap(name)}{colon}{fault}" if colon else tag


def _swapped_entry(name: str, pair: LabelledExample, task: JudgeTask) -> Any:
    """Return an entry of the metadata that our forms write, with the responses exchanged."""
    value = pair.metadata[name]
    if isinstance(value, dict) and value.keys() == {A, B}:
        return {A: value[B], B: value[A]}
    if name == "rationale" and isinstance(value, str):
        return task.unswap_text(value)
    return value[::-1] if name == "answerers" else value
