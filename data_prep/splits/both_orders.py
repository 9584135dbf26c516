"""Pairs in both orders of their responses, so that a judge learns no preference for a place."""

from __future__ import annotations

from collections.abc import Iterable

from judging.errors import FieldError
from judging.tasks import get_task
from judging.types import LabelledExample


def in_both_orders(pairs: Iterable[LabelledExample]) -> list[LabelledExample]:
    """Return every pair, and after all of them every pair with its responses exchanged.

    Labels and critiques follow the exchange; the id of an exchanged pair ends with ``-swapped``.

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
    }
    if pair.second_label:
        changed["second_label"] = task.unswap(pair.second_label)
    if pair.critique:
        changed["critique"] = task.unswap_text(pair.critique)
    return pair.model_copy(update=changed)
