"""Rows of a made question, before they get their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from data_prep.synthetic.benchmark_answers.wordings import Topic, Wordings
from data_prep.synthetic.text import names


@dataclass(frozen=True)
class MadeQuestion:
    """A question under a task's variant, with its right answer."""

    variant: str
    question: str
    references: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class MadeAnswer:
    """A response, the label that it earns, and the form that it has."""

    response: str
    label: str
    kind: str


MakeQuestion = Callable[[Random, Wordings], tuple[MadeQuestion, list[MadeAnswer]]]


@dataclass(frozen=True)
class Figure:
    """The data of a made chart."""

    topic: Topic
    values: dict[str, int]

    def written(self, name: str) -> str:
        """Return the value of a thing with its unit."""
        return with_unit(str(self.values[name]), self.topic.unit)


def draw_figure(rng: Random, wordings: Wordings, count: int) -> Figure:
    """Draw a chart of things with invented names and values that lie well apart."""
    topic = rng.choice(wordings.topics)
    things: list[str] = []
    while len(things) < count:
        if (name := names.word(rng, "en")) not in things:
            things.append(name)
    while True:
        values = [rng.randint(topic.low, topic.high) for _ in things]
        ordered = sorted(values)
        if all(low * 1.06 < high for low, high in zip(ordered, ordered[1:], strict=False)):
            return Figure(topic, dict(zip(things, values, strict=True)))


def with_unit(number: str, unit: str) -> str:
    """Return a number and its unit as they are written one after the other."""
    return f"{number}{unit}" if unit == "%" else f"{number} {unit}"
