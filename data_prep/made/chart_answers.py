"""Tables of wordings that responses are made with, one class for each benchmark.

``words/benchmark_answers.yaml`` fills all of them twice, for training and for test rows. The two
share no wording, no topic and no question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, Literal

from data_prep.made.elements import ONES, TENS
from data_prep.made.words import names
from data_prep.made.words.wordings import capital, texts, words_of
from judging.tasks.charthal import FAITHFUL, HALLUCINATED, ChartHal
from judging.tasks.chartom_fact import CORRECT, INCORRECT

Side = Literal["training", "held_out"]
Texts = tuple[str, ...]


@dataclass(frozen=True)
class Topic:
    """Quantity that a made chart shows, and the range of its values."""

    measure: str
    unit: str
    things: str
    """What the chart compares, in the plural."""
    low: int
    high: int


@dataclass(frozen=True)
class ChartHalWordings:
    """Words of questions about charts and of responses that do or do not make something up.

    Slots: ``measure``, ``unit`` and ``things`` of the topic; ``a`` and ``b``, things in the chart;
    ``value_a`` and ``value_b``, their values with unit; ``other``, a thing that the chart lacks;
    ``asked``, a subject that has nothing to do with the chart; ``claim``, a false claim; ``x``, an
    answer; ``cause``, an explanation.
    """

    subjects: Texts
    """Subjects that have nothing to do with any chart."""
    causes: Texts
    irrelevant_questions: Texts
    inexistent_closed_questions: Texts
    inexistent_open_questions: Texts
    claims: Texts
    """False claims, with ``a`` and ``false_a``, a wrong value of it."""
    contradictory_closed_questions: Texts
    contradictory_unanswered_questions: Texts
    """Questions that have no answer once their claim is given up."""
    contradictory_open_questions: Texts
    normal_closed_questions: Texts
    normal_open_questions: Texts
    unrelated: Texts
    """Say that the question is unrelated to the chart."""
    lacking: Texts
    """Say that the chart lacks what is asked for."""
    denying: Texts
    """Say that the claim of the question is false."""
    declining: Texts
    """Say that the question cannot be answered; follow one of the three above."""
    answering: Texts
    """Give the answer ``x``."""
    tentative: Texts
    """Offer a cause as a possibility."""
    certain: Texts
    """State a cause as a fact."""
    padding: Texts
    """Say something about the chart that answers nothing."""


@dataclass(frozen=True)
class SimpleVQAWordings:
    """Words of questions about pictures, and of answers, in one language.

    Slots: ``w``, an invented name that makes the question new; ``x``, what is claimed; ``y``,
    something else that is only mentioned; ``part``, a part of the answer.
    """

    questions: Mapping[str, Texts]
    """By type of truth: person, town, title, thing, year, number, names."""
    claiming: Texts
    """Claim ``x``, plainly, hedged or corrected."""
    claiming_beside: Texts
    """Claim ``x`` and reject ``y``."""
    unattempted: Texts
    """Claim nothing."""
    excluding: Texts
    """Deny ``x`` and claim nothing else."""
    alternatives: Texts
    """Guess ``x`` or ``y``."""
    partly: Texts
    """Name ``part`` and say that the rest is unknown."""
    rough: Texts
    """Give a bound or an estimate ``x`` of a number."""
    joints: Texts
    """Stand between the elements of a list."""


@dataclass(frozen=True)
class ChartomWordings:
    """Words of FACT questions and of answers to them.

    Slots: ``x``, what the answer settles on; ``y``, something else; ``a`` and ``b``, numbers of the
    chart; ``half``, half of ``x``; ``text``, ``number`` and ``letter`` of an option, with ``2`` for
    another one; ``order``, a ranking as a list; ``backward``, the same from the other end.
    """

    number_questions: Texts
    choice_questions: Texts
    ranking_questions: Texts
    """Ask for an order from largest to smallest."""
    plain: Texts
    approximate: Texts
    data_beside: Texts
    working: Texts
    corrected: Texts
    misled: Texts
    denying_other: Texts
    markup: Texts
    long_reasoning: Texts
    refusing: Texts
    denying: Texts
    """Deny ``x`` and settle on nothing."""
    alternatives: Texts
    ranges: Texts
    """From ``x`` to ``y``, settled on nothing."""
    choosing: Texts
    choosing_beside: Texts
    undecided: Texts
    """Settle on no option."""
    ordered: Texts
    ordered_backward: Texts
    """Give the order from smallest to largest, and say so."""
    unordered: Texts
    """Say that no order can be given."""


@dataclass(frozen=True)
class Wordings:
    """All wordings of one side: training or test."""

    topics: tuple[Topic, ...]
    charthal: ChartHalWordings
    simplevqa: Mapping[str, SimpleVQAWordings]
    """By variant of the task: ``english`` and ``chinese``."""
    chartom: ChartomWordings


@cache
def wordings_for(side: Side) -> Wordings:
    """Return all wordings of a side."""
    table = words_of("benchmark_answers")[side]
    return Wordings(
        topics=tuple(Topic(**topic) for topic in table["topics"]),
        charthal=ChartHalWordings(**_read(table["charthal"])),
        simplevqa={
            name: SimpleVQAWordings(**_read(words)) for name, words in table["simplevqa"].items()
        },
        chartom=ChartomWordings(**_read(table["chartom"])),
    )


def _read(table: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _read(value) if isinstance(value, dict) else texts(value)
        for name, value in table.items()
    }


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


MakeQuestion = Callable[[Random, Wordings], tuple[MadeQuestion, list[MadeAnswer]]]


@dataclass(frozen=True)
class Figure:
    """The data of a made chart."""

    topic: Topic
    values: dict[str, int]

    def written(self, name: str) -> str:
        """Return the value of a thing with its unit."""
        return with_unit(str(self.values[name]), self.topic.unit)


def draw_figure(rng: Random, wordings: Wordings, count: int) -> Figure:
    """Draw a chart of things with invented names and values that lie well apart."""
    topic = rng.choice(wordings.topics)
    things: list[str] = []
    while len(things) < count:
        if (name := names.word(rng, "en")) not in things:
            things.append(name)
    while True:
        values = [rng.randint(topic.low, topic.high) for _ in things]
        ordered = sorted(values)
        if all(low * 1.06 < high for low, high in zip(ordered, ordered[1:], strict=False)):
            return Figure(topic, dict(zip(things, values, strict=True)))


def with_unit(number: str, unit: str) -> str:
    """Return a number and its unit as they are written one after the other."""
    return f"{number}{unit}" if unit == "%" else f"{number} {unit}"


RANGE = 0.03
"""Half the width of the range that a reference calls acceptable, as a share of its number."""
PADDED = 0.4
"""Share of responses with a sentence before them that answers nothing."""


class Writer:
    """Writes one question and responses to it, with one set of slots."""

    def __init__(self, rng: Random, figure: Figure, wordings: ChartHalWordings) -> None:
        self.rng = rng
        self.figure = figure
        self.wordings = wordings
        self.a, self.b = list(figure.values)[:2]
        self.false_a = self.wrong_number(self.a)
        self.slots = {
            "measure": figure.topic.measure,
            "unit": figure.topic.unit,
            "things": figure.topic.things,
            "a": self.a,
            "b": self.b,
            "value_a": figure.written(self.a),
            "value_b": figure.written(self.b),
            "false_a": self.unit(self.false_a),
            "other": self._missing(),
            "asked": rng.choice(wordings.subjects),
        }
        self.slots["claim"] = self.text(wordings.claims)

    def _missing(self) -> str:
        while (name := names.word(self.rng, "en")) in self.figure.values:
            pass
        return name

    def unit(self, number: str) -> str:
        """Return a number with the chart's unit."""
        return with_unit(number, self.figure.topic.unit)

    def text(self, templates: Texts, **slots: str) -> str:
        """Return one of the templates, filled."""
        return self.rng.choice(templates).format(**self.slots, **slots)

    def sentence(self, templates: Texts, **slots: str) -> str:
        """Return one of the templates, filled, that begins with a capital letter."""
        return capital(self.text(templates, **slots))

    def wrong_number(self, name: str) -> str:
        """Draw a number that is clearly not the value of a thing, nor that of another."""
        value = self.figure.values[name]
        while True:
            wrong = round(value * self.rng.choice((0.4, 0.6, 0.75, 0.85, 1.15, 1.3, 1.6, 2)))
            if wrong not in self.figure.values.values() and abs(wrong - value) > 2 * RANGE * value:
                return str(wrong)

    def causes(self, templates: Texts) -> str:
        """Return one to three sentences on different causes."""
        count = self.rng.choice((1, 1, 2, 3))
        causes = self.rng.sample(self.wordings.causes, count)
        return " ".join(self.sentence(templates, cause=cause) for cause in causes)

    def invented(self) -> str:
        """Return an answer with a number that is made up."""
        return self.answer(str(self.rng.randint(11, 990)))

    def answer(self, number: str) -> str:
        """Return a closed answer."""
        return self.sentence(self.wordings.answering, x=self.unit(number))

    def right(self, kind: str, *parts: str) -> MadeAnswer:
        """Return the parts as one faithful response."""
        return MadeAnswer(self._joined(parts), FAITHFUL, kind)

    def wrong(self, kind: str, *parts: str) -> MadeAnswer:
        """Return the parts as one hallucinated response."""
        return MadeAnswer(self._joined(parts), HALLUCINATED, kind)

    def _joined(self, parts: Sequence[str]) -> str:
        """Return the parts as one text, often with a sentence before them."""
        padding = []
        if self.rng.random() < PADDED:
            padding = [self.sentence(self.wordings.padding)]
        return " ".join([*padding, *parts])


