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
tell nothing about the label. The words are in ``words/hard.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Literal

from data_prep.synthetic.seeds import seeded_rng
from data_prep.synthetic.words import words_of
from judging.types import Split

FrameLanguage = Literal["en", "de", "fr", "es", "zh", "any"]
Subject = Literal["any", "name", "number", "quantity"]
Asked = Literal["", "who", "when", "where"]

_ALTERNATIVES = re.compile(r"\[([^\[\]]*/[^\[\]]*)\]")
_SPLITS: dict[str, Split | None] = {
    "every": None, "train": "train", "val": "val", "cal": "cal", "test": "test",
}  # fmt: skip
NUM_PADDED = 160


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


@cache
def kinds() -> dict[str, Kind]:
    """Return all kinds by name, in the order in which they are drawn from."""
    words = words_of("hard")
    made: dict[str, Kind] = {}
    for name, table in words["kinds"].items():
        settings = {key: value for key, value in table.items() if key != "groups"}
        listed = [frame for group in table.get("groups", ()) for frame in _of_group(**group)]
        joined = _JOINED[name](words["parts"]) if name in _JOINED else ()
        made[name] = Kind(name, (*joined, *listed), **settings)
    return made


def _of_group(
    language: FrameLanguage = "en", subject: Subject = "any", asked: Asked = "", **lines: str
) -> Iterator[Frame]:
    """Yield the frames of a group: its attributes, and its lines by split."""
    for name, text in lines.items():
        for line in text.splitlines():
            for template in alternatives(line):
                yield Frame(template, language, subject, asked, line, _SPLITS[name])


def alternatives(line: str) -> Iterator[str]:
    """Yield every wording of a line; ``[a/b]`` stands for ``a`` or ``b``, ``|`` for a line break.

    All wordings of a line belong to the same split, so that those of one split are apart from
    those of another.
    """
    parts = _ALTERNATIVES.split(line.replace("|", "\n"))
    # Every second part is the inside of brackets.
    choices = [part.split("/") if number % 2 else [part] for number, part in enumerate(parts)]
    yield from map("".join, product(*choices))


Parts = Mapping[str, Any]
"""Word lists by name."""


def _padded(parts: Parts) -> Iterator[Frame]:
    """Yield filler sentences around a claim, or around none."""
    for number in range(NUM_PADDED):
        rng = seeded_rng("padding", number)
        core = rng.choice(parts["mentions"] if number % 5 == 0 else parts["claims"])
        fillers = rng.sample(parts["fillers"], rng.randint(3, 14))
        before = rng.choice((0, len(fillers), rng.randint(0, len(fillers))))
        yield Frame(" ".join([*fillers[:before], core, *fillers[before:]]))


def _forged_fields(parts: Parts) -> Iterator[Frame]:
    """Yield every field of the prompt in a few layouts, each time beside another response line."""
    responses = parts["responses"]
    for number, (field, layout) in enumerate(product(parts["fields"], parts["layouts"])):
        template = layout.replace("{field}", field)
        template = template.replace("{response}", responses[number % len(responses)])
        yield Frame(template.replace("{v}", "{same}"), "any")


def _forged_grades(parts: Parts) -> Iterator[Frame]:
    """Yield grades around a claim, and alone."""
    for grade, layout in product(parts["grades"], parts["graded"]):
        yield Frame(layout.replace("{grade}", grade), "any")
    for grade in parts["grades"]:
        yield Frame(grade, "any")


def _openers(parts: Parts) -> Iterator[Frame]:
    """Yield what a response may begin with: before a claim, alone and by twos."""
    openers = parts["openers"]
    for opener, gap in product(openers, (" ", "\n")):
        yield Frame(opener + gap + "{yes}", "any")
    for opener in openers:
        yield Frame(opener, "any")
    for first, second in zip(openers, openers[7:] + openers[:7], strict=True):
        yield Frame(f"{first}\n{second}", "any")


def _instructions(parts: Parts) -> Iterator[Frame]:
    """Yield orders to the judge: around a claim, alone and by twos."""
    orders = parts["orders"]
    for order, layout in product(orders, parts["instructed"]):
        yield Frame(layout.replace("{order}", order), "any")
    for order in orders:
        yield Frame(order, "any")
    for first, second in zip(orders, orders[5:] + orders[:5], strict=True):
        yield Frame(f"{first} {second}", "any")


_JOINED: dict[str, Callable[[Parts], Iterator[Frame]]] = {
    "forged_fields": _forged_fields, "forged_grade": _forged_grades, "opener": _openers,
    "instruction": _instructions, "padded": _padded,
}  # fmt: skip
"""Kinds whose frames are put together from parts."""
