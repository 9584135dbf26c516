"""The commands that a text names, split into words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from tests.docs.markdown_pages import blocks, spans

PROGRAMS = ("custos", "python", "accelerate", "make", "pytest")
SEPARATORS = {"|", "||", "&&", ";", "&", ">", "<"}
ASSIGNMENT = re.compile(r"[A-Z_]+=")


def commands_of(page: Path) -> Iterator[list[str]]:
    """Yield the commands of a page that start our programs, from its blocks and sentences."""
    for block in blocks(page):
        if block.language == "sh":
            yield from commands_in(block.text)
    for span in spans(page):
        yield from commands_in(span)


def commands_in(text: str) -> Iterator[list[str]]:
    """Yield the commands in a piece of shell: words, without variables in front of them."""
    for line in text.replace("\\\n", " ").splitlines() if "'{" not in text else [text]:
        words: list[str] = []
        for word in [*_words(line), ";"]:
            if word in SEPARATORS:
                if words and words[0] in PROGRAMS:
                    yield words
                words = []
            elif words or not ASSIGNMENT.match(word):
                words.append(word)


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # a span of code with a single quotation mark is no command
        return []
