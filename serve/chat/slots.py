"""What stands under the keys of a JSON reply, and how a verdict fills it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from serve.chat.wire import Piece

TOKEN = re.compile(r"\\u[0-9a-f]{4}|\\.|[{}<>\[\]`]")
"""Escapes in a JSON text, and what careless readers, who count braces or look for tags or fences,
take for more than text. JSON lets any character be written as an escape."""
DIGITS = 4


@dataclass(frozen=True)
class Decision:
    """A verdict, as replies tell it."""

    label: str
    """Without its error type."""
    probabilities: Mapping[str, float]
    """By label, without error types."""
    worth: Mapping[str, float]
    """What each label is worth, 1 for the best to 0 for the worst; empty where they are in no
    order."""
    critique: str | None = None
    note: str = ""
    """What a reader must know, such as that the judge was not measured on the task."""

    @property
    def text(self) -> str:
        """Return the critique or, without one, a sentence that names label and confidence."""
        note = f" ({self.note})" if self.note else ""
        if self.critique:
            return f"{self.critique}{note}"
        probability = self.probabilities[self.label]
        return f"The label is {self.label}, with a confidence of {probability:.2f}{note}."


@dataclass(frozen=True)
class Label:
    """Slot for the verdict's word; by default that of the contract."""

    words: Mapping[str, Any] = field(default_factory=dict)
    """From label to the value that stands for it."""


@dataclass(frozen=True)
class Boolean:
    """Slot for whether the label is the best one."""


@dataclass(frozen=True)
class Score:
    """Slot for a number from ``low`` to ``high``, linear in the expected worth of the label.

    A label in the better half never scores below the middle, and one in the worse half always does:
    who takes numbers from the middle on as a pass reads what the label says. The number of a label
    in the middle may be on either side.
    """

    low: float
    high: float
    is_integer: bool = False
    values: tuple[float, ...] = ()
    """The only numbers that may be written; empty: any between."""
    is_confidence: bool = False
    """It is the probability of the label instead."""

    def value(self, decision: Decision) -> float:
        """Compute the number for a decision."""
        worth = decision.worth
        share = sum(p * worth.get(label, 0.0) for label, p in decision.probabilities.items())
        lowest, highest = self.low, self.high
        middle = (self.low + self.high) / 2
        if self.is_confidence:
            share = decision.probabilities[decision.label]
        elif worth.get(decision.label, 0.0) > 0.5:
            lowest = middle
        elif worth.get(decision.label, 0.0) < 0.5:
            highest = self.low + 0.49 * (self.high - self.low)
        exact = min(max(self.low + (self.high - self.low) * share, lowest), highest)
        if self.values:
            fitting = [each for each in self.values if lowest <= each <= highest]
            return min(fitting or self.values, key=lambda each: abs(each - exact))
        if self.is_integer:
            first, last = math.ceil(lowest), math.floor(highest)
            return min(max(round(exact), first), last)
        return round(exact, DIGITS) if self.high - self.low > 0.1 else exact


@dataclass(frozen=True)
class Text:
    """Slot for :attr:`Decision.text`."""

    most_chars: int | None = None


@dataclass(frozen=True)
class Fixed:
    """Slot that every reply fills alike."""

    value: Any


Slot = Label | Boolean | Score | Text | Fixed


def holds_verdict(slot: Slot) -> bool:
    """Tell whether a reader can find the verdict in a slot."""
    is_confidence = isinstance(slot, Score) and slot.is_confidence
    return not (is_confidence or isinstance(slot, Text | Fixed))


def object_pieces(
    form: Mapping[str, Slot], decision: Decision, words: Mapping[str, str]
) -> Iterator[Piece]:
    """Yield an object piece by piece; what the label decides is a piece of its own.

    ``words`` has the contract's word of each label.
    """
    text = "{"
    for number, (key, slot) in enumerate(form.items()):
        text += f"{', ' if number else ''}{json.dumps(key, ensure_ascii=False)}: "
        if isinstance(slot, Text):
            text += text_value(decision.text[: slot.most_chars])
            continue
        if isinstance(slot, Fixed):
            text += json.dumps(slot.value)
            continue
        yield Piece(text)
        text = ""
        if isinstance(slot, Score):
            yield Piece(json.dumps(slot.value(decision)))
            continue
        values = {label: _choice(slot, label, decision, words) for label in decision.probabilities}
        yield choice_piece(values, decision)
    yield Piece(f"{text}}}")


def choice_piece(texts: Mapping[str, str], decision: Decision) -> Piece:
    """Build the piece that the label decides, with the probability of all that could be there.

    ``texts`` has what is written for each label.
    """
    logprobs: dict[str, float] = {}
    for label, text in texts.items():
        logprobs[text] = logprobs.get(text, 0.0) + decision.probabilities[label]
    logprobs = {text: math.log(max(p, 1e-300)) for text, p in logprobs.items()}
    return Piece(texts[decision.label], logprobs)


def _choice(slot: Label | Boolean, label: str, decision: Decision, words: Mapping[str, str]) -> str:
    if isinstance(slot, Boolean):
        return json.dumps(decision.worth.get(label) == 1)
    value = slot.words[label] if label in slot.words else words[label]
    if not slot.words and value.isdecimal():
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def text_value(text: str) -> str:
    """Write a text as a JSON string that no careless reader takes for more than a text."""

    def escaped(match: re.Match[str]) -> str:
        if match[0] == '\\"':
            return "\\u0022"
        return match[0] if match[0].startswith("\\") else f"\\u{ord(match[0]):04x}"

    return f'"{TOKEN.sub(escaped, json.dumps(text)[1:-1])}"'
