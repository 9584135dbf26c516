"""JSON schemas that clients send, for a reply or the arguments of a tool: what stands under a key.

A key means what the contract says. Otherwise its name and its type must tell: nothing is filled by
guess, since a caller could read it as a pass. Such a schema is 422 and not 400, after which mlflow
would send the prompt again without it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from judging.labels import likely_label
from judging.tasks import get_task
from serve.calls.errors import ApiError
from serve.chat.contract import CHAT_CONTRACTS, Contract
from serve.chat.slots import Boolean, Fixed, Label, Score, Slot, Text

VERDICTS = frozenset(
    "pass passed passes success correct iscorrect correctness score result verdict value grade "
    "label rating judgement judgment decision outcome conclusion assessment category points "
    "answercorrect meetscriterion meetscriteria ispass".split()
)
"""Names, without case and spacing, of keys that hold a verdict of which more or true is better."""
NOMINAL = frozenset("label category decision outcome conclusion".split())
"""Those of them that hold one of several words: 1 or true may be any of them, a fault too."""
TEXTS = frozenset(
    "reason reasons reasoning rationale explanation critique comment comments justification "
    "feedback analysis thought thoughts thinking explanations summary evaluation "
    "chainofthought".split()
)
CONFIDENCES = frozenset(("confidence", "certainty"))
NAME = re.compile(r"\w[\w \-.]*\??")
"""A key without a sign that could turn its meaning round, such as ``!correct``."""
FAULT = r"wrong|incorrect|inaccura|error|halluc|fail|mistake|invalid|unfaith|contradict|worst|bad\b"
MERIT = r"right|correct|accura|pass|faithful|good|best|perfect|valid|success|support|satisf|\bmeet"
POLAR = re.compile(
    rf"(?P<negated>\b(?:no|not|without|free of|never) (?:\w+ )?)?\b(?:(?P<fault>{FAULT})|{MERIT})",
    re.I,
)
CLAUSE = re.compile(r"[.;,\n]|\botherwise\b|\belse\b|\band\b|\bbut\b", re.I)
LOW_IS_GOOD = re.compile(
    r"\b(?:low|lower|less|smaller) .{0,20}better|\b(?:high|higher) .{0,20}worse", re.I
)
GRADES = ("Correct", "Partial", "Wrong")
"""Labels by whose other words a schema's values are read as well."""
MOST_CHARS = 20_000
"""Longest schema, written as JSON. References may have each part of it read many times."""
MOST_KEYS = 32
MOST_CHOICES = 64
LARGEST_BOUND = 1e9
MOST_HOPS = 16
"""Most references from one part of a schema to another, on the way to one key."""
UNREADABLE = ("pattern", "format", "multipleOf", "not", "if")
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
    if len(json.dumps(schema)) > MOST_CHARS:
        given.refuse(f"the schema has more than {MOST_CHARS:,} characters")
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
    return "".join(filter(str.isalnum, key)).casefold() if NAME.fullmatch(key) else ""


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
    is_nullable = isinstance(choices, list) and None in choices
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
    if known is None and plain in VERDICTS and _is_inverted(part):
        given.refuse("its description says that it names a fault, or that less is better", key)
    if kind == "string" and choices and len(choices) == 1 and known is None:
        return _only_word(given, key, choices[0], is_nullable=is_nullable)
    if kind == "string" and choices:
        return _word(given, key, plain, choices, known)
    if kind == "string":
        return _text(given, key, plain, part, known)
    if get_task(given.contract.task).num_responses == 2:
        given.refuse("of two responses the verdict is one of words: give an enum of strings", key)
    if kind == "boolean":
        if choices not in (None, [True, False], [False, True]):
            given.refuse("it allows one value alone, whatever the verdict is", key)
        if known is None and plain not in VERDICTS - NOMINAL:
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
        most, least = part.get("maxLength"), part.get("minLength", 0)
        if not (most is None or _is_number(most) and most > 0):
            given.refuse("maxLength leaves no room for a text", key)
        if not _is_number(least) or least > 1:
            given.refuse("'minLength' is not supported, but for 1", key)
        return Text(None if most is None else int(most))
    if plain in VERDICTS:
        given.refuse("the words of its verdicts are not told: give an enum", key)
    _refuse_unknown(given, key)


def _is_inverted(part: Mapping[str, Any]) -> bool:
    """Tell whether a description says that true or more is worse: a fault under a neutral name."""
    text = part.get("description")
    if not isinstance(text, str):
        return False
    if LOW_IS_GOOD.search(text):
        return True
    ends = [part.get(name) for name in ("minimum", "maximum")]
    is_number = all(map(_is_number, ends))
    low, high = (rf"(?<![\d.]){re.escape(str(end)[:20])}(?![\d.])" for end in ends)
    low = low if is_number else r"\b(?:false|no (?:if|when|means))\b"
    for clause in CLAUSE.split(text):
        if match := POLAR.search(clause):
            is_fault = bool(match["fault"]) is not bool(match["negated"])
            at_low, at_high = (bool(re.search(end, clause, re.I)) for end in (low, high))
            if not is_number or at_low is not at_high:
                return is_fault is not at_low
            if not at_low and not POLAR.search(clause, match.end()):
                return is_fault  # "how wrong it is", but not "0 (wrong) to 5 (right)"
    return False


