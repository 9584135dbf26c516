"""Sentences that say nothing about a question, to make a response longer."""

from __future__ import annotations

import random

WORDS = 150
"""Fewest words of both parts of the padding together."""

SENTENCES = (
    "This kind of thing is asked fairly often, both at pub quizzes and around the dinner table.",
    "Before settling on anything, it pays to read the wording slowly and to notice every detail.",
    "I went over my notes twice, because small slips are easy to make when one is in a hurry.",
    "There is usually more background to a topic than fits into a few lines.",
    "Encyclopedias, newspapers and teachers do not always stress the same points.",
    "Anyone with time to spare may enjoy a visit to the local library for further reading.",
    "A friend of mine likes to debate such matters for hours, and rarely gets tired of it.",
    "What counts in the end is a clear statement, and not how many pages it takes to get there.",
    "Memory plays tricks on all of us, which is why writing things down is a sound habit.",
    "Lectures, podcasts and long magazine pieces have all taken up the subject at some point.",
    "By the way, I did not use a calculator or any other aid.",
    "Plenty of curious readers have wondered about exactly this and sent letters to columnists.",
    "The context matters too, although it would lead too far to spread it all out here.",
    "If you want to dig deeper, begin with an overview and move on to specialist works later.",
    "Explaining something in plain words is harder than it looks, so bear with me for a moment.",
    "None of this is meant to sound clever; it merely sets the scene for what you wanted to hear.",
    "Some days the simplest matters take the longest, and a cup of tea helps more than a search.",
    "Thank you for your patience while I gathered my thoughts and put them into some order.",
)  # fmt: skip


def padding(draw: random.Random) -> tuple[str, str]:
    """Return two parts of a padding, which have ``WORDS`` words together and share no sentence."""
    sentences = draw.sample(SENTENCES, len(SENTENCES))
    parts = []
    for _ in range(2):
        part: list[str] = []
        while sum(len(sentence.split()) for sentence in part) < WORDS / 2:
            part.append(sentences.pop())
        parts.append(" ".join(part))
    first, second = parts
    return first, second
