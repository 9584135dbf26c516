"""Questions about made charts, and responses whose score by ChartHal and CHARTOM is certain.

The wordings are in ``words/benchmark_answers.yaml``, once for training and once for test rows. The
two share no wording, no topic and no question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from data_prep.made.elements import english
from data_prep.made.words import names
from data_prep.made.words.wordings import capital, draw_weighted, words_of
from judging.tasks.charthal import FAITHFUL, HALLUCINATED, ChartHal
from judging.tasks.chartom import CORRECT, INCORRECT

Wordings = Mapping[str, Any]
"""Tables of one split by name; a table is a tuple of templates or maps names to tables."""


@dataclass(frozen=True)
class MadeQuestion:
    """A question under a task's variant, with its right answer."""

    variant: str
    question: str
    references: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class MadeAnswer:
    """A response, the label that it earns, and the form that it has."""

    response: str
    label: str
    kind: str


Made = tuple[MadeQuestion, list[MadeAnswer]]


@dataclass(frozen=True)
class Figure:
    """The data of a made chart."""

    topic: Mapping[str, Any]
    """What it shows: ``measure``, ``unit``, ``things`` in the plural, and ``low`` to ``high``."""
    values: dict[str, int]

    @classmethod
    def draw(cls, rng: Random, wordings: Wordings, count: int) -> Figure:
        """Draw a chart of things with invented names and values that lie well apart."""
        topic = rng.choice(wordings["topics"])
        things: list[str] = []
        while len(things) < count:
            if (name := names.word(rng, "en")) not in things:
                things.append(name)
        while True:
            values = [rng.randint(topic["low"], topic["high"]) for _ in things]
            ordered = sorted(values)
            if all(low * 1.06 < high for low, high in zip(ordered, ordered[1:], strict=False)):
                return cls(topic, dict(zip(things, values, strict=True)))

    def with_unit(self, number: object) -> str:
        """Write a number with the chart's unit."""
        unit = self.topic["unit"]
        return f"{number}{unit}" if unit == "%" else f"{number} {unit}"


# ChartHal.

RANGE = 0.03
"""Half the width of the range that a reference calls acceptable, as a share of its number."""
PADDED = 0.4
"""Share of responses with a sentence before them that answers nothing."""

Kinds = Sequence[tuple[str, str]]
"""Kinds of responses with the parts that each is made of: see ``_ChartHalWriter.part``."""


def make_charthal(rng: Random, wordings: Wordings) -> Made:
    """Draw a question of a random rubric and its responses: two right ones and two wrong ones.

    Where only a response that declines is right, there is one right response.
    """
    writer = _ChartHalWriter(rng, Figure.draw(rng, wordings, 3), wordings["charthal"])
    variant = rng.choice(ChartHal.variants)
    make = writer.contradictory if variant == "contradictory-closed" else writer.ask
    question, good, bad = make(variant)
    picked = [
        answer
        for answers in (good, bad)
        for answer in (rng.sample(answers, 2) if len(answers) > 1 else answers)
    ]
    rng.shuffle(picked)
    return question, picked


