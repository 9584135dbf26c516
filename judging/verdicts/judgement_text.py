"""What a judge wrote around its label: a critique before it, a confidence in words after it."""

from __future__ import annotations

import re

from judging.tasks import JudgeTask


def critique_of(task: JudgeTask, text: str) -> str | None:
    """Return the critique of an answer; ``None`` if the task asks for none or it has none."""
    tags = task.critique
    return (last_between(text, tags.opening, tags.closing) or None) if tags else None


def confidence_of(task: JudgeTask, text: str) -> float | None:
    """Return the confidence that an answer states; ``None`` as for :func:`critique_of`."""
    tags = task.critique
    if tags is None or not tags.states_confidence:
        return None
    stated = last_between(text, tags.confidence_opening, tags.confidence_closing)
    return None if stated is None else confidence_in(stated)


def last_between(text: str, opening: str, closing: str) -> str | None:
    """Return what stands between the last closing tag and the opening one before it, stripped."""
    end = text.rfind(closing)
    start = text.rfind(opening, 0, max(end, 0))
    return None if start < 0 else text[start + len(opening) : end].strip()


def confidence_in(text: str) -> float | None:
    """Return the first number of a text if it is a confidence (``0.9``, ``.9``, ``90%``)."""
    number = re.search(r"(?<![-\d.])(\d*\.\d+|\d+)(\s*%)?", text)
    if number is None:
        return None
    value = float(number[1]) / (100 if number[2] else 1)
    return value if value <= 1 else None