def _only_word(given: _Schema, key: str, word: str, *, is_nullable: bool) -> Fixed:
    """Take the only word that a key allows, if nobody can read a verdict out of it."""
    if (
        is_nullable
        or _plain(key) in VERDICTS
        or re.search(f"{FAULT}|{MERIT}", key, re.I)
        or _meaning(given, key, word)
        or re.search(f"{FAULT}|{MERIT}", word, re.I)
    ):
        given.refuse("it allows one value alone, whatever the verdict is", key)
    return Fixed(word)


def _word(given: _Schema, key: str, plain: str, choices: list[Any], known: Slot | None) -> Slot:
    """Choose a word for every label; one that no value means has that of the next worse label.

    Only another label's name is not given to it beside a value that nobody can read, which may mean
    it.
    """
    if known is None and plain not in VERDICTS:
        _refuse_unknown(given, key)
    contract, words = given.contract, given.words
    labels = tuple(contract.worth or words)
    own: dict[str, str] = {}
    if {*words.values()} <= {*choices} and (known or not _is_longer_scale(given, choices)):
        own = {label: word for label, word in _words_of_others(given) if word in choices}
        own |= words
    meanings = {each: _meaning(given, key, each) for each in reversed(choices)}
    named = {label: each for each, label in meanings.items() if label and each not in own.values()}
    word_of = contract.completed({**named, **own})
    missing = [label for label in labels if label not in word_of]
    if any(each not in own.values() and meanings[each] is None for each in choices):
        names = {label.casefold() for label in labels}
        rest = word_of.keys() - named.keys() - own.keys()
        missing += [
            label for label in labels if label in rest and word_of[label].casefold() in names
        ]
    if missing or word_of[labels[0]] in (word_of[label] for label in labels[1:]):
        given.refuse(f"none of its values means '{(missing or labels)[0]}' alone", key)
    return Label(word_of)


def _meaning(given: _Schema, key: str, word: str) -> str | None:
    """Find the label that a value means, by the task's words or by those of quick scores."""
    worth = given.contract.worth
    if label := likely_label(word, tuple(worth or given.words), key, worth):
        return label
    grade = likely_label(word, GRADES, key)
    if not worth or grade is None:
        return None
    alike = [label for label, each in worth.items() if each == 1 - GRADES.index(grade) / 2]
    return alike[0] if alike else None


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
        completed = given.contract.completed(words)
        numbers = {label: int(word) for label, word in completed.items()}
        if _allows(part, choices, numbers.values()):
            return Label(numbers)
    if not isinstance(known, Score) and plain not in (VERDICTS - NOMINAL) | CONFIDENCES:
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
        low, high = (known.low if low is None else low), (known.high if high is None else high)
        values, is_integer = known.values, is_integer or known.is_integer
    if part.get("exclusiveMinimum") is not None or part.get("exclusiveMaximum") is not None:
        given.refuse("exclusive bounds are not supported: give minimum and maximum", key)
    if is_integer and _is_number(low) and _is_number(high):
        low, high = math.ceil(low), math.floor(high)
    if not (_is_number(low) and _is_number(high) and low < high):
        given.refuse(
            "its scale is not told: give minimum and maximum, up to 1e9, or an enum of at least "
            "two numbers",
            key,
        )
    return Score(
        low, high, is_integer, values, is_confidence=plain in CONFIDENCES and known is None
    )


def _is_longer_scale(given: _Schema, choices: Iterable[str]) -> bool:
    """Tell whether letters or numbers go on beside the script's own, as in grades from A to F.

    On such a scale the script's word for a wrong answer may be a good grade.
    """
    known = {*given.words.values(), *(word for _, word in _words_of_others(given))}
    return any(len(each) == 1 or each.isdecimal() for each in {*choices} - known)


def _words_of_others(given: _Schema) -> list[tuple[str, str]]:
    """List labels without a word of the script, with the words of other scripts of its task."""
    alike = (each for each in CHAT_CONTRACTS if each.task == given.contract.task)
    words = (item for contract in alike for item in contract.words.items())
    return [(label, word) for label, word in words if label not in given.words]


def _allows(part: Mapping[str, Any], choices: list[Any] | None, numbers: Iterable[int]) -> bool:
    """Tell whether a schema's values and bounds let all these numbers be written."""
    low: Any = part.get("minimum")
    high: Any = part.get("maximum")
    return all(
        (choices is None or number in choices)
        and not (_is_number(low) and number < low)
        and not (_is_number(high) and number > high)
        for number in numbers
    )


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= LARGEST_BOUND
