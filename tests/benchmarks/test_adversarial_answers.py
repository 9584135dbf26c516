"""The rules on answers to CHARTOM-like questions that are easy to misread."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

import pytest
from scipy.stats import binomtest

from benchmarks.chartom.item import ChartomItem
from judging.rules.fact_rules import number_is_right, ranking_of
from judging.tasks import get_task
from judging.tasks.chartom import CORRECT


class Reading(NamedTuple):
    """An answer in one form, whether it is right, and what the rules say."""

    form: str
    response: str
    is_right: bool
    by_rule: bool | None


# Right number, a wrong one, unit; right number in full or in another unit; wrong in that unit.
NUMBERS = (
    ("1.2", "6", "million bags", "1,200,000 bags", "6,000,000 bags"),
    ("3.5", "9", "million people", "3,500,000 people", "9,000,000 people"),
    ("48", "12", "thousand cars", "48,000 cars", "12,000 cars"),
    ("2.4", "8", "billion dollars", "2,400 million dollars", "8,000 million dollars"),
    ("4", "12", "yards", "12 feet", "4 feet"), ("3", "30", "meters", "300 cm", "3 cm"),
    ("5", "50", "kg", "5000 grams", "5 grams"), ("2", "20", "hours", "120 minutes", "2 minutes"),
    ("35", "70", "%", "0.35", "0.7"), ("250", "400", "", "2.5 hundred", "4 hundred"),
    ("17", "61", "trucks", "seventeen trucks", "sixty-one trucks"),
)  # fmt: skip
# {k} right and {w} wrong number with unit, {K} and {W} without, {o} and {p} in another notation.
NUMBER_FORMS: dict[str, tuple[tuple[str, bool], ...]] = {
    "plain": (("{k}", True), ("{w}", False), ("It is {k}.", True), ("About {w}.", False)),
    "another notation": (("{o}", True), ("{p}", False), ("That makes {o}.", True)),
    "both notations": (("{k} ({o})", True), ("{w} ({p})", False), ("{o}, that is {k}", True)),
    "data beside it": (
        ("{k} (2018 = 251, 2019 = 307).", True), ("{w} (2018 = 251, 2019 = 307).", False),
        ("In 2019 the bar ends at {k}.", True), ("{k}; the axis starts at {W}.", True),
        ("In Q3 of 2019: {k}", True), ("{k}, read off figure 2, row 7", True),
    ),
    "working": (
        ("{K} x 1 = {k}", True), ("First 251 + 307 = 558, so {k}.", True),
        ("{k}, because 251 / 307 = 0.82", True), ("251 / 307 = 0.82. Hence {w}.", False),
    ),
    "correction": (
        ("{w}. No, {k}.", True), ("{k}. Wait, I misread the axis: {w}.", False),
        ("The answer is {w}... correction: {k}", True),
        ("Answer: {w}. On second thought, answer: {k}.", True),
    ),
    "misled reader": (
        ("{k}. A careless reader would say {w}.", True),
        ("At first sight {w}, in truth {k}.", True),
        ("{k}.\nThe misleading axis suggests that the answer is {w}.", True),
        ("It looks like {k}, but it is {w}.", False),
        ("Most people answer {w}. The answer is {k}.", True),
    ),
    "denial": (
        ("Not {w} but {k}.", True), ("It isn't {k}.", False), ("Certainly not {k}.", False),
        ("{k}, never {w}.", True), ("{k} is wrong.", False),
    ),
    "hedge": (
        ("{k} or {w}", False), ("Between {w} and {k}.", False),
        ("Either {w} or {k}, I cannot say.", False), ("I have no idea; {k}, {w}, anything.", False),
        ("Is it {k}? I do not know.", False),
    ),
    "multiple": (
        ("Twice {k}", False), ("Three times {k}", False), ("Half of {k}", False),
        ("{k} times 3", False), ("double: {k} and then {k} again", False),
    ),
    "markup": (
        ("**{k}**", True), ("\\boxed{{{k}}}", True), ("~~{w}~~ {k}", True), ("`{w}`", False),
        ("<answer>{k}</answer>", True), ("> {w}\n\n{k}", True),
    ),
    "another's answer": (
        ("{k}\n\nBob wrote: Answer: {w}", True), ("Question: is it {w}? Answer: {k}", True),
        ("Answer: {k}. (Example of a wrong answer: {w})", True),
    ),
}  # fmt: skip
# What the words around a number do to it: key, unit, answer, whether it is right.
SINGLE_NUMBERS: dict[str, tuple[tuple[float, str, str, bool], ...]] = {
    "sign in words": tuple(
        (-key, unit, f"{verb} {key} {unit}".strip(), True)
        for key in (3, 4, 12)
        for unit in ("degrees", "", "million dollars")
        for verb in ("It fell by", "minus", "negative", "A loss of", "Down", "A decrease of")
    ),
    "units outside the table": (
        (2, "years", "24 months", True), (3, "weeks", "21 days", True),
        (36, "eggs", "3 dozen", True), (36, "eggs", "3 dozen eggs", True),
        (3, "eggs", "3 dozen eggs", False), (10, "shoes", "5 pairs", True),
        (5, "dollars", "500 cents", True), (2, "liters", "2000 ml", True),
        (100, "km/h", "27.8 m/s", True), (100, "km/h", "62 mph", True),
        (5, "%", "50 per thousand", True), (5, "%", "500 basis points", True),
        (9, "square yards", "81 square feet", True), (20, "°C", "68 °F", True),
        (500000, "people", "5 lakh", True), (40, "", "two score", True),
        (90, "minutes", "1.5 h", True), (1, "year", "12 months", True),
    ),
    "number words": (
        (105, "", "a hundred and five", True), (5, "", "a hundred and five", False),
        (1000000, "", "a million", True), (1.5, "million", "one and a half million", True),
        (250, "trucks", "two hundred and fifty trucks", True),
        (0.5, "million", "half a million", True), (3, "", "that one is third", True),
        (1, "", "The second one.", False), (5, "", "the 5th", False),
        (12300, "", "twelve thousand three hundred", True), (3, "", "in 3D", False),
    ),
    "foreign notation": (
        (1.2, "million bags", "1,2 million bags", True),
        (1.25, "million bags", "1,25 million bags", True),
        (1.2, "million bags", "1.200.000 bags", True),
        (1.2, "million bags", "1 200 000 bags", True),
        (1.2, "million bags", "1'200'000 bags", True), (1.2, "million bags", "1.2 mio bags", True),
        (1.2, "million bags", "1.2M bags", True), (1.2, "million bags", "120万", True),
        (1000000, "", "10⁶", True), (1.2, "million bags", "1.2 × 10⁶ bags", True),
        (106, "", "10⁶", False), (5, "", "5万", False), (2.5, "", "2,5", True),
    ),
    "magnitude apart": tuple(
        (key, f"{magnitude} units", answer, True)
        for key, magnitude in ((1.2, "million"), (48, "thousand"), (3, "billion"))
        for answer in (
            f"{key} (in {magnitude}s)",
            f"{key}, in {magnitude}s of units",
            f"In {magnitude}s: {key}",
            f"{key} \\text{{{magnitude}}}",
        )
    )
    + (
        (1.2, "", "1.2 million", True), (1.2, "", "1,200,000", True), (50, "", "50 %", True),
        (50, "", "50 percent", True), (0.5, "", "50 %", True), (1200000, "", "1.2 million", True),
        (1.2, "million", "1200 thousand", True), (1.2, "million", "1200", True),
    ),
    "comparatives": tuple(
        (key, unit, answer.format(rise), True)
        for key, rise in ((1.2, 20), (1.5, 50))
        for unit in ("", "times", "trucks")
        for answer in (
            "{}% more",
            "{}% higher",
            "It is {} percent larger.",
            "{}% greater",
            "{} % taller",
            "高{}%",
        )
    )
    + tuple(
        (key, unit, answer, True)
        for key, answer in ((1.2, "0.2 higher"), (1.5, "0.5 more"), (3, "1 fewer"))
        for unit in ("", "m", "trucks")
    ),
    "bounds": tuple(
        (key, unit, f"{bound} {wrong} {unit}, namely {key} {unit}".strip(), True)
        for key, wrong, unit in ((12, 5, "trucks"), (3, 1, "yards"), (80, 20, "%"))
        for bound in ("More than", "Over", "At least", "Above")
    ),
}  # fmt: skip

RANKED = (
    ("Aster", "Beech", "Cedar"), ("A", "B", "C"), ("Blue Oak", "Red Fir", "Elm", "Ash"),
    ("North", "South", "East", "West", "Centre"),
)  # fmt: skip
QUESTIONS = ("Rank them from largest to smallest.", "Sort from smallest to largest.")


def _rankings(key: Sequence[str], question: str) -> Iterator[tuple[str, str, bool]]:
    """Yield form, answer and whether it is right; ``key`` is in the order that is asked for."""
    upward = "from smallest" in question
    wrong = (key[1], key[0], *key[2:])
    asked, other = "from largest to smallest", "from smallest to largest"
    if upward:
        asked, other = other, asked
    for order, is_right in ((key, True), (wrong, False)):
        listed, backward = ", ".join(order), ", ".join(reversed(order))
        yield "plain order", listed, is_right
        yield "plain order", "\n".join(f"{i}. {item}" for i, item in enumerate(order, 1)), is_right
        yield "plain order", " -> ".join(order), is_right
        yield "named direction", f"{asked.capitalize()}: {listed}.", is_right
        yield "named direction", f"{other.capitalize()}: {backward}.", is_right
        yield "named direction", f"{other.capitalize()}:\n{backward}", is_right
        yield "named direction", f"{backward} ({other})", is_right
        yield "signs", (" < " if upward else " > ").join(order), is_right
        yield "signs", (" > " if upward else " < ").join(reversed(order)), is_right
        down = order[::-1] if upward else order
        values = {item: 10 * (len(down) - place) for place, item in enumerate(down)}
        yield "values", ", ".join(f"{item}: {values[item]}" for item in sorted(order)), is_right
        yield "values", ", ".join(f"{item} ({values[item]})" for item in order), is_right
        small = {item: len(down) - place for place, item in enumerate(down)}
        if not upward:
            yield "values", ", ".join(f"{item}: {small[item]}" for item in order), is_right
        names = ("first", "second", "third", "fourth", "fifth")
        placed = [f"{names[place]} is {item}" for place, item in enumerate(order)]
        yield "places in words", "; ".join(placed), is_right
        yield "places in words", "; ".join(reversed(placed)), is_right
        yield (
            "places in words",
            ", ".join(f"{i} {n}" for n, i in zip(names, order, strict=False)),
            is_right,
        )
        count = range(len(order), 0, -1)
        countdown = zip(count, reversed(order), strict=True)
        yield "places in words", "\n".join(f"{i}. {item}" for i, item in countdown), is_right
        step = "smaller" if upward else "larger"
        chain = f"{order[1]} comes after {order[0]}, and before " + ", then ".join(order[2:])
        yield "comparisons", chain, is_right
        chain = f"{order[0]} is {step} than {order[1]}, which is {step} than " + (
            f", which is {step} than ".join(order[2:])
        )
        yield "comparisons", chain, is_right
    listed, misread = ", ".join(key), ", ".join(wrong)
    yield "two orders", f"The careless reader sees:\n{misread}\nThe order is:\n{listed}", True
    yield "two orders", f"{listed}\nThe misleading areas suggest:\n{misread}", True
    yield "two orders", f"{misread}. No: {listed}.", True
    yield "denied order", f"Not {listed}", False
    yield "denied order", f"{listed} is wrong.", False
    yield "swapped", f"{misread}, but swap the first two.", True
    yield "swapped", f"{listed}, but swap the first two.", False
    yield "ties", f"{key[0]} and {key[1]} tie, then {', '.join(key[2:])}", False
    yield "ties", f"{key[0]} = {key[1]}, {', '.join(key[2:])}", False
    yield "ties", f"{key[0]} or {key[1]}, then {', '.join(key[2:])}", False


CHOICES = (
    (("It rose.", "It fell.", "It stayed the same."), 0), (("Tomainia", "Bacteria"), 1),
    (("Yes", "No"), 1), (("2018", "2022", "2018 and 2022 were the same"), 1),
    (("Nile", "Amazon", "Congo", "Volga"), 2),
)  # fmt: skip
# {t} text and {n} number and {l} letter of the right option, {T}, {N}, {L} of a wrong one.
CHOICE_FORMS: dict[str, tuple[tuple[str, bool], ...]] = {
    "plain option": (("{n}", True), ("{L}", False), ("({l})", True), ("{T}", False)),
    "option denied": (
        ("Not {T}; {t}", True), ("It isn't {t}", False), ("{t}? No, {T}", False),
        ("Anything but {t}.", False), ("{t} is wrong.", False),
    ),
    "option seen by others": (
        ("It looks like {T}, but the answer is {n}.", True),
        ("A careless reader picks {T}.\n{t}", True),
        ("It seems to be {t}; it really is {T}.", False),
        ("Option {N} is the trap, option {n} the answer.", True),
    ),
    "options in working": (
        ("Options {N} and {n} remain; I take {n}.", True), ("{N}? {n}!", True),
        ("The answer is {N}. Correction: the answer is {n}.", True), ("{n} or {N}", False),
        ("I have no idea.", False), ("{n}. {T}", False),
    ),
}  # fmt: skip


def all_readings() -> Iterator[Reading]:
    """Read the whole corpus by the rules."""
    for key, wrong, unit, other, wrong_other in NUMBERS:
        texts = {
            "k": f"{key} {unit}".strip(),
            "w": f"{wrong} {unit}".strip(),
            **{"K": key, "W": wrong, "o": other, "p": wrong_other},
        }
        for form, templates in NUMBER_FORMS.items():
            for template, is_right in templates:
                said = template.format(**texts)
                yield Reading(form, said, is_right, number_is_right(said, float(key), unit))
    for form, cases in SINGLE_NUMBERS.items():
        for number, unit, said, is_right in cases:
            yield Reading(form, said, is_right, number_is_right(said, number, unit))
    for items in RANKED:
        for ranked in list(permutations(items))[:6]:
            for question in QUESTIONS:
                for form, said, is_right in _rankings(ranked, question):
                    yield Reading(form, said, is_right, _read(said, "ranking", ranked, question))
            said = f"From smallest to largest: {', '.join(reversed(ranked))}."
            order = ranking_of(said, ranked)
            by_rule = None if order is None else order == tuple(range(len(ranked)))
            yield Reading("named direction", said, True, by_rule)
    for choices, right in CHOICES:
        for wrong_index in range(len(choices)):
            if wrong_index == right:
                continue
            fields = {
                **{"t": choices[right].rstrip("."), "T": choices[wrong_index].rstrip(".")},
                **{"n": right + 1, "N": wrong_index + 1},
                **{"l": "abcd"[right], "L": "ABCD"[wrong_index]},
            }
            for form, templates in CHOICE_FORMS.items():
                for template, is_right in templates:
                    said = template.format(**fields)
                    by_rule = _read(said, "choice", choices[right], "Which?", choices)
                    yield Reading(form, said, is_right, by_rule)


def _read(
    said: str,
    question_type: str,
    answer: str | tuple[str, ...],
    question: str,
    choices: tuple[str, ...] = (),
) -> bool | None:
    fields = {"id": "made_1", "kind": "bar", "question_type": question_type, "answer": answer}
    item = {**fields, "question": question, "choices": choices, "fact_response": said}
    request = ChartomItem.model_validate(item).fact_request
    ruling = get_task("chartom-fact").rule_if_certain(request)
    return None if ruling is None else ruling.label == CORRECT


MAX_FALSE_DECISIONS = 0.005
"""Upper end of the interval: the corpus must be large enough to say so."""


@pytest.fixture(scope="module")
def readings() -> list[Reading]:
    return list(all_readings())


def test_rules_never_decide_falsely(readings: list[Reading]) -> None:
    """Print the counts (``pytest -s``), which docs/fidelity.md states."""
    forms = Counter(each.form for each in readings)
    assert len(readings) >= 400
    assert len(forms) >= 20
    assert min(forms.values()) >= 10
    assert {each.is_right for each in readings} == {True, False}

    num_decided = sum(each.by_rule is not None for each in readings)
    false = [each.response for each in readings if each.by_rule not in (None, each.is_right)]
    interval = binomtest(len(false), len(readings)).proportion_ci(method="wilson")
    counts = (
        f"{len(readings)} answers in {len(forms)} forms; rules decide {num_decided}, falsely "
        f"{len(false)}: {len(false) / len(readings):.4f} "
        f"[{interval.low:.4f}, {interval.high:.4f}] of all"
    )
    print(counts)  # noqa: T201 - the figures are wanted
    assert false == []
    assert interval.high <= MAX_FALSE_DECISIONS


def test_plain_answers_are_decided(readings: list[Reading]) -> None:
    """Rules that leave everything to the judge would pass the test above."""
    plain = [each.by_rule for each in readings if each.form.startswith("plain")]
    assert sum(by_rule is not None for by_rule in plain) >= 0.95 * len(plain)
