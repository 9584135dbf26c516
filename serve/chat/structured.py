"""JSON schemas that clients send, for a reply or the arguments of a tool: what stands under a key.

A key means what the contract says. Otherwise its name and its type must tell: nothing is filled by
guess, since a caller could read it as a pass. Such a schema is 422 and not 400, after which mlflow
would send the prompt again without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from judging.labels import likely_label
from judging.tasks import get_task
from serve.calls.errors import ApiError
from serve.chat.contract import Contract
from serve.chat.slots import PARTIAL, Boolean, Fixed, Label, Score, Slot, Text

VERDICTS = frozenset(
    "pass passed passes success correct iscorrect correctness score result verdict value grade "
    "label rating judgement judgment decision outcome conclusion assessment category points "
    "answercorrect meetscriterion meetscriteria ispass".split()
)
"""Names, without case and signs, of keys that hold a verdict of which more or true is better."""
TEXTS = frozenset(
    "reason reasons reasoning rationale explanation critique comment comments justification "
    "feedback analysis thought thoughts thinking explanations summary evaluation "
    "chainofthought".split()
)
CONFIDENCES = frozenset(("confidence", "probability", "certainty"))
MOST_KEYS = 32
MOST_CHOICES = 64
LARGEST_BOUND = 1e9
MOST_HOPS = 16
"""Most references from one part of a schema to another, on the way to one key."""
UNREADABLE = ("pattern", "format", "multipleOf", "not", "if", "minLength")
"""Keywords of a schema that a filled value could violate."""


@dataclass(frozen=True)
class _Schema:
    """A schema, where it stands in the body, and the contract whose verdicts fill it."""

    root: Mapping[str, Any]
    path: str
    contract: Contract
    words: Mapping[str, str]
    """The script's word of each label."""
    form: Mapping[str, Slot]
    """What the script's own keys hold."""

    def refuse(self, message: str, key: str = "") -> NoReturn:
        """Raise ``ApiError`` 422, which names a key."""
        path = f"{self.path}.properties.{key}" if key else self.path
        raise ApiError(422, message, path)


def form_of_schema(
    schema: Any, path: str, contract: Contract, words: Mapping[str, str], form: Mapping[str, Slot]
) -> dict[str, Slot]:
    """Find what stands under each key of an object of a JSON schema, in its order.

    ``path`` is the schema's place in the body; ``words`` and ``form`` are those of the prompt's
    layout. Raises ``ApiError`` 422, which says why, if one cannot be filled, or none holds the
    verdict.
    """
    if not isinstance(schema, dict):
        raise ApiError(422, "expected a JSON schema", path)
    given = _Schema(schema, path, contract, words, form)
    top = _resolved(given, schema, "")
    properties = top.get("properties")
    if not isinstance(properties, dict) or not properties:
        given.refuse("only the schema of an object with properties can be filled")
    if len(properties) > MOST_KEYS:
        given.refuse(f"more than {MOST_KEYS} properties")
    if missing := {*_names(top.get("required"))} - properties.keys():
        given.refuse(f"'{min(missing)}' is required, but not among the properties")
    slots = {key: _slot(given, key, part) for key, part in properties.items()}
    if all(isinstance(slot, Text | Fixed) or _is_confidence(slot) for slot in slots.values()):
        given.refuse(
            "none of its keys holds a verdict: name one of them 'pass', 'score' or 'label'"
        )
    return slots


def is_verdict(key: str) -> bool:
    """Tell whether a key's name says that it holds a verdict."""
    return _plain(key) in VERDICTS


def _plain(key: str) -> str:
    return "".join(filter(str.isalnum, key)).casefold()