class _ChartHalWriter:
    """Writes one question and responses to it, with one set of slots."""

    def __init__(self, rng: Random, figure: Figure, words: Wordings) -> None:
        self.rng, self.figure, self.words = rng, figure, words
        self.a, self.b = list(figure.values)[:2]
        self.slots = {
            **{name: figure.topic[name] for name in ("measure", "unit", "things")},
            "a": self.a,
            "b": self.b,
            "value_a": figure.with_unit(figure.values[self.a]),
            "value_b": figure.with_unit(figure.values[self.b]),
            "false_a": figure.with_unit(self.wrong_number(self.a)),
            "other": self._missing(),
            "asked": rng.choice(words["subjects"]),
        }
        self.slots["claim"] = rng.choice(words["claims"]).format(**self.slots)
        self.numbers: dict[str, Callable[[], object]] = {"invented": lambda: rng.randint(11, 990)}

    def _missing(self) -> str:
        while (name := names.word(self.rng, "en")) in self.figure.values:
            pass
        return name

    def wrong_number(self, name: str) -> int:
        """Draw a number that is clearly not the value of a thing, nor that of another."""
        values = self.figure.values
        while True:
            wrong = round(values[name] * self.rng.choice((0.4, 0.6, 0.75, 0.85, 1.15, 1.3, 1.6, 2)))
            apart = abs(wrong - values[name]) > 2 * RANGE * values[name]
            if wrong not in values.values() and apart:
                return wrong

    def sentence(self, table: str, **slots: str) -> str:
        """Fill one of a table's templates."""
        return capital(self.rng.choice(self.words[table]).format(**self.slots, **slots))

    def part(self, part: str) -> str:
        """Write a part of a response: one to three causes, a sentence of a table, or a number."""
        if part in ("certain", "tentative"):
            causes = self.rng.sample(self.words["causes"], self.rng.choice((1, 1, 2, 3)))
            return " ".join(self.sentence(part, cause=cause) for cause in causes)
        if part in self.words:
            return self.sentence(part)
        return self.sentence("answering", x=self.figure.with_unit(self.numbers[part]()))

    def answers(self, label: str, kinds: Kinds) -> list[MadeAnswer]:
        """Write responses of several kinds."""
        made = []
        for kind, parts in kinds:
            response = [self.part(part) for part in parts.split()]
            if self.rng.random() < PADDED:
                response = [self.sentence("padding"), *response]
            made.append(MadeAnswer(" ".join(response), label, kind))
        return made

    def reference(self, name: str) -> str:
        """Write a reference of a value, with the range that is acceptable."""
        value = self.figure.values[name]
        low, high = value * (1 - RANGE), value * (1 + RANGE)
        return (
            f"{name} is at about {self.figure.with_unit(value)} "
            f"(Answers in the range [{low:.1f}, {high:.1f}] are ACCEPTABLE)."
        )

    def ask(self, variant: str) -> tuple[MadeQuestion, list[MadeAnswer], list[MadeAnswer]]:
        """Write a question with its faithful and its hallucinated responses."""
        references = (self.reference(self.a),) if variant == "normal-closed" else ()
        table = f"{variant.replace('-', '_')}_questions"
        question = MadeQuestion(variant, self.sentence(table), references)
        kinds = words_of("benchmark_answers")["charthal_kinds"][variant]
        good, bad = kinds["faithful"], kinds["hallucinated"]
        if references:
            value, other = (self.figure.values[name] for name in (self.a, self.b))
            near = value + self.rng.choice((-1, 1)) * int(value * RANGE * self.rng.random())
            self.numbers |= {
                "right": lambda: value,
                "near": lambda: near,
                "wrong": lambda: self.wrong_number(self.a),
                "other": lambda: other,
            }
            if abs(other - value) <= RANGE * value:
                bad = bad[:-1]
        return question, self.answers(FAITHFUL, good), self.answers(HALLUCINATED, bad)

    def contradictory(
        self, variant: str
    ) -> tuple[MadeQuestion, list[MadeAnswer], list[MadeAnswer]]:
        """Write a question whose premise is wrong; three of ten have no answer without it."""
        wrong = self.wrong_number(self.b)
        self.numbers |= {"right": lambda: self.figure.values[self.b], "wrong": lambda: wrong}
        value = self.figure.with_unit(self.figure.values[self.a])
        reference = f"The premise is wrong: {self.a} has {value}."
        good = self.answers(FAITHFUL, [("denying, declined", "denying declining")])
        table, bad = "contradictory_unanswered_questions", [
            ("denying, invented", "denying invented"), ("invented", "invented"),
        ]  # fmt: skip
        if answered := self.rng.random() >= 0.3:
            table = "contradictory_closed_questions"
            reference = f"{reference} {self.reference(self.b)}"
            bad = [("denying, wrong", "denying wrong"), ("answered", "right"), ("wrong", "wrong")]
        question = MadeQuestion(variant, self.sentence(table), (reference,))
        if answered:
            good += self.answers(FAITHFUL, [("denying, answered", "denying right")])
        return question, good, self.answers(HALLUCINATED, bad)


