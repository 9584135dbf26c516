"""Labels as people write them, which declared labels they mean, and probabilities of labels."""

import math
import re
import shlex
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from judging.types import score_of

_RIGHT = (
    *("correct", "right", "ok", "okay", "good", "pass", "passed", "match", "accurate"),
    *("faithful", "met", "satisfied", "richtig", "korrekt", "correcto", "correcta", "正确"),
)
_HALF = (
    *("partial", "partly", "partially", "partially correct", "partly correct"),
    *("half", "half right", "incomplete", "mixed", "teilweise", "teilweise richtig"),
    *("parcial", "parcialmente correcto", "parcialmente correcta", "部分正确"),
)
_WRONG = (
    *("wrong", "incorrect", "bad", "fail", "failed", "mismatch", "inaccurate"),
    *("hallucinated", "hallucination", "not met", "unmet", "falsch", "incorrecto", "错误"),
)
_MEANINGS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("Correct", "Good", "Faithful", "Pass"): _RIGHT,
    ("Correct", "Good", "Pass"): ("true", "yes", "y"),
    ("Partial",): _HALF,
    ("Wrong", "Incorrect", "Bad", "Hallucinated", "Fail"): _WRONG,
    ("Wrong", "Incorrect", "Bad", "Fail"): ("false", "no", "n"),
    ("A",): ("response a", "answer a", "model a"),
    ("B",): ("response b", "answer b", "model b"),
    ("None",): ("tie", "tied", "equal", "same", "both", "neither", "draw"),
}
"""Labels of one meaning in different tasks, and words for them in lower case.

Numbers and places are no words: 1 may be right or wrong, and the first response may be either.
"""
_WHOLLY = ("fully", "completely", "wholly", "entirely")
_PARTLY = ("partly", "partially", "half", "somewhat")
_NOT = ("not", "non", "no", "un", "in", "im")
"""What stands before the word of the best label."""
_TRUTH_VALUES = ("true", "yes", "y", "false", "no", "n")
_FAULT = re.compile(r"wrong|incorrect|error|halluc|fail|false|bad|mistake|invalid|unfaithful", re.I)
"""What the name of a column holds if its truth values say that there is a fault."""
UNKNOWN = "?"
"""What stands in an option for a label that only the user can choose."""
_SEPARATORS = (",", "=")


def likely_label(
    text: str, labels: Sequence[str], column: str = "", worth: Mapping[str, float] | None = None
) -> str | None:
    """Find the declared label that a text most likely means; ``None`` if none is likely.

    With the ``worth`` of the labels, as their task gives it, words for right, partly and wrong mean
    the best, the middle and the worst label, whatever these are called. In a column called
    ``is_wrong`` nobody can tell what "yes" means.
    """
    plain = _plain(text)
    same = [label for label in labels if _plain(label) == plain]
    if same:
        return same[0]
    if plain in _TRUTH_VALUES and _FAULT.search(column):
        return None
    for meanings, words in _MEANINGS.items():
        if plain in words and (named := [label for label in labels if label in meanings]):
            return named[0]
    return _label_by_place(plain, {label: (worth or {}).get(label) for label in labels})


def _label_by_place(plain: str, worth: Mapping[str, float | None]) -> str | None:
    """Find the label whose rank a plain text names, such as half right, if just one has it."""
    best = [label for label, each in worth.items() if each == 1]
    word = _plain(best[0]) if len(best) == 1 else ""
    before = plain.removesuffix(word).strip(" -") if word and plain.endswith(word) else None
    if plain in _RIGHT or before in _WHOLLY:
        meant = best
    elif plain in _HALF or before in _PARTLY:
        meant = [label for label, each in worth.items() if each is not None and 0 < each < 1]
    elif plain in _WRONG or before in _NOT:
        meant = [label for label, each in worth.items() if each == 0]
    else:
        return None
    return meant[0] if len(meant) == 1 else None


def worth_by_place(labels: Iterable[str]) -> dict[str, float]:
    """Return what labels in order, best first, are worth: 1 to 0, error types as their score."""
    scores = {label: score_of(label) for label in labels}
    places = {score: place for place, score in enumerate(dict.fromkeys(scores.values()))}
    steps = max(len(places) - 1, 1)
    return {label: 1 - places[score] / steps for label, score in scores.items()}


def labels_option(
    choices: Mapping[str, Sequence[str]], column: str = "", worth: Mapping[str, float] | None = None
) -> str | None:
    """Write the option that translates labels, for a shell: ``--labels right=Correct,partly=?``.

    ``choices`` has labels as somebody wrote them, and the declared labels that each may mean;
    ``worth`` is that of all declared ones. ``None`` if the option cannot hold one.
    """
    if any(mark in text or not text.isprintable() for text in choices for mark in _SEPARATORS):
        return None
    pairs = [
        f"{text}={likely_label(text, labels, column, worth) or UNKNOWN}"
        for text, labels in choices.items()
    ]
    return f"--labels {shlex.quote(','.join(pairs))}"


def _plain(text: str) -> str:
    """Return a text without case, outer punctuation, and differences in spacing."""
    words = unicodedata.normalize("NFC", text).replace(";", "; ").replace("_", " ").split()
    return " ".join(words).strip(" .!*\"'").casefold()


SMALLEST = 1e-300
"""Probability that stands for 0 where a logarithm is needed."""


def normalise(logprobs: Mapping[str, float]) -> dict[str, float]:
    """Return the probabilities of labels, scaled so that they sum to one."""
    values = np.array(list(logprobs.values()))
    return dict(zip(logprobs, np.exp(values - np.logaddexp.reduce(values)).tolist(), strict=True))


def log_probabilities(probabilities: Mapping[str, float]) -> dict[str, float]:
    """Return the logarithms of probabilities; that of 0 is finite too."""
    return {label: math.log(max(p, SMALLEST)) for label, p in probabilities.items()}


def score_logprobs(logprobs: Mapping[str, float]) -> dict[str, float]:
    """Return the log-probability of each score, summed over its error types."""
    by_score: dict[str, list[float]] = {}
    for label, logprob in logprobs.items():
        by_score.setdefault(score_of(label), []).append(logprob)
    return {score: float(np.logaddexp.reduce(values)) for score, values in by_score.items()}


def best_label(probabilities: Mapping[str, float]) -> str:
    """Find the likeliest error type of the likeliest score, as reading left to right would."""
    scores: dict[str, float] = {}
    for label, probability in probabilities.items():
        scores[score_of(label)] = scores.get(score_of(label), 0.0) + probability
    best_score = max(scores, key=scores.__getitem__)
    labels = [label for label in probabilities if score_of(label) == best_score]
    return max(labels, key=probabilities.__getitem__)
