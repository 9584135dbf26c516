"""Wordings: the ways to put something into words, some of them kept for test data.

A judge that is tested on wordings it was trained on may have learned these instead of its task.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

WordingSplit = Literal["train", "test", "all"]
"""``train``: no held-out wording. ``test``: responses in held-out wordings only. ``all``: every
wording."""


@dataclass(frozen=True)
class Wording:
    """One way to put something into words: an id, and a template with named slots."""

    id: str
    template: str
    held_out: bool = field(default=False, kw_only=True)
    """Kept for test data; training data never show it."""


W = TypeVar("W", bound=Wording)


def wordings_of(wordings: Iterable[W], split: WordingSplit) -> list[W]:
    """Return the wordings of a split: for ``test`` the held-out ones alone."""
    return [w for w in wordings if split == "all" or w.held_out == (split == "test")]


def question_wordings_of(wordings: Iterable[W], split: WordingSplit) -> list[W]:
    """Return the wordings of a split's questions: for ``test`` the held-out ones among all others.

    Some questions have too few wordings to hold one out.
    """
    return [w for w in wordings if not (split == "train" and w.held_out)]
