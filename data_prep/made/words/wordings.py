"""The words of made data: one YAML file a maker, in the folder ``words``.

Some wordings are held out for test data: a judge that is tested on wordings it was trained on may
have learned these instead of its task.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import Any, Literal, TypeVar

from judging.files.opening import shipped_yaml

_FOLDER = Path(__file__).parent

WordSplit = Literal["train", "test"]
"""The words of training data, or those that only test data show."""
WordingSplit = Literal["train", "test", "all"]
"""``train``: no held-out wording. ``test``: responses in held-out wordings only. ``all``: every
wording."""


@dataclass(frozen=True)
class Wording:
    """One way to put something into words."""

    id: str
    """Family and name, with a dot between them."""
    template: str
    """Text with named slots."""
    held_out: bool = field(default=False, kw_only=True)
    """Kept for test data; training data never show it."""

    @cached_property
    def family(self) -> str:
        """Name what the wording is for: to state in full, to decline, to ask for a sum, ..."""
        return self.id.rpartition(".")[0]


W = TypeVar("W", bound=Wording)
T = TypeVar("T")


@cache
def words_of(maker: str) -> dict[str, Any]:
    """Read what the file of a maker holds, such as ``hard``."""
    return shipped_yaml(_FOLDER / f"{maker}.yaml")


def texts(written: str | list[str]) -> tuple[str, ...]:
    """Split a table into texts: the lines of a block, or the items of a list."""
    return tuple(written.splitlines() if isinstance(written, str) else written)


def read_wordings(maker: str, table: str, make: type[W]) -> tuple[W, ...]:
    """Read the wordings of a table in its order.

    A table maps families to their wordings under ``train`` and ``test``: name to template, or
    to all fields of ``make`` besides the id.
    """
    return tuple(
        make(
            id=f"{family}.{name}",
            held_out=section == "test",
            **({"template": fields} if isinstance(fields, str) else fields),
        )
        for family, sections in words_of(maker)[table].items()
        for section, named in sections.items()
        for name, fields in named.items()
    )


def wordings_of(wordings: Iterable[W], split: WordingSplit) -> list[W]:
    """Choose the wordings of a split: for ``test`` the held-out ones alone."""
    return [w for w in wordings if split == "all" or w.held_out == (split == "test")]


def question_wordings_of(wordings: Iterable[W], split: WordingSplit) -> list[W]:
    """Choose the wordings of a split's questions: for ``test`` the held-out ones among all others.

    Some questions have too few wordings to hold one out.
    """
    return [w for w in wordings if not (split == "train" and w.held_out)]


def seeded_rng(*key: object) -> Random:
    """Make a generator whose draws depend on the key alone, on every machine and in every run.

    The key names what is drawn: data set, seed, split, number of the row.
    """
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return Random(int.from_bytes(digest[:8], "big"))


def draw_weighted(rng: Random, weights: Mapping[T, float]) -> T:
    """Draw one of several things by their weights."""
    return rng.choices(list(weights), list(weights.values()))[0]


def join_list(parts: Sequence[str]) -> str:
    """Write ``A, B and C``."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def capital(text: str) -> str:
    """Begin a text with a capital letter."""
    return text[:1].upper() + text[1:]
