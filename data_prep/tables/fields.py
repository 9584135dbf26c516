"""The fields that a table can fill, and how near other names come to theirs."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher

from judging.types import JudgeRequest, LabelledExample

METADATA = "metadata."
"""Before the name of an entry of ``metadata`` in a mapping."""
ANNOTATOR_LABELS = "annotator_labels"
PERSON = f"{ANNOTATOR_LABELS}."
"""Before the name of a person whose labels a column holds."""
RESPONSES = ("response", "response_a", "response_b", "responses")
"""The names under which responses may be given."""
PAIR = RESPONSES[1:3]
"""The responses of a pair; one without the other is no pair."""
REQUEST_FIELDS = (*RESPONSES[:3], *JudgeRequest.model_fields)
"""The fields of a request that a table can fill."""
TABLE_FIELDS = (*RESPONSES[:3], *LabelledExample.model_fields)
"""The fields of a labelled row that a table can fill."""

SYNONYMS = {
    "question": ("prompt", "query", "input", "instruction", "problem"),
    "references": (
        *("gold", "ground_truth", "gold_answer", "target", "expected", "expected_answer"),
        *("reference_answer", "correct_answer", "reference", "solution", "answer"),
    ),
    "response": (
        *("model_answer", "model_response", "prediction", "output", "completion", "generation"),
        *("model_output", "candidate", "reply", "answer"),
    ),
    "response_a": ("answer_a", "output_a", "model_a", "a", "response_1", "answer_1", "chosen"),
    "response_b": ("answer_b", "output_b", "model_b", "b", "response_2", "answer_2", "rejected"),
    "label": (
        *("human_label", "gold_label", "grade", "rating", "verdict", "judgement", "judgment"),
        *("correct", "correctness", "is_correct", "winner", "preference", "score"),
    ),
}
"""Usual names of columns, the likeliest first; only suggestions are made from them."""

_MIN_NEAR_CHARS = 6
_NEAR = 0.85
_ALIKE = 0.75


def nearest_field(name: str, fields: Iterable[str]) -> str | None:
    """Return the field that a name nearly equals: another case, a plural, a slip of one letter."""
    fields = tuple(fields)
    plain = _plain(name)
    for field in fields:
        if _plain(field) == plain:
            return field
    for field in fields:
        other = _plain(field)
        if other.rstrip("s") == plain.rstrip("s"):
            return field
        is_long = min(len(plain), len(other)) >= _MIN_NEAR_CHARS
        if is_long and abs(len(plain) - len(other)) <= 1 and _ratio(plain, other) >= _NEAR:
            return field
    return None


def suggest_columns(fields: Iterable[str], columns: Collection[str]) -> dict[str, str]:
    """Return a likely column for each field that has one; no column is suggested twice."""
    free = {_plain(column): column for column in reversed(tuple(columns))}
    suggestions: dict[str, str] = {}
    for field in fields:
        names = [_plain(name) for name in (field, *SYNONYMS.get(field, ()))]
        likely = next((name for name in names if name in free), None) or max(
            (name for name in free if max(_ratio(name, known) for known in names) >= _ALIKE),
            key=lambda name: max(_ratio(name, known) for known in names),
            default=None,
        )
        if likely is not None:
            suggestions[field] = free.pop(likely)
    return suggestions


def map_option(ours: str, theirs: str) -> str:
    """Return the option that reads our field from a column, ready for a shell."""
    return f"--map {shlex.quote(f'{ours}={theirs}')}"


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFC", name).casefold())


def _ratio(name: str, other: str) -> float:
    return SequenceMatcher(None, name, other).ratio()