def make_charthal(rng: Random, wordings: Wordings) -> tuple[MadeQuestion, list[MadeAnswer]]:
    """Return a question of a random rubric and its responses: two right ones and two wrong ones.

    Where only a response that declines is right, there is one right response.
    """
    writer = Writer(rng, draw_figure(rng, wordings, 3), wordings.charthal)
    variant = rng.choice(ChartHal.variants)
    question, good, bad = _VARIANTS[variant](writer)
    picked = [*_pick(rng, good), *_pick(rng, bad)]
    rng.shuffle(picked)
    return question, picked


def _pick(rng: Random, answers: Sequence[MadeAnswer]) -> list[MadeAnswer]:
    """Draw two responses, of different kinds where there are two."""
    if len(answers) == 1:
        return [answers[0]]
    return rng.sample(answers, 2)


Made = tuple[MadeQuestion, list[MadeAnswer], list[MadeAnswer]]


def _question(writer: Writer, variant: str, templates: Texts, *references: str) -> MadeQuestion:
    return MadeQuestion(variant, writer.sentence(templates), references)


def _irrelevant(writer: Writer) -> Made:
    words, sentence = writer.wordings, writer.sentence
    return (
        _question(writer, "irrelevant", words.irrelevant_questions),
        [
            writer.right("unrelated", sentence(words.unrelated)),
            writer.right(
                "unrelated, declined", sentence(words.unrelated), sentence(words.declining)
            ),
        ],
        [
            writer.wrong("answered", writer.invented()),
            writer.wrong("explained", writer.causes(words.certain)),
            writer.wrong("explained", writer.causes(words.tentative)),
            writer.wrong("unrelated, answered", sentence(words.unrelated), writer.invented()),
            writer.wrong(
                "unrelated, explained", sentence(words.unrelated), writer.causes(words.certain)
            ),
        ],
    )


