"""Kinds of criteria: each puts two demands and a response to each of them into words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from data_prep.made.criterion_checks import (
    Check,
    about,
    asks_back,
    begins_with,
    counts,
    ends_with,
    finds,
    has_contact,
    has_key,
    is_chinese,
    is_json,
    is_numbered,
    is_prose,
    is_table,
    mentions,
    negated,
    num_bullets,
    num_sentences,
    num_words,
    states,
)
from data_prep.made.elements import ONES
from data_prep.made.words.wordings import WordSplit, words_of

NEAR_SHARE = 0.3
"""Share of lengths that differ by one."""


class Demand(NamedTuple):
    """A criterion in words; without a ``check`` it holds by construction alone."""

    text: str
    check: Check | None = None


@dataclass(frozen=True)
class Side:
    """Demands, and a response that meets them all."""

    demands: tuple[Demand, ...]
    response: str
    question: str = ""
    references: tuple[str, ...] = ()

    def meets(self, other: Side) -> bool | None:
        """Tell whether this response meets another side's demands, if checkers can tell."""
        checks = [demand.check for demand in other.demands]
        known = [check(self.response) for check in checks if check]
        return False if False in known else None if None in checks else True


Sides = tuple[Side, Side]
"""Each response meets its own side's demands and misses the other's."""


_NUMBERS = ONES[:9]


class Writer:
    """Puts the demands and the responses of a group into words; all are about one topic."""

    def __init__(self, rng: Random, split: WordSplit) -> None:
        self.rng, self.split = rng, split
        self.topic: dict[str, Any] = rng.choice(words_of("criterion")["topics"][split])
        self.known: list[str] = list(self.topic["en"].values())
        """All English sentences about the topic."""
        self.question = self.drawn("asks").replace("@s", self.topic["about"])

    def words(self, name: str) -> Any:
        """Return the words of a table, of this split."""
        return words_of("criterion")[name][self.split]

    def drawn(self, name: str) -> str:
        """Draw one text of a table."""
        drawn: str = self.rng.choice(self.words(name))
        return drawn

    def demand(self, family: str, check: Check | None = None, **slots: object) -> Demand:
        """Put a criterion into words; ``n`` and ``t`` fill its slots."""
        text = self.rng.choice(words_of("criterion")["criteria"][family][self.split])
        for slot, value in slots.items():
            text = text.replace(f"@{slot}", str(value))
        return Demand(text, check)

    def opposites(
        self, family: str, check: Check | None = None, **slots: object
    ) -> tuple[Demand, Demand]:
        """Put a criterion and the opposite one into words."""
        against = negated(check) if check else None
        return self.demand(family, check, **slots), self.demand(f"not_{family}", against, **slots)

    def sentences(self, most: int = 4, least: int = 2) -> list[str]:
        """Draw sentences about the topic."""
        return self.rng.sample(self.known, self.rng.randint(least, min(most, len(self.known))))

    def text(self, most: int = 4, least: int = 2) -> str:
        """Draw sentences about the topic, as one text."""
        return " ".join(self.sentences(most, least))

    def around(self, inserted: str, at: str = "any") -> str:
        """Write a text with something inserted: at the ``start``, at the ``end`` or anywhere."""
        parts = self.sentences(3)
        place = {"start": 0, "end": len(parts)}.get(at, self.rng.randint(0, len(parts)))
        return " ".join([*parts[:place], *filter(None, [inserted]), *parts[place:]])


class _Trait(NamedTuple):
    """Two versions of a part of a text: the demand each meets, its text, and where it stands."""

    demands: tuple[Demand, Demand]
    parts: tuple[str, str]
    at: str


def _mention(writer: Writer) -> _Trait:
    terms: dict[str, str] = writer.words("terms")
    term, other = writer.rng.sample(list(terms), 2)
    without = writer.rng.choice(["", terms[other]])
    demands = writer.opposites("mentions", about(mentions, term), t=term)
    return _Trait(demands, (terms[term], without), "any")


def _other_mention(writer: Writer) -> _Trait:
    """Draw two terms, of which each response names one."""
    terms: dict[str, str] = writer.words("terms")
    pair = writer.rng.sample(list(terms), 2)
    one, other = (writer.demand("mentions", about(mentions, term), t=term) for term in pair)
    return _Trait((one, other), (terms[pair[0]], terms[pair[1]]), "any")


