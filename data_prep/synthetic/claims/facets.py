"""Facets of invented things: what may be asked about them, and how each fact may be put.

A value of a facet is a group of phrases that mean the same; another group means something else and
contradicts it. The sentences of a facet take any phrase of its values. The last sentence of every
facet is kept for test data.
"""

from __future__ import annotations

from dataclasses import dataclass

HELD_OUT_SENTENCES = 1
"""Sentences of each facet that training data never show."""


@dataclass(frozen=True)
class Facet:
    """One thing that can be asked about a topic."""

    asked: str
    """What a question calls it."""
    values: tuple[tuple[str, ...], ...]
    """Groups of phrases; those of a group mean the same."""
    sentences: tuple[str, ...]
    """Templates with the slots ``{s}`` (what it is about) and ``{v}`` (the value)."""


@dataclass(frozen=True)
class Topic:
    """A kind of thing with its facets."""

    name: str
    """Template with the slot ``{w}`` for an invented word."""
    facets: tuple[Facet, ...]


def facet(asked: str, values: str, sentences: str) -> Facet:
    """Read a facet: a value a line with ``/`` between its phrases, a sentence a line."""
    return Facet(
        asked,
        tuple(
            tuple(phrase.strip() for phrase in line.split("/"))
            for line in values.strip().splitlines()
        ),
        tuple(line.strip() for line in sentences.strip().splitlines()),
    )


PURPOSE_SENTENCES = """
{s} serves {v}.
The purpose of {s} is {v}.
People use {s} {v}.
{s} is there {v}.
Its main use is {v}.
It was designed {v}.
The reason why {s} exists is {v}.
"""
WEAKNESS_SENTENCES = """
A drawback is that {v}.
Its weakness is that {v}.
On the other hand, {v}.
One has to accept that {v}.
Critics point out that {v}.
The price to pay: {v}.
A known problem of {s} is that {v}.
"""
ADVANTAGE_SENTENCES = """
Its advantage is that {v}.
What speaks for {s} is that {v}.
On the plus side, {v}.
The benefit is that {v}.
It is popular because {v}.
One good thing about it: {v}.
Compared with others, {s} has the merit that {v}.
"""