# FACT questions of CHARTOM, with answers in free text.

NEAR = 0.07
"""Right numbers are off by at most this share; the task allows 10 %."""
FAR = (0.15, 0.8)
"""Wrong numbers are off by a share within these bounds."""
SETTLED = {
    "plain": 4, "approximate": 2, "data_beside": 2, "working": 1, "corrected": 2, "misled": 2,
    "denying_other": 2, "markup": 1, "long_reasoning": 1,
}  # fmt: skip
"""Forms of numeric answers that settle on a number, and how often each is drawn."""
OTHER_UNITS: dict[str, tuple[str, float]] = {
    "mm": ("cm", 0.1), "cm": ("mm", 10), "km": ("metres", 1000), "tonnes": ("kg", 1000),
    "kg": ("grams", 1000), "minutes": ("seconds", 60), "litres": ("ml", 1000), "kWh": ("Wh", 1000),
    "thousand passengers": ("passengers", 1000),
}  # fmt: skip
"""Unit to another one, and how many of it there are in one."""
NOTATIONS = {"digits": 6, "digits and unit": 6, "fraction of a hundred": 4, "share of one": 4}
"""How often notations are drawn; 2 for all others."""
UNSETTLED = {"refusing": 2, "denying": 1, "alternatives": 1, "ranges": 1}
UNSETTLED_SHARE = 0.3
"""Share of wrong answers that settle on nothing."""


def make_chartom(rng: Random, wordings: Wordings) -> Made:
    """Draw a question, numeric in three cases of five, and two right and two wrong answers."""
    variant = draw_weighted(rng, {"number": 3, "choice": 1, "ranking": 1})
    count = 3 if variant == "number" else rng.choice((3, 4))
    figure, words = Figure.draw(rng, wordings, count), wordings["chartom"]
    shown = tuple(figure.values)
    right = rng.randrange(count) if variant == "choice" else 0
    question = rng.choice(words[f"{variant}_questions"]).format(**figure.topic, a=shown[0])
    labels = [CORRECT, CORRECT, INCORRECT, INCORRECT]
    rng.shuffle(labels)
    if variant == "number":
        made = MadeQuestion(variant, question, (figure.with_unit(figure.values[shown[0]]),))
        return made, [_number_answer(rng, words, figure, label) for label in labels]
    if variant == "choice":
        made = MadeQuestion(variant, question, (shown[right],), shown)
        return made, [_choice_answer(rng, words, shown, right, label) for label in labels]
    key = sorted(figure.values, key=lambda name: -figure.values[name])
    made = MadeQuestion(variant, f"{question} ({', '.join(shown)})", tuple(key))
    return made, [_ranking_answer(rng, words, key, label) for label in labels]


def _number_answer(rng: Random, words: Wordings, figure: Figure, label: str) -> MadeAnswer:
    key, *beside = figure.values.values()
    right = round(key * (1 + rng.uniform(-NEAR, NEAR))) if rng.random() < 0.4 else key
    if abs(right - key) > NEAR * key:
        right = key
    wrong = _far_from(rng, key)
    if label == INCORRECT and rng.random() < UNSETTLED_SHARE:
        form = draw_weighted(rng, UNSETTLED)
        x, y = sorted((right, wrong))
        if form == "denying":
            x = rng.choice((right, wrong))
        slots = {"x": figure.with_unit(x), "y": figure.with_unit(y)}
        return MadeAnswer(rng.choice(words[form]).format(**slots), label, form)
    settled, other = (right, wrong) if label == CORRECT else (wrong, rng.choice((key, right)))
    form = draw_weighted(rng, SETTLED)
    text, notation = write_number(rng, settled, figure.topic["unit"])
    if form == "working":
        text, notation = figure.with_unit(settled), "digits and unit"
    slots = {"x": text, "y": figure.with_unit(other), "half": f"{settled / 2:g}",
             "a": str(beside[0]), "b": str(beside[1])}  # fmt: skip
    return MadeAnswer(rng.choice(words[form]).format(**slots), label, f"{form}, {notation}")


