"""Checkers: each tells of a response whether it meets a criterion that leaves no doubt."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

Check = Callable[[str], bool]


def is_json(text: str) -> bool:
    """Tell whether a text is one JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def has_key(text: str, key: str) -> bool:
    """Tell whether a text is a JSON object with a key."""
    return is_json(text) and key in json.loads(text)


def num_words(text: str) -> int:
    """Count what white space separates, as far as it holds a letter or a digit."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def num_sentences(text: str) -> int:
    """Count the ends of sentences, and a last one that is not ended."""
    parts = re.split(r"(?<=[.!?])[\"')\]]*(?:\s+|$)|(?<=[。！？])|\n+", text)
    return sum(any(map(str.isalnum, part)) for part in parts)


def num_bullets(text: str) -> int:
    """Count the lines of a list with dashes, stars or dots; 0 if any line is something else."""
    lines = text.strip().splitlines()
    return len(lines) if all(re.match(r"[-*•] \S", line) for line in lines) else 0


def is_numbered(text: str) -> bool:
    """Tell whether every line begins with its number, from 1 on."""
    lines = text.strip().splitlines()
    return all(re.match(rf"{number}[.)] \S", line) for number, line in enumerate(lines, 1))


def is_table(text: str) -> bool:
    """Tell whether a text is a Markdown table with a header."""
    lines = text.strip().splitlines()
    is_framed = all(re.fullmatch(r"\|.*\|", line) for line in lines)
    return (
        is_framed
        and len(lines) > 2
        and re.fullmatch(r"\|(?:\s*:?-+:?\s*\|)+", lines[1]) is not None
    )


def is_prose(text: str) -> bool:
    """Tell whether a text is no JSON and no line of it belongs to a list or a table."""
    return not is_json(text) and not re.search(r"^\s*(?:[-*•|{}]|\d+[.)])", text, re.MULTILINE)


def mentions(text: str, term: str) -> bool:
    """Tell whether a term occurs as whole words, in any case."""
    return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text, re.IGNORECASE) is not None


def ends_with(text: str, words: str) -> bool:
    """Tell whether a text ends with some words, whatever marks follow them."""
    return text.rstrip(" .!\n").casefold().endswith(words.casefold())


def begins_with(text: str, words: str) -> bool:
    """Tell whether a text begins with some words, in any case."""
    return text.lstrip().casefold().startswith(words.casefold())


def is_chinese(text: str) -> bool:
    """Tell whether at least half of the letters of a text are Chinese."""
    letters = [mark for mark in text if mark.isalpha()]
    return 2 * sum("一" <= mark <= "鿿" for mark in letters) >= max(1, len(letters))


def states(text: str, fact: str) -> bool:
    """Tell whether a fact stands in a text as it is written, in any case."""
    return fact.casefold() in text.casefold()


def about(check: Callable[[str, str], bool], what: str) -> Check:
    """Make the checker of one term, key or fact."""
    return lambda text: check(text, what)


def counts(count: Callable[[str], int], least: int, most: int) -> Check:
    """Make a checker of a number that lies within limits."""
    return lambda text: least <= count(text) <= most


def finds(pattern: str) -> Check:
    """Make a checker that looks for a pattern."""
    return lambda text: re.search(pattern, text) is not None


def negated(check: Check) -> Check:
    """Make the checker of the opposite."""
    return lambda text: not check(text)


asks_back = finds(r"[?？]\s*$")
"""Tells whether a text ends with a question mark."""
has_contact = finds(r"[\w.]+@\w+\.\w|\b\d{3}-\d{4}\b")
"""Tells whether a text holds an email address or a phone number."""
