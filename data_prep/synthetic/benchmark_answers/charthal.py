"""Questions about made charts, and responses that ChartHal's rubrics score 1 or 0."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from data_prep.synthetic.benchmark_answers.rows import (
    Figure,
    MadeAnswer,
    MadeQuestion,
    draw_figure,
    with_unit,
)
from data_prep.synthetic.benchmark_answers.wordings import ChartHalWordings, Texts, Wordings
from data_prep.synthetic.sentences import capital
from data_prep.synthetic.text import names
from judging.tasks.charthal import FAITHFUL, HALLUCINATED, ChartHal

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
