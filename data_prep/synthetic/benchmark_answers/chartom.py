"""FACT questions about made charts, and answers in free text that are right or wrong."""

from __future__ import annotations

from random import Random

from data_prep.synthetic.benchmark_answers.rows import (
    Figure,
    MadeAnswer,
    MadeQuestion,
    draw_figure,
    with_unit,
)
from data_prep.synthetic.benchmark_answers.wordings import ChartomWordings, Texts, Wordings
from data_prep.synthetic.text.elements import ONES, TENS
from judging.tasks.chartom import CORRECT, INCORRECT

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
