"""Labels read from a chat answer: its words, and the likeliest alternatives of each of its tokens.

What a server shows of its model is a short list of alternatives per token, so a label's mass is a
lower bound: approximate, unlike a label tree's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DECORATION = " \t\r\n*_`\"'"


@dataclass(frozen=True)
class Token:
    """One token of an answer."""

    text: str
    logprob: float
    alternatives: Mapping[str, float]
    """Log-probability of the likeliest tokens here, by their text; with or without this one."""


def label_masses(tokens: Sequence[Token], labels: Sequence[str]) -> list[float]:
    """Probability that an answer begins with each label, as far as the alternatives show it.

    An alternative that fits several labels counts for each in equal parts.

    Args:
        tokens: The answer, drawn greedily.
        labels: Labels to look for.

    Returns:
        One mass per label; all zero if nothing shown begins with a label.
    """
    masses = dict.fromkeys(labels, 0.0)
    said, before = "", 0.0

    def give(text: str, logprob: float) -> None:
        fitting = [label for label in labels if _fits(label, text)]
        for label in fitting:
            masses[label] += math.exp(logprob) / len(fitting)

    for token in tokens:
        for text, logprob in token.alternatives.items():
            if text != token.text and (said + text).strip(DECORATION):
                give(said + text, before + logprob)
        said, before = said + token.text, before + token.logprob
        if said.strip(DECORATION) and not any(_fits(label, said) for label in labels):
            return list(masses.values())
    if said.strip(DECORATION):
        give(said, before)
    return list(masses.values())


def tokens_after(tokens: Sequence[Token], opening: str) -> Sequence[Token]:
    """Return the tokens after a text that an answer repeats, or all if it does not."""
    text = ""
    for index, token in enumerate(tokens):
        text += token.text
        if opening and opening in text:
            return tokens[index + 1 :]
    return tokens


def _fits(label: str, text: str) -> bool:
    """Whether a text is the start of a label, or a label that nothing lengthens."""
    text = text.lstrip(DECORATION)
    if label.startswith(text):
        return True
    return text.startswith(label) and not text[len(label)].isalnum()
