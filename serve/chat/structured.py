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
from serve.chat.contract import CHAT_CONTRACTS, Contract, PromptLayout
from serve.chat.slots import Boolean, Fixed, Label, Score, Slot, Text, holds_verdict

VERDICTS = frozenset(
    "pass passed passes success correct iscorrect correctness score result verdict value grade "
    "label rating judgement judgment decision outcome conclusion assessment category points "
    "answercorrect meetscriterion meetscriteria ispass".split()
)
"""Names, without case and spacing, of keys that hold a verdict of which more or true is better."""
NOMINAL = frozenset("label category decision outcome conclusion".split())
"""Those of them that hold one of several words: true or 1 may stand for any word, even a fault."""
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
"""Labels of quick scores: a schema's values may be other words for them, whatever the task."""
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
    """A schema, where it stands in the body, and the prompt whose verdict fills it."""

    root: Mapping[str, Any]
    path: str
    contract: Contract
    layout: PromptLayout
    """It has the script's word of each label, and what the script's own keys hold."""

    def refuse(self, message: str, key: str = "") -> NoReturn:
        """Raise ``ApiError`` 422, which names a key."""
        path = f"{self.path}.properties.{key}" if key else self.path
        raise ApiError(422, message, path)

    def resolved(self, part: Any, key: str = "") -> dict[str, Any]:
        """Follow references, and choose the only alternative beside null."""
        for _ in range(MOST_HOPS):
            if not isinstance(part, dict):
                self.refuse("expected a JSON schema", key)
            if isinstance(reference := part.get("$ref"), str):
                part = {**self._target(reference, key), **_without(part, "$ref")}
            elif isinstance(kind := part.get("type"), list):
                kinds = [each for each in kind if each != "null"]
                if len(kinds) != 1:
                    self.refuse("several types: give it one", key)
                part = {**part, "type": kinds[0]}
            elif word := next((name for name in ("anyOf", "oneOf", "allOf") if name in part), None):
                options = part[word] if isinstance(part[word], list) else []
                options = [each for each in options if each != {"type": "null"}]
                if len(options) != 1 or not isinstance(options[0], dict):
                    self.refuse(f"several alternatives in {word}: give it one type", key)
                part = {**options[0], **_without(part, word)}
            else:
                return part
        self.refuse("its references go in a circle", key)

    def _target(self, reference: str, key: str) -> dict[str, Any]:
        value: Any = self.root
        start, *steps = reference.split("/")
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        if start != "#" or not isinstance(value, dict):
            self.refuse(f"no '{reference[:80]}' in the schema", key)
        return value

    def words_of_others(self) -> list[tuple[str, str]]:
        """List labels without a word of the script, with the words of other scripts of its task."""
        alike = (each for each in CHAT_CONTRACTS if each.task == self.contract.task)
        words = (item for contract in alike for item in contract.words.items())
        return [(label, word) for label, word in words if label not in self.layout.words]


def form_of_schema(
    schema: Any, path: str, contract: Contract, layout: PromptLayout
) -> dict[str, Slot]:
    """Find what stands under each key of an object of a JSON schema, in its order.

    ``path`` is the schema's place in the body. Raises ``ApiError`` 422, which says why, if one
    cannot be filled, or none holds the verdict.
    """
    if not isinstance(schema, dict):
        raise ApiError(422, "expected a JSON schema", path)
    given = _Schema(schema, path, contract, layout)
    if len(json.dumps(schema)) > MOST_CHARS:
        given.refuse(f"the schema has more than {MOST_CHARS:,} characters")
    top = given.resolved(schema)
    properties = top.get("properties")
    if not isinstance(properties, dict) or not properties:
        given.refuse("only the schema of an object with properties can be filled")
    if len(properties) > MOST_KEYS:
        given.refuse(f"more than {MOST_KEYS} properties")
    required = top["required"] if isinstance(top.get("required"), list) else []
    if missing := {each for each in required if isinstance(each, str)} - properties.keys():
        given.refuse(f"'{min(missing)}' is required, but not among the properties")
    slots = {key: _Property(given, key, part).slot() for key, part in properties.items()}
    if not any(map(holds_verdict, slots.values())):
        given.refuse(
            "none of its keys holds a verdict: name one of them 'pass', 'score' or 'label'"
        )
    return slots