def _inexistent_closed(writer: Writer) -> Made:
    words, sentence = writer.wordings, writer.sentence
    return (
        _question(writer, "inexistent-closed", words.inexistent_closed_questions),
        [
            writer.right("lacking", sentence(words.lacking)),
            writer.right("lacking, declined", sentence(words.lacking), sentence(words.declining)),
        ],
        [
            writer.wrong("answered", writer.invented()),
            writer.wrong("answered", writer.invented()),
            writer.wrong("lacking, answered", sentence(words.lacking), writer.invented()),
        ],
    )


def _inexistent_open(writer: Writer) -> Made:
    words = writer.wordings
    question = _question(writer, "inexistent-open", words.inexistent_open_questions)
    return question, *_open_responses(writer, words.lacking, "lacking")


def _contradictory_open(writer: Writer) -> Made:
    words = writer.wordings
    question = _question(writer, "contradictory-open", words.contradictory_open_questions)
    return question, *_open_responses(writer, words.denying, "denying")


def _open_responses(
    writer: Writer, fault: Texts, kind: str
) -> tuple[list[MadeAnswer], list[MadeAnswer]]:
    """Return responses that do and do not name the fault of the question, and how they go on."""
    words, sentence = writer.wordings, writer.sentence
    good = [
        writer.right(f"{kind}, declined", sentence(fault), sentence(words.declining)),
        writer.right(f"{kind}, tentative", sentence(fault), writer.causes(words.tentative)),
    ]
    bad = [
        writer.wrong(f"{kind}, certain", sentence(fault), writer.causes(words.certain)),
        writer.wrong("certain", writer.causes(words.certain)),
        writer.wrong("tentative", writer.causes(words.tentative)),
    ]
    return good, bad