def _personal(writer: Writer) -> _Trait:
    demands = writer.opposites("personal", has_contact)
    without = writer.rng.choice(["", writer.drawn("no_contacts")])
    return _Trait(demands, (writer.drawn("contacts"), without), "any")


def _ending(writer: Writer) -> _Trait:
    if writer.rng.random() < 0.4:
        demands = writer.opposites("asks_back", asks_back)
        return _Trait(demands, (writer.drawn("questions_back"), ""), "end")
    pair = writer.rng.sample(writer.words("closings"), 2)
    one, other = (writer.demand("ends_with", about(ends_with, words), t=words) for words in pair)
    return _Trait((one, other), (f"{pair[0]}.", f"{pair[1]}."), "end")


def _beginning(writer: Writer) -> _Trait:
    pair = writer.rng.sample(writer.words("openings"), 2)
    one, other = (
        writer.demand("begins_with", about(begins_with, words), t=words) for words in pair
    )
    return _Trait((one, other), (f"{pair[0]}:", f"{pair[1]}:"), "start")


def _added(family: str, table: str, check: Check | None = None) -> Callable[[Writer], _Trait]:
    """Make a trait: a sentence of the table meets a demand, a plain one does not."""

    def make(writer: Writer) -> _Trait:
        demands = writer.opposites(family, check)
        return _Trait(demands, (writer.drawn(table), writer.drawn("plain_sentences")), "any")

    return make


def _one(*traits: Callable[[Writer], _Trait]) -> Callable[[Writer], Sides]:
    """Make sides that differ in one trait."""

    def make(writer: Writer) -> Sides:
        trait = writer.rng.choice(traits)(writer)
        one, other = (
            Side((demand,), writer.around(part, trait.at))
            for demand, part in zip(trait.demands, trait.parts, strict=True)
        )
        return one, other

    return make


def _several(writer: Writer) -> Sides:
    """Make sides with two or three demands each, that differ in at least one trait."""
    makers = writer.rng.sample([_mention, _personal, _ending, _beginning], writer.rng.randint(2, 3))
    traits = [make(writer) for make in makers]
    first = [writer.rng.randint(0, 1) for _ in traits]
    differing = writer.rng.randint(1, len(traits)) if writer.rng.random() < 0.4 else 1
    changed = writer.rng.sample(range(len(traits)), differing)
    second = [1 - value if place in changed else value for place, value in enumerate(first)]
    sides = []
    for values in (first, second):
        parts: dict[str, list[str]] = {"start": [], "any": [], "end": []}
        for trait, value in zip(traits, values, strict=True):
            parts[trait.at].append(trait.parts[value])
        middle = writer.sentences(2, 1)
        for part in parts["any"]:
            middle.insert(writer.rng.randint(0, len(middle)), part)
        demands = tuple(trait.demands[value] for trait, value in zip(traits, values, strict=True))
        text = " ".join(filter(None, [*parts["start"], *middle, *parts["end"]]))
        sides.append(Side(demands, text))
    return sides[0], sides[1]


_BREAKS: tuple[Callable[[str], str], ...] = (
    lambda text: text.replace('"', "'"),
    lambda text: text[:-1] + ",}",
    lambda text: text[:-1],
    lambda text: text.replace(":", " =", 1),
    lambda text: f"Here it is: {text}",
)
"""What makes JSON invalid."""


def _json_object(writer: Writer, *keys: str) -> str:
    values: dict[str, object] = {
        key: writer.rng.choice([writer.rng.randint(1, 99), writer.topic["about"], True])
        for key in keys
    }
    return json.dumps(values, indent=writer.rng.choice([None, None, 1]))


def _json(writer: Writer) -> Sides:
    """Write JSON that parses beside JSON that does not, or with another key."""
    keys = writer.rng.sample(writer.words("keys"), 3)
    if writer.rng.random() < 0.5:
        sides = [
            Side(
                (writer.demand("key", about(has_key, key), t=key),),
                _json_object(writer, *writer.rng.sample([key, keys[2]], 2)),
            )
            for key in keys[:2]
        ]
        return sides[0], sides[1]
    text = _json_object(writer, *keys[:2])
    broken = writer.rng.choice(_BREAKS)(text)
    good, bad = writer.opposites("json", is_json)
    return Side((good,), text), Side((bad,), broken)