def _names(value: Any) -> Iterable[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else ()


def _is_confidence(slot: Slot) -> bool:
    return isinstance(slot, Score) and slot.is_confidence


def _resolved(given: _Schema, part: Any, key: str) -> dict[str, Any]:
    """Follow references, and choose the only alternative beside null."""
    for _ in range(MOST_HOPS):
        if not isinstance(part, dict):
            given.refuse("expected a JSON schema", key)
        if isinstance(reference := part.get("$ref"), str):
            part = {**_target(given, reference, key), **_without(part, "$ref")}
        elif isinstance(kind := part.get("type"), list):
            kinds = [each for each in kind if each != "null"]
            if len(kinds) != 1:
                given.refuse("several types: give it one", key)
            part = {**part, "type": kinds[0]}
        elif word := next((name for name in ("anyOf", "oneOf", "allOf") if name in part), None):
            options = part[word] if isinstance(part[word], list) else []
            options = [each for each in options if each != {"type": "null"}]
            if len(options) != 1 or not isinstance(options[0], dict):
                given.refuse(f"several alternatives in {word}: give it one type", key)
            part = {**options[0], **_without(part, word)}
        else:
            return part
    given.refuse("its references go in a circle", key)


def _without(part: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != name}


def _target(given: _Schema, reference: str, key: str) -> dict[str, Any]:
    value: Any = given.root
    start, *steps = reference.split("/")
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    if start != "#" or not isinstance(value, dict):
        given.refuse(f"no '{reference[:80]}' in the schema", key)
    return value


def _slot(given: _Schema, key: str, part: Any) -> Slot:
    """Find what stands under a key."""
    part = _resolved(given, part, key)
    if unreadable := next((word for word in UNREADABLE if word in part), None):
        given.refuse(f"'{unreadable}' is not supported", key)
    known = given.form.get(key)
    choices = [part["const"]] if "const" in part else part.get("enum")
    if isinstance(choices, list):
        choices = [each for each in choices if each is not None]
    if choices is not None and _kind(choices) is None:
        given.refuse(f"expected 1 to {MOST_CHOICES} values of one type", key)
    if isinstance(known, Fixed):
        if choices and known.value not in choices:
            given.refuse(f"this script reads {known.value!r} there", key)
        return known
    kind = part.get("type") or _kind(choices)
    if choices and kind not in (_kind(choices), "integer"):
        given.refuse(f"its values are of type '{_kind(choices)}'", key)
    plain = _plain(key)
    if kind == "string" and choices:
        return _word(given, key, plain, choices, known)
    if kind == "string":
        return _text(given, key, plain, part, known)
    if get_task(given.contract.task).num_responses == 2:
        given.refuse("of two responses the verdict is one of words: give an enum of strings", key)
    if kind == "boolean":
        if choices not in (None, [True, False], [False, True]):
            given.refuse("it allows one value alone, whatever the verdict is", key)
        if known is None and plain not in VERDICTS:
            _refuse_unknown(given, key)
        return Boolean()
    if kind in ("number", "integer"):
        return _score(given, key, plain, part, choices, known)
    given.refuse(f"a verdict has nothing to fill a value of type '{kind}' with", key)


def _kind(choices: Any) -> str | None:
    """Tell the type of all choices, if it is one and there are not too many."""
    if not isinstance(choices, list) or not 0 < len(choices) <= MOST_CHOICES:
        return None
    for kind, name in ((bool, "boolean"), (str, "string"), (int | float, "number")):
        if all(isinstance(each, kind) for each in choices):
            return name
    return None


def _refuse_unknown(given: _Schema, key: str) -> NoReturn:
    given.refuse(
        "neither the script's contract nor the name tells what it means; names of verdicts are "
        "'pass', 'correct', 'score', 'result', 'verdict', 'label' and their like, of texts "
        "'reason' and its like",
        key,
    )


def _text(
    given: _Schema, key: str, plain: str, part: Mapping[str, Any], known: Slot | None
) -> Slot:
    if isinstance(known, Label):
        return known
    if isinstance(known, Text) or plain in TEXTS:
        most = part.get("maxLength")
        return Text(most if isinstance(most, int) else None)
    if plain in VERDICTS:
        given.refuse("the words of its verdicts are not told: give an enum", key)
    _refuse_unknown(given, key)


def _word(given: _Schema, key: str, plain: str, choices: list[Any], known: Slot | None) -> Slot:
    """Choose a word for every label; one without a word of its own counts as the worst."""
    if len(choices) == 1 and known is None and plain not in VERDICTS:
        return Fixed(choices[0])
    if known is None and plain not in VERDICTS:
        _refuse_unknown(given, key)
    words = given.words
    if {*words.values()} <= {*choices}:
        return Label(dict(words))
    labels = tuple(words)
    # The label that each value names, among the task's labels and among those of quick scores.
    exact = {likely_label(each, labels, key): each for each in reversed(choices)}
    meant = {
        likely_label(each, ("Correct", PARTIAL, "Wrong"), key): each for each in reversed(choices)
    }
    is_pair = get_task(given.contract.task).num_responses == 2
    word_of: dict[str, str | None] = {}
    for label in (*labels, PARTIAL):
        other = meant.get("Correct") if label == labels[0] else meant.get("Wrong")
        if label == PARTIAL:
            other = meant.get(PARTIAL) or exact.get(labels[-1]) or other
        word_of[label] = exact.get(label) or (None if is_pair else other)
    missing = [label for label in labels if word_of[label] is None]
    if missing or word_of[labels[0]] in (word_of[label] for label in labels[1:]):
        given.refuse(f"none of its values means '{(missing or labels)[0]}' alone", key)
    return Label(word_of)


def _score(
    given: _Schema,
    key: str,
    plain: str,
    part: Mapping[str, Any],
    choices: list[Any] | None,
    known: Slot | None,
) -> Slot:
    words = given.words
    if isinstance(known, Label) and all(word.isdecimal() for word in words.values()):
        return Label({label: int(word) for label, word in words.items()})
    if not isinstance(known, Score) and plain not in VERDICTS | CONFIDENCES:
        _refuse_unknown(given, key)
    values = tuple(sorted({each for each in choices or () if not isinstance(each, bool)}))
    is_integer = part.get("type") == "integer"
    low: Any = part.get("minimum")
    high: Any = part.get("maximum")
    if is_integer and not all(float(each).is_integer() for each in values if _is_number(each)):
        given.refuse("its values are no integers", key)
    if values:
        low, high = values[0], values[-1]
    elif isinstance(known, Score) and (low is None or high is None):
        low, high, values = known.low, known.high, known.values
        is_integer = is_integer or known.is_integer
    if is_integer and _is_number(low) and _is_number(high):
        low, high = math.ceil(low), math.floor(high)
    if not (_is_number(low) and _is_number(high) and low < high):
        given.refuse(
            "its scale is not told: give minimum and maximum, up to 1e9, or an enum of at least "
            "two numbers",
            key,
        )
    if part.get("exclusiveMinimum") is not None or part.get("exclusiveMaximum") is not None:
        given.refuse("exclusive bounds are not supported: give minimum and maximum", key)
    return Score(
        low, high, is_integer, values, is_confidence=plain in CONFIDENCES and known is None
    )


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= LARGEST_BOUND