def is_verdict(key: str) -> bool:
    """Tell whether a key's name says that it holds a verdict."""
    return _plain(key) in VERDICTS


def _plain(key: str) -> str:
    return "".join(filter(str.isalnum, key)).casefold() if NAME.fullmatch(key) else ""


class _Property:
    """A key of a schema: what may stand there, and what its name and the script say of it."""

    def __init__(self, given: _Schema, key: str, part: Any) -> None:
        self.given = given
        self.key = key
        self.plain = _plain(key)
        self.part = given.resolved(part, key)
        self.known = given.layout.form.get(key)
        """What the script's contract puts there."""
        choices = [self.part["const"]] if "const" in self.part else self.part.get("enum")
        self.is_nullable = isinstance(choices, list) and None in choices
        if isinstance(choices, list):
            choices = [each for each in choices if each is not None]
        self.choices = choices
        """The only values that it allows, without null."""

    def refuse(self, message: str) -> NoReturn:
        """Raise ``ApiError`` 422, which names the key."""
        self.given.refuse(message, self.key)

    def slot(self) -> Slot:
        """Find what stands under the key."""
        part, known, choices = self.part, self.known, self.choices
        if unreadable := next((word for word in UNREADABLE if word in part), None):
            self.refuse(f"'{unreadable}' is not supported")
        if choices is not None and _kind(choices) is None:
            self.refuse(f"expected 1 to {MOST_CHOICES} values of one type")
        if isinstance(known, Fixed):
            if choices and known.value not in choices:
                self.refuse(f"this script reads {known.value!r} there")
            return known
        kind = part.get("type") or _kind(choices)
        if choices and kind not in (_kind(choices), "integer"):
            self.refuse(f"its values are of type '{_kind(choices)}'")
        if known is None and self.plain in VERDICTS and _is_inverted(part):
            self.refuse("its description says that it names a fault, or that less is better")
        if kind == "string" and choices and len(choices) == 1 and known is None:
            return self._only_word(choices[0])
        if kind == "string":
            return self._word(choices) if choices else self._text()
        if get_task(self.given.contract.task).num_responses == 2:
            self.refuse("of two responses the verdict is one of words: give an enum of strings")
        if kind == "boolean":
            if choices not in (None, [True, False], [False, True]):
                self.refuse("it allows one value alone, whatever the verdict is")
            if known is None and self.plain not in VERDICTS - NOMINAL:
                self._refuse_unknown()
            return Boolean()
        if kind in ("number", "integer"):
            return self._score()
        self.refuse(f"a verdict has nothing to fill a value of type '{kind}' with")

    def _refuse_unknown(self) -> NoReturn:
        self.refuse(
            "neither the script's contract nor the name tells what it means; names of verdicts are "
            "'pass', 'correct', 'score', 'result', 'verdict', 'label' and their like, of texts "
            "'reason' and its like"
        )

    def _text(self) -> Slot:
        if isinstance(self.known, Label):
            return self.known
        if isinstance(self.known, Text) or self.plain in TEXTS:
            most, least = self.part.get("maxLength"), self.part.get("minLength", 0)
            if not (most is None or _is_number(most) and most > 0):
                self.refuse("maxLength leaves no room for a text")
            if not _is_number(least) or least > 1:
                self.refuse("'minLength' is not supported, but for 1")
            return Text(None if most is None else int(most))
        if self.plain in VERDICTS:
            self.refuse("the words of its verdicts are not told: give an enum")
        self._refuse_unknown()

    def _only_word(self, word: str) -> Fixed:
        """Take the only word that the key allows, if nobody can read a verdict out of it."""
        if (
            self.is_nullable
            or self.plain in VERDICTS
            or re.search(f"{FAULT}|{MERIT}", self.key, re.I)
            or self._meaning(word)
            or re.search(f"{FAULT}|{MERIT}", word, re.I)
        ):
            self.refuse("it allows one value alone, whatever the verdict is")
        return Fixed(word)

    def _word(self, choices: list[str]) -> Slot:
        """Choose a word for every label.

        A label that no value means gets the word of the next worse label. That is refused if the
        word is the name of another label and some value cannot be read: that value may mean the
        label.
        """
        if self.known is None and self.plain not in VERDICTS:
            self._refuse_unknown()
        contract, words = self.given.contract, self.given.layout.words
        labels = tuple(contract.worth or words)
        own: dict[str, str] = {}
        if {*words.values()} <= {*choices} and (self.known or not self._is_longer_scale(choices)):
            others = self.given.words_of_others()
            own = {label: word for label, word in others if word in choices} | dict(words)
        meanings = {each: self._meaning(each) for each in reversed(choices)}
        named = {
            label: each for each, label in meanings.items() if label and each not in own.values()
        }
        word_of = contract.completed({**named, **own})
        missing = [label for label in labels if label not in word_of]
        if any(each not in own.values() and meanings[each] is None for each in choices):
            names = {label.casefold() for label in labels}
            rest = word_of.keys() - named.keys() - own.keys()
            missing += [
                label for label in labels if label in rest and word_of[label].casefold() in names
            ]
        if missing or word_of[labels[0]] in (word_of[label] for label in labels[1:]):
            self.refuse(f"none of its values means '{(missing or labels)[0]}' alone")
        return Label(word_of)

    def _meaning(self, word: str) -> str | None:
        """Find the label that a value means, by the task's words or by those of quick scores."""
        worth = self.given.contract.worth
        if label := likely_label(word, tuple(worth or self.given.layout.words), self.key, worth):
            return label
        grade = likely_label(word, GRADES, self.key)
        if not worth or grade is None:
            return None
        alike = [label for label, each in worth.items() if each == 1 - GRADES.index(grade) / 2]
        return alike[0] if alike else None

    def _is_longer_scale(self, choices: Iterable[str]) -> bool:
        """Tell whether letters or numbers go on beside the script's own, as in grades from A to F.

        On such a scale the script's word for a wrong answer may be a good grade.
        """
        others = (word for _, word in self.given.words_of_others())
        known = {*self.given.layout.words.values(), *others}
        return any(len(each) == 1 or each.isdecimal() for each in {*choices} - known)

    def _score(self) -> Slot:
        part, known, words = self.part, self.known, self.given.layout.words
        low: Any = part.get("minimum")
        high: Any = part.get("maximum")
        if isinstance(known, Label) and all(word.isdecimal() for word in words.values()):
            completed = self.given.contract.completed(words)
            numbers = {label: int(word) for label, word in completed.items()}
            if all(
                (self.choices is None or number in self.choices)
                and not (_is_number(low) and number < low)
                and not (_is_number(high) and number > high)
                for number in numbers.values()
            ):
                return Label(numbers)
        if not isinstance(known, Score) and self.plain not in (VERDICTS - NOMINAL) | CONFIDENCES:
            self._refuse_unknown()
        values = tuple(sorted({each for each in self.choices or () if not isinstance(each, bool)}))
        is_integer = part.get("type") == "integer"
        if is_integer and not all(float(each).is_integer() for each in values if _is_number(each)):
            self.refuse("its values are no integers")
        if values:
            low, high = values[0], values[-1]
        elif isinstance(known, Score) and (low is None or high is None):
            low, high = (known.low if low is None else low), (known.high if high is None else high)
            values, is_integer = known.values, is_integer or known.is_integer
        if part.get("exclusiveMinimum") is not None or part.get("exclusiveMaximum") is not None:
            self.refuse("exclusive bounds are not supported: give minimum and maximum")
        if is_integer and _is_number(low) and _is_number(high):
            low, high = math.ceil(low), math.floor(high)
        if not (_is_number(low) and _is_number(high) and low < high):
            self.refuse(
                "its scale is not told: give minimum and maximum, up to 1e9, or an enum of at "
                "least two numbers"
            )
        is_confidence = self.plain in CONFIDENCES and known is None
        return Score(low, high, is_integer, values, is_confidence)


def _kind(choices: Any) -> str | None:
    """Tell the type of all choices, if it is one and there are not too many."""
    if not isinstance(choices, list) or not 0 < len(choices) <= MOST_CHOICES:
        return None
    for kind, name in ((bool, "boolean"), (str, "string"), (int | float, "number")):
        if all(isinstance(each, kind) for each in choices):
            return name
    return None


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


def _without(part: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != name}


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= LARGEST_BOUND