_FORMATS: dict[str, tuple[Check, Callable[[Writer, list[str]], str]]] = {
    "json": (is_json, lambda writer, parts: json.dumps({"text": parts})),
    "bullets": (lambda text: num_bullets(text) > 0, lambda writer, parts: _bulleted(writer, parts)),
    "numbered": (
        is_numbered,
        lambda writer, parts: "\n".join(f"{n}. {part}" for n, part in enumerate(parts, 1)),
    ),
    "table": (
        is_table,
        lambda writer, parts: "\n".join(
            [
                "| no. | text |",
                "|---|---|",
                *(f"| {n} | {part} |" for n, part in enumerate(parts, 1)),
            ]
        ),
    ),
    "prose": (is_prose, lambda writer, parts: " ".join(parts)),
}


def _bulleted(writer: Writer, parts: Sequence[str]) -> str:
    mark = writer.rng.choice("-*•")
    return "\n".join(f"{mark} {part}" for part in parts)


def _format(writer: Writer) -> Sides:
    """Write the same sentences in two formats."""
    parts = writer.sentences(3)
    one, other = (
        Side((writer.demand(name, _FORMATS[name][0]),), _FORMATS[name][1](writer, parts))
        for name in writer.rng.sample(list(_FORMATS), 2)
    )
    return one, other


def _counted(
    writer: Writer,
    unit: str,
    count: Callable[[str], int],
    write: Callable[[int], str],
    span: range,
) -> Sides:
    """Make sides whose responses differ in a number: exactly so many, or at most and more than.

    Of ``items`` it is always exactly so many.
    """
    is_near = writer.rng.random() < NEAR_SHARE
    low = writer.rng.choice(span[:-1])
    high = low + 1 if is_near else writer.rng.choice([n for n in span if abs(n - low) > 1])
    low, high = sorted((low, high))

    def spelt(number: int) -> str:
        is_word = number < len(_NUMBERS) and writer.rng.random() < 0.5
        return _NUMBERS[number] if is_word else str(number)

    if unit == "items" or writer.rng.random() < 0.3:
        demands = [
            writer.demand(f"{unit}_exactly", counts(count, number, number), n=spelt(number))
            for number in (low, high)
        ]
    else:
        limit = writer.rng.randint(low, high - 1)
        at_most = counts(count, 0, limit)
        demands = [
            writer.demand(f"{unit}_at_most", at_most, n=spelt(limit)),
            writer.demand(f"{unit}_more", negated(at_most), n=spelt(limit)),
        ]
    return Side((demands[0],), write(low)), Side((demands[1],), write(high))


def _items(writer: Writer) -> Sides:
    def write(number: int) -> str:
        return _bulleted(writer, writer.rng.sample(writer.known, number))

    return _counted(writer, "items", num_bullets, write, range(1, len(writer.known) + 1))


def _num_sentences(writer: Writer) -> Sides:
    def write(number: int) -> str:
        return " ".join(writer.rng.sample(writer.known, number))

    return _counted(writer, "sentences", num_sentences, write, range(1, len(writer.known) + 1))


def _num_words(writer: Writer) -> Sides:
    def write(number: int) -> str:
        words = " ".join(writer.rng.sample(writer.known, len(writer.known))).split()[:number]
        return " ".join(words).rstrip(".") + "."

    longest = sum(map(num_words, writer.known))
    return _counted(writer, "words", num_words, write, range(3, longest + 1))


def _language(writer: Writer) -> Sides:
    """Write in two languages; a checker knows Chinese, the construction the others."""
    pair = writer.rng.sample(["en", "de", "es", "zh"], 2)
    sides = []
    for name in pair:
        known = writer.known if name == "en" else writer.topic[name]
        texts = writer.rng.sample(known, writer.rng.randint(1, 2))
        demand = writer.demand(f"in_{name}", is_chinese if name == "zh" else None)
        sides.append(Side((demand,), ("" if name == "zh" else " ").join(texts)))
    return sides[0], sides[1]


def _tone(writer: Writer) -> Sides:
    """Write in two tones of which neither holds of the other's text."""
    pairs = [pair for pair in _TONES if writer.rng.random() < 0.5] or list(_TONES)
    pair = writer.rng.choice(pairs)
    body, sides = writer.text(2, 1), []
    for name in writer.rng.sample(pair, 2):
        frame = writer.rng.choice(words_of("criterion")["frames"][name][writer.split])
        opening, closing = frame.split(" | ")
        sides.append(Side((writer.demand(name),), f"{opening} {body} {closing}"))
    return sides[0], sides[1]


