"""FACT questions about made charts, and answers in free text that are right or wrong."""

from __future__ import annotations

from random import Random

from data_prep.synthetic.benchmark_answers.numbers import write_number
from data_prep.synthetic.benchmark_answers.rows import (
    Figure,
    MadeAnswer,
    MadeQuestion,
    draw_figure,
    with_unit,
)
from data_prep.synthetic.benchmark_answers.wordings import ChartomWordings, Texts, Wordings
from judging.tasks.chartom_fact import CORRECT, INCORRECT

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
