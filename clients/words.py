"""Probabilities of labels, from a chat answer's words and the likeliest alternatives of its tokens.

A server gives only a few alternatives per token, so the probability of a label is a lower bound:
approximate, unlike that of a label tree.
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
    """Log-probability of the likeliest tokens in this place, by their text; this one may be among
    them or not."""


def label_masses(tokens: Sequence[Token], labels: Sequence[str]) -> list[float]:
    """Return the probability that an answer begins with each label, as far as tokens show it.

    An alternative that fits several labels counts for each in equal parts.

    Args:
        tokens: The answer, decoded greedily.
        labels: Labels to look for.

    Returns:
        One probability per label; all zero if no text begins with a label.
    """
    masses = dict.fromkeys(labels, 0.0)
    text, logprob = "", 0.0

    def add(start: str, start_logprob: float) -> None:
        fitting = [label for label in labels if _fits(label, start)]
        for label in fitting:
            masses[label] += math.exp(start_logprob) / len(fitting)

    for token in tokens:
        for other_text, other_logprob in token.alternatives.items():
            if other_text != token.text and (text + other_text).strip(DECORATION):
                add(text + other_text, logprob + other_logprob)
        text, logprob = text + token.text, logprob + token.logprob
        if text.strip(DECORATION) and not any(_fits(label, text) for label in labels):
            return list(masses.values())
    if text.strip(DECORATION):
        add(text, logprob)
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
    """Return whether a text is the start of a label, or the label with no further letter."""
    text = text.lstrip(DECORATION)
    if label.startswith(text):
        return True
    return text.startswith(label) and not text[len(label)].isalnum()
