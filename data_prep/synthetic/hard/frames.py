"""Frames: the words of a hard response around the answers that it claims, rejects or mentions.

The slots of a frame say what an answer is there for, so the label follows from what fills them:

- ``{yes}``: what the response claims. A response with it earns the label of that claim.
- ``{no}``: what the response rejects or only mentions: the right answer if the claim is wrong, a
  wrong one if the claim is right.
- ``{other}``: something wrong that is only mentioned.
- ``{same}``: the claim again, in short.
- ``{low}``, ``{high}``: numbers around the right one.
- ``{question}``: the question.

A frame without ``{yes}`` claims nothing: it is Wrong, whatever it mentions.

Every frame with ``{yes}`` is written once with a right and once with a wrong claim, so its words
tell nothing about the label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Literal

from judging.types import Split

FrameLanguage = Literal["en", "de", "fr", "es", "zh", "any"]
Subject = Literal["any", "name", "number", "quantity"]
Asked = Literal["", "who", "when", "where"]

_ALTERNATIVES = re.compile(r"\[([^\[\]]*/[^\[\]]*)\]")
_CYCLE = 12
_HELD_OUT: dict[int, Split] = {3: "val", 7: "cal", 11: "test"}
"""Of every ``_CYCLE`` composed lines, those that are kept for another split than training."""


@dataclass(frozen=True)
class Frame:
    """One wording of a kind."""

    template: str
    language: FrameLanguage = "en"
    subject: Subject = "any"
    """What the answers must be for the wording to make sense."""
    asked: Asked = ""
    """First word of the questions that the wording answers; empty: any question."""
    stem: str = ""
    """The line of alternatives that the wording was composed from."""
    split: Split | None = None
    """The only split with this wording; ``None``: every split."""

    @property
    def claims(self) -> bool:
        """Return whether the response claims an answer."""
        return "{yes}" in self.template

    def serves(self, split: Split) -> bool:
        """Return whether rows of a split may have this wording."""
        return self.split in (None, split)


@dataclass(frozen=True)
class Kind:
    """Frames that deceive a judge in one way, and the share of rows they get."""

    name: str
    frames: tuple[Frame, ...]
    weight: float = 1.0
    whole_claims: bool = False
    """``{yes}`` stands on its own, so a whole response may fill it."""
    near: bool = False
    """Wrong answers are look-alikes wherever there are any."""
    empty_share: float = 0.25
    """Share of draws without a claim, if the kind has such frames."""

    def claiming(self) -> list[Frame]:
        """Return the frames that claim an answer."""
        return [frame for frame in self.frames if frame.claims]

    def empty(self) -> list[Frame]:
        """Return the frames that claim nothing."""
        return [frame for frame in self.frames if not frame.claims]


def frames(
    lines: str, language: FrameLanguage = "en", subject: Subject = "any"
) -> tuple[Frame, ...]:
    """Return a frame for each line; ``|`` in a line stands for a line break."""
    return tuple(
        Frame(line.strip().replace("|", "\n"), language, subject)
        for line in lines.strip().splitlines()
    )


def composed(lines: str, subject: Subject = "any", asked: Asked = "") -> tuple[Frame, ...]:
    """Return every wording of each line, in which ``[a/b]`` stands for either ``a`` or ``b``.

    All wordings of a line belong to the same split, so that those of one split are apart from
    those of another.
    """
    made = []
    for position, line in enumerate(lines.strip().splitlines()):
        stem = line.strip()
        split = _HELD_OUT.get(position % _CYCLE, "train")
        parts = _ALTERNATIVES.split(stem.replace("|", "\n"))
        # Every second part is the inside of brackets.
        choices = [part.split("/") if number % 2 else [part] for number, part in enumerate(parts)]
        for words in product(*choices):
            made.append(Frame("".join(words), "en", subject, asked, stem, split))
    return tuple(made)