def _contradictory_closed(writer: Writer) -> Made:
    words, figure, sentence = writer.wordings, writer.figure, writer.sentence
    right, wrong = str(figure.values[writer.b]), writer.wrong_number(writer.b)
    premise = f"The premise is wrong: {writer.a} has {figure.written(writer.a)}."
    declined = writer.right("denying, declined", sentence(words.denying), sentence(words.declining))
    if writer.rng.random() < 0.3:
        question = _question(
            writer, "contradictory-closed", words.contradictory_unanswered_questions, premise
        )
        bad = [
            writer.wrong("denying, invented", sentence(words.denying), writer.invented()),
            writer.wrong("invented", writer.invented()),
        ]
        return question, [declined], bad
    reference = f"{premise} {_reference(writer, writer.b)}"
    question = _question(
        writer, "contradictory-closed", words.contradictory_closed_questions, reference
    )
    good = [
        declined,
        writer.right("denying, answered", sentence(words.denying), writer.answer(right)),
    ]
    bad = [
        writer.wrong("denying, wrong", sentence(words.denying), writer.answer(wrong)),
        writer.wrong("answered", writer.answer(right)),
        writer.wrong("wrong", writer.answer(wrong)),
    ]
    return question, good, bad


def _reference(writer: Writer, name: str) -> str:
    """Return a reference of a value, with the range that is acceptable."""
    value = writer.figure.values[name]
    low, high = value * (1 - RANGE), value * (1 + RANGE)
    return (
        f"{name} is at about {writer.figure.written(name)} "
        f"(Answers in the range [{low:.1f}, {high:.1f}] are ACCEPTABLE)."
    )


def _normal_closed(writer: Writer) -> Made:
    words, name = writer.wordings, writer.a
    value = writer.figure.values[name]
    question = _question(
        writer, "normal-closed", words.normal_closed_questions, _reference(writer, name)
    )
    near = value + writer.rng.choice((-1, 1)) * int(value * RANGE * writer.rng.random())
    good = [
        writer.right("right", writer.answer(str(value))),
        writer.right("in range", writer.answer(str(near))),
    ]
    other = str(writer.figure.values[writer.b])
    bad = [
        writer.wrong("wrong", writer.answer(writer.wrong_number(name))),
        writer.wrong("wrong", writer.answer(writer.wrong_number(name))),
    ]
    if abs(int(other) - value) > RANGE * value:
        bad.append(writer.wrong("of another", writer.answer(other)))
    return question, good, bad


def _normal_open(writer: Writer) -> Made:
    words = writer.wordings
    question = _question(writer, "normal-open", words.normal_open_questions)
    good = [writer.right("tentative", writer.causes(words.tentative)) for _ in range(2)]
    bad = [
        writer.wrong("certain", writer.causes(words.certain)),
        writer.wrong(
            "tentative, then certain", writer.causes(words.tentative), writer.causes(words.certain)
        ),
    ]
    return question, good, bad


_VARIANTS = {
    "irrelevant": _irrelevant,
    "inexistent-closed": _inexistent_closed,
    "inexistent-open": _inexistent_open,
    "contradictory-closed": _contradictory_closed,
    "contradictory-open": _contradictory_open,
    "normal-closed": _normal_closed,
    "normal-open": _normal_open,
}


NEAR = 0.07
"""Right numbers are off by at most this share; the task allows 10 %."""
FAR = (0.15, 0.8)
"""Wrong numbers are off by a share within these bounds."""
LABELS = (CORRECT, CORRECT, INCORRECT, INCORRECT)
SETTLED = {
    "plain": 4,
    "approximate": 2,
    "data_beside": 2,
    "working": 1,
    "corrected": 2,
    "misled": 2,
    "denying_other": 2,
    "markup": 1,
    "long_reasoning": 1,
}
"""Forms of numeric answers that settle on a number, and how often each is drawn."""
OTHER_UNITS: dict[str, tuple[str, float]] = {
    "mm": ("cm", 0.1),
    "cm": ("mm", 10),
    "km": ("metres", 1000),
    "tonnes": ("kg", 1000),
    "kg": ("grams", 1000),
    "minutes": ("seconds", 60),
    "litres": ("ml", 1000),
    "kWh": ("Wh", 1000),
    "thousand passengers": ("passengers", 1000),
}
"""Unit to another one, and how many of it there are in one."""

