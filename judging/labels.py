"""Labels as people write them, and the declared labels that they most likely mean."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence

_MEANINGS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("Correct", "Good", "Faithful"): (
        *("correct", "right", "ok", "okay", "good", "pass", "passed", "match", "accurate"),
        "faithful",
    ),
    ("Correct", "Good"): ("true", "yes", "y"),
    ("Partial",): (
        *("partial", "partly", "partially", "partially correct", "partly correct"),
        *("half", "half right", "incomplete", "mixed"),
    ),
    ("Wrong", "Incorrect", "Bad", "Hallucinated"): (
        *("wrong", "incorrect", "bad", "fail", "failed", "mismatch", "inaccurate"),
        *("hallucinated", "hallucination"),
    ),
    ("Wrong", "Incorrect", "Bad"): ("false", "no", "n"),
    ("A",): ("response a", "answer a", "model a"),
    ("B",): ("response b", "answer b", "model b"),
    ("None",): ("tie", "tied", "equal", "same", "both", "neither", "draw"),
}
"""Labels of one meaning in different tasks, and words for them in lower case.

Numbers and places are no words: 1 may be right or wrong, and the first response may be either.
"""
_TRUTH_VALUES = ("true", "yes", "y", "false", "no", "n")
_FAULT = re.compile(r"wrong|incorrect|error|halluc|fail|false|bad|mistake|invalid|unfaithful", re.I)
"""What the name of a column holds if its truth values say that there is a fault."""
UNKNOWN = "?"
"""What stands in an option for a label that only the user can choose."""
_SEPARATORS = (",", "=")


def likely_label(text: str, labels: Sequence[str], column: str = "") -> str | None:
    """Return the declared label that a text most likely means; ``None`` if none is likely.

    Args:
        text: Label as somebody wrote it.
        labels: Declared labels.
        column: Column that holds it; in one called ``is_wrong`` nobody can tell what "yes" means.
    """
    plain = _plain(text)
    same = [label for label in labels if _plain(label) == plain]
    if same:
        return same[0]
    if plain in _TRUTH_VALUES and _FAULT.search(column):
        return None
    for meanings, words in _MEANINGS.items():
        if plain in words:
            return next((label for label in labels if label in meanings), None)
    return None


def labels_option(choices: Mapping[str, Sequence[str]], column: str = "") -> str | None:
    """Return the option that translates labels: ``--labels right=Correct,partly=?``.

    Args:
        choices: Labels as somebody wrote them, and the declared labels that each may mean. ``?``
            stands where none is likely.
        column: Column that holds them.

    Returns:
        The option, quoted for a shell; ``None`` if a label holds a character that separates labels
        in the option, or one that cannot be typed.
    """
    if any(mark in text or not text.isprintable() for text in choices for mark in _SEPARATORS):
        return None
    pairs = [
        f"{text}={likely_label(text, labels, column) or UNKNOWN}"
        for text, labels in choices.items()
    ]
    return f"--labels {shlex.quote(','.join(pairs))}"


def _plain(text: str) -> str:
    """Return a text without case, outer punctuation, and differences in spacing."""
    words = unicodedata.normalize("NFC", text).replace(";", "; ").replace("_", " ").split()
    return " ".join(words).strip(" .!*\"'").casefold()