def _far_from(rng: Random, key: int) -> int:
    """Draw a number that is clearly outside of the tolerance, sometimes by its magnitude."""
    if rng.random() < 0.1 and key < 100:
        return key * 10
    while True:
        wrong = round(key * (1 + rng.choice((-1, 1)) * rng.uniform(*FAR)))
        if abs(wrong - key) > FAR[0] * key and 1 < wrong < 1000:
            return wrong


def write_number(rng: Random, number: int, unit: str) -> tuple[str, str]:
    """Write a whole number below a thousand with or without its unit; name the notation."""
    spaced = "%" if unit == "%" else f" {unit}"
    power = len(str(number)) - 1
    notations = {
        "digits": str(number),
        "digits and unit": f"{number}{spaced}",
        "words": f"{english(number, ' and ')} {'percent' if unit == '%' else unit}",
        "decimals": f"{number}.0{spaced}",
        "decimal comma": f"{number},0{spaced}",
        "scientific": f"{number / 10**power:g}e{power}",
    }
    if unit in OTHER_UNITS:
        other, factor = OTHER_UNITS[unit]
        value = number * factor
        written = f"{value:.1f}" if factor < 1 else f"{round(value):,}"
        notations["another unit"] = f"{written} {other}"
    if unit == "%":
        notations["fraction of a hundred"] = f"{number} out of 100"
        notations["share of one"] = f"{number / 100:.2f}"
    name = draw_weighted(rng, {name: NOTATIONS.get(name, 2) for name in notations})
    return notations[name], name


def _choice_answer(
    rng: Random, words: Wordings, options: Sequence[str], right: int, label: str
) -> MadeAnswer:
    other = rng.choice([index for index in range(len(options)) if index != right])
    chosen, second = (other, right) if label == INCORRECT else (right, other)
    if label == INCORRECT and rng.random() < UNSETTLED_SHARE:
        form, chosen, second = "undecided", right, other
    else:
        form = draw_weighted(rng, {"choosing": 2, "choosing_beside": 1})
    slots = {
        f"{name}{suffix}": value
        for suffix, index in (("", chosen), ("2", second))
        for name, value in (
            ("text", options[index]), ("number", index + 1), ("letter", "ABCD"[index]),
        )
    }  # fmt: skip
    return MadeAnswer(rng.choice(words[form]).format(**slots), label, form)


def _ranking_answer(rng: Random, words: Wordings, key: list[str], label: str) -> MadeAnswer:
    order = key
    if label == INCORRECT:
        if rng.random() < 0.15:
            return MadeAnswer(rng.choice(words["unordered"]), label, "unordered")
        order = _misplaced(rng, key)
    if rng.random() < 0.3:
        written = _listed(rng, order[::-1], " < ")
        response = rng.choice(words["ordered_backward"]).format(backward=written)
        return MadeAnswer(response, label, "ordered_backward")
    template = rng.choice(words["ordered"])
    return MadeAnswer(template.format(order=_listed(rng, order, " > ")), label, "ordered")


def _listed(rng: Random, order: list[str], sign: str) -> str:
    """Write an order with commas, arrows, signs, numbers or line breaks between the items."""
    if rng.random() < 0.2:
        return "; ".join(f"{number}. {name}" for number, name in enumerate(order, 1))
    return rng.choice((", ", " -> ", sign, ", then ", "\n")).join(order)


def _misplaced(rng: Random, key: list[str]) -> list[str]:
    """Spoil an order: exchange two neighbours, leave one out, or reverse it."""
    order = list(key)
    way = rng.choice(("exchanged", "exchanged", "left out", "backward"))
    if way == "left out":
        del order[rng.randrange(len(order))]
    elif way == "backward":
        order.reverse()
    else:
        first = rng.randrange(len(order) - 1)
        order[first], order[first + 1] = order[first + 1], order[first]
    return order