_WEIGHTS = {"digits": 6, "digits and unit": 6, "fraction of a hundred": 4, "share of one": 4}
"""How often notations are drawn; 2 for all others."""
UNSETTLED = {"refusing": 2, "denying": 1, "alternatives": 1, "ranges": 1}
UNSETTLED_SHARE = 0.3
"""Share of wrong answers that settle on nothing."""


def make_chartom(rng: Random, wordings: Wordings) -> tuple[MadeQuestion, list[MadeAnswer]]:
    """Return a question, numeric in three cases of five, and two right and two wrong answers."""
    make = rng.choices((_number, _choice, _ranking), (3, 1, 1))[0]
    return make(rng, wordings)


def _labels(rng: Random) -> list[str]:
    labels = list(LABELS)
    rng.shuffle(labels)
    return labels


def _number(rng: Random, wordings: Wordings) -> tuple[MadeQuestion, list[MadeAnswer]]:
    figure, words = draw_figure(rng, wordings, 3), wordings.chartom
    name = next(iter(figure.values))
    topic = figure.topic
    question = rng.choice(words.number_questions).format(
        measure=topic.measure, unit=topic.unit, a=name
    )
    made = MadeQuestion("number", question, (with_unit(str(figure.values[name]), topic.unit),))
    return made, [_number_answer(rng, words, figure, name, label) for label in _labels(rng)]


def _number_answer(
    rng: Random, words: ChartomWordings, figure: Figure, name: str, label: str
) -> MadeAnswer:
    key, unit = figure.values[name], figure.topic.unit
    right = round(key * (1 + rng.uniform(-NEAR, NEAR))) if rng.random() < 0.4 else key
    if abs(right - key) > NEAR * key:
        right = key
    wrong = _far_from(rng, key)
    if label == INCORRECT and rng.random() < UNSETTLED_SHARE:
        form = rng.choices(list(UNSETTLED), list(UNSETTLED.values()))[0]
        pair = [str(right), str(wrong)]
        pair.sort(key=int)
        x, y = (with_unit(number, unit) for number in pair)
        if form == "denying":
            x = with_unit(str(rng.choice((right, wrong))), unit)
        return MadeAnswer(_draw(rng, words, form).format(x=x, y=y), label, form)
    settled, other = (right, wrong) if label == CORRECT else (wrong, rng.choice((key, right)))
    form = rng.choices(list(SETTLED), list(SETTLED.values()))[0]
    text, notation = write_number(rng, settled, unit)
    if form == "working":
        text, notation = with_unit(str(settled), unit), "digits and unit"
    beside = [str(value) for value in figure.values.values()][1:]
    response = _draw(rng, words, form).format(
        x=text,
        y=with_unit(str(other), unit),
        half=f"{settled / 2:g}",
        a=beside[0],
        b=beside[1],
    )
    return MadeAnswer(response, label, f"{form}, {notation}")


def _far_from(rng: Random, key: int) -> int:
    """Draw a number that is clearly outside of the tolerance, sometimes by its magnitude."""
    if rng.random() < 0.1 and key < 100:
        return key * 10
    while True:
        wrong = round(key * (1 + rng.choice((-1, 1)) * rng.uniform(*FAR)))
        if abs(wrong - key) > FAR[0] * key and 1 < wrong < 1000:
            return wrong


def _draw(rng: Random, words: ChartomWordings, form: str) -> str:
    templates: Texts = getattr(words, form)
    return rng.choice(templates)


def _choice(rng: Random, wordings: Wordings) -> tuple[MadeQuestion, list[MadeAnswer]]:
    figure, words = draw_figure(rng, wordings, rng.choice((3, 4))), wordings.chartom
    options = tuple(figure.values)
    right = rng.randrange(len(options))
    question = rng.choice(words.choice_questions).format(
        things=figure.topic.things, measure=figure.topic.measure
    )
    made = MadeQuestion("choice", question, (options[right],), options)
    return made, [_choice_answer(rng, words, options, right, label) for label in _labels(rng)]