_TONES = (
    *(("formal", "casual"), ("formal", "pirate"), ("pirate", "apologetic"), ("polite", "rude")),
    *(("apologetic", "rude"), ("pirate", "polite"), ("casual", "apologetic"), ("formal", "rude")),
    ("apologetic", "casual"),
)


def _safety(writer: Writer) -> Sides:
    """Decline a dangerous request, or give its steps, which are placeholders."""
    question = writer.drawn("dangers")
    declining = Side((writer.demand("declines"),), writer.drawn("declining"), question)
    return declining, Side((writer.demand("complies"),), writer.drawn("complying"), question)


def _draw_facts(writer: Writer) -> tuple[str, list[tuple[str, str]]]:
    """Draw a language and two questions of one table with their answers."""
    table = writer.rng.choice(words_of("objective")["facts"])
    asked = writer.rng.sample(list(table["pairs"][writer.split].items()), 2)
    ask = writer.rng.choice(table["asks"])
    pairs = [(ask.replace("@p", about), answer.split("=")[0]) for about, answer in asked]
    return table["language"], pairs


def _state(writer: Writer, language: str, answer: str) -> str:
    texts = words_of("criterion")["statements"][language][writer.split]
    text: str = writer.rng.choice(texts)
    return text.replace("@a", answer)


def _agreement(writer: Writer) -> Sides:
    """Draw a question and two references, of which each response states one."""
    language, [(question, answer), (_, other)] = _draw_facts(writer)
    text = writer.demand("agrees").text
    one, two = (
        Side(
            (Demand(text, about(states, fact)),),
            _state(writer, language, fact),
            question,
            (fact,),
        )
        for fact in (answer, other)
    )
    return one, two


def _answering(writer: Writer) -> Sides:
    """Draw two questions, each of which one response is about."""
    demand = writer.demand("answers")
    if writer.rng.random() < 0.5:
        other = Writer(writer.rng, writer.split)
        topics = [(each.question, each.text(3, 1)) for each in (writer, other)]
        # One topic would answer both questions: then no response passes, and others are drawn.
        check = negated(bool) if writer.topic is other.topic else None
        one, two = (Side((demand._replace(check=check),), text, ask) for ask, text in topics)
        return one, two
    first, second = (writer.rng.choice(words_of("objective")["facts"]) for _ in range(2))
    sides = []
    for table in (first, second):
        about, answer = writer.rng.choice(list(table["pairs"][writer.split].items()))
        question = writer.rng.choice(table["asks"]).replace("@p", about)
        said = _state(writer, table["language"], answer.split("=")[0])
        check = negated(bool) if first is second else None
        sides.append(Side((demand._replace(check=check),), said, question))
    return sides[0], sides[1]


def _letter_case(writer: Writer) -> Sides:
    text = writer.text(3)
    upper, lower = writer.demand("upper", str.isupper), writer.demand("lower", str.islower)
    return Side((upper,), text.upper()), Side((lower,), text.lower())


KINDS: dict[str, tuple[int, Callable[[Writer], Sides]]] = {
    "format": (8, _format),
    "json": (8, _json),
    "items": (6, _items),
    "sentences": (8, _num_sentences),
    "words": (8, _num_words),
    "beginning and end": (8, _one(_ending, _beginning)),
    "language": (8, _language),
    "tone": (10, _tone),
    "safety": (8, _safety),
    "mention": (12, _one(_mention, _other_mention)),
    "personal data": (6, _one(_personal)),
    "reference": (10, _agreement),
    "relevance": (10, _answering),
    "several": (14, _several),
}
"""Kinds of criteria with their weights."""
UNSEEN_KINDS: dict[str, tuple[int, Callable[[Writer], Sides]]] = {
    "letter case": (1, _letter_case),
    "exclamation": (1, _one(_added("exclaims", "exclaiming_sentences", finds("[!！]")))),
    "digits": (1, _one(_added("digits", "digit_sentences", finds(r"\d")))),
    "example": (1, _one(_added("example", "example_sentences"))),
    "source": (1, _one(_added("source", "source_sentences"))),
    "doubt": (1, _one(_added("unsure", "unsure_sentences"))),
}
"""Kinds that are for test data alone."""
