"""Labels as people write them, and the declared labels that they most likely mean."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

_MEANINGS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("Correct", "Good", "Faithful"): (
        *("correct", "right", "true", "yes", "y", "ok", "okay", "good", "pass", "passed"),
        *("match", "accurate", "faithful", "positive", "1", "1.0"),
    ),
    ("Partial",): (
        *("partial", "partly", "partially", "partially correct", "partly correct"),
        *("half", "half right", "incomplete", "mixed", "0.5", ".5"),
    ),
    ("Wrong", "Incorrect", "Bad", "Hallucinated"): (
        *("wrong", "incorrect", "false", "no", "n", "bad", "fail", "failed"),
        *("mismatch", "inaccurate", "hallucinated", "hallucination", "negative", "0", "0.0"),
    ),
    ("A",): ("first", "response a", "answer a", "model a"),
    ("B",): ("second", "response b", "answer b", "model b"),
    ("None",): ("tie", "tied", "equal", "same", "both", "neither", "draw"),
}
"""Labels of one meaning in different tasks, and words for them in lower case."""
UNKNOWN = "?"
"""What stands in an option for a label that only the user can choose."""
_SEPARATORS = (",", "=")


def likely_label(text: str, labels: Sequence[str]) -> str | None:
    """Return the declared label that a text most likely means; ``None`` if none is likely.

    Args:
        text: Label as somebody wrote it.
        labels: Declared labels.
    """
    plain = _plain(text)
    same = [label for label in labels if _plain(label) == plain]
    if same:
        return same[0]
    for meanings, words in _MEANINGS.items():
        if plain in words:
            return next((label for label in labels if label in meanings), None)
    return None


def labels_option(choices: Mapping[str, Sequence[str]]) -> str | None:
    """Return the option that translates labels: ``--labels right=Correct,partly=?``.

    Args:
        choices: Labels as somebody wrote them, and the declared labels that each may mean. ``?``
            stands where none is likely.

    Returns:
        The option, quoted for a shell; ``None`` if a label holds a character that separates labels
        in the option, or one that cannot be typed.
    """
    if any(mark in text or not text.isprintable() for text in choices for mark in _SEPARATORS):
        return None
    pairs = [f"{text}={likely_label(text, labels) or UNKNOWN}" for text, labels in choices.items()]
    return f"--labels {shlex.quote(','.join(pairs))}"


def _plain(text: str) -> str:
    """Return a text without case, outer punctuation, and differences in spacing."""
    return " ".join(text.replace(";", "; ").replace("_", " ").split()).strip(" .!*\"'").casefold()