def _choice_answer(
    rng: Random, words: ChartomWordings, options: tuple[str, ...], right: int, label: str
) -> MadeAnswer:
    other = rng.choice([index for index in range(len(options)) if index != right])
    if label == INCORRECT and rng.random() < UNSETTLED_SHARE:
        form, chosen, second = "undecided", right, other
    else:
        form = rng.choices(("choosing", "choosing_beside"), (2, 1))[0]
        chosen, second = (right, other) if label == CORRECT else (other, right)
    response = _draw(rng, words, form).format(
        text=options[chosen],
        text2=options[second],
        number=chosen + 1,
        number2=second + 1,
        letter="ABCD"[chosen],
        letter2="ABCD"[second],
    )
    return MadeAnswer(response, label, form)


def _ranking(rng: Random, wordings: Wordings) -> tuple[MadeQuestion, list[MadeAnswer]]:
    figure, words = draw_figure(rng, wordings, rng.choice((3, 4))), wordings.chartom
    key = sorted(figure.values, key=lambda name: -figure.values[name])
    question = rng.choice(words.ranking_questions).format(
        things=figure.topic.things, measure=figure.topic.measure
    )
    made = MadeQuestion("ranking", f"{question} ({', '.join(figure.values)})", tuple(key))
    return made, [_ranking_answer(rng, words, key, label) for label in _labels(rng)]


def _ranking_answer(rng: Random, words: ChartomWordings, key: list[str], label: str) -> MadeAnswer:
    order = list(key)
    if label == INCORRECT:
        if rng.random() < 0.15:
            return MadeAnswer(rng.choice(words.unordered), label, "unordered")
        order = _misplaced(rng, key)
    if rng.random() < 0.3:
        backward = _listed(rng, order[::-1], " < ")
        return MadeAnswer(
            _draw(rng, words, "ordered_backward").format(backward=backward),
            label,
            "ordered_backward",
        )
    response = _draw(rng, words, "ordered").format(order=_listed(rng, order, " > "))
    return MadeAnswer(response, label, "ordered")


def _misplaced(rng: Random, key: list[str]) -> list[str]:
    """Return an order with two items exchanged, one left out, or all from the other end."""
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


def _listed(rng: Random, order: list[str], sign: str) -> str:
    """Write an order with commas, arrows, signs, numbers or line breaks between the items."""
    if rng.random() < 0.2:
        return "; ".join(f"{number}. {name}" for number, name in enumerate(order, 1))
    return rng.choice((", ", " -> ", sign, ", then ", "\n")).join(order)


def in_words(number: int) -> str:
    """Return a whole number below a thousand in English words."""
    if number < 20:
        return ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS[tens] + (f"-{ONES[ones]}" if ones else "")
    hundreds, rest = divmod(number, 100)
    return f"{ONES[hundreds]} hundred" + (f" and {in_words(rest)}" if rest else "")


def in_other_unit(number: int, unit: str) -> str | None:
    """Return a number of a unit in another unit; ``None`` where we know no other."""
    if unit not in OTHER_UNITS:
        return None
    other, factor = OTHER_UNITS[unit]
    value = number * factor
    written = f"{value:.1f}" if factor < 1 else f"{round(value):,}"
    return f"{written} {other}"


def write_number(rng: Random, number: int, unit: str) -> tuple[str, str]:
    """Write a whole number below a thousand with or without its unit.

    Returns:
        The text and the name of the notation.
    """
    spaced = "" if unit == "%" else " "
    notations = {
        "digits": str(number),
        "digits and unit": f"{number}{spaced}{unit}",
        "words": f"{in_words(number)} {'percent' if unit == '%' else unit}",
        "decimals": f"{number}.0{spaced}{unit}",
        "decimal comma": f"{number},0{spaced}{unit}",
        "scientific": f"{number / 10 ** (len(str(number)) - 1):g}e{len(str(number)) - 1}",
    }
    if (other := in_other_unit(number, unit)) is not None:
        notations["another unit"] = other
    if unit == "%":
        notations["fraction of a hundred"] = f"{number} out of 100"
        notations["share of one"] = f"{number / 100:.2f}"
    weights = [_WEIGHTS.get(name, 2) for name in notations]
    name = rng.choices(list(notations), weights)[0]
    return notations[name], name
