"""Small worlds of known facts: what questions ask, the answers, and material for responses.

A world is a function that draws facts; ``words/text.yaml`` words its question. The facts of a set
world are written in the question, so that every answer is known. An open world asks for one
invented fact, which has several right spellings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from data_prep.made import elements
from data_prep.made.elements import Element
from data_prep.made.words import names
from data_prep.made.words.names import Language
from data_prep.made.words.wordings import words_of

LETTERS = "ABCDEF"
SHARES = ((1, 2), (1, 4), (3, 4), (1, 5), (2, 5), (3, 5), (4, 5), (3, 10), (7, 10))


@dataclass(frozen=True)
class Facts:
    """The contents of a world: slots of its question, the answers, and material for responses."""

    slots: Mapping[str, str]
    answers: tuple[Element, ...]
    decoys: tuple[Element, ...]
    """Plausible elements outside the answer set."""
    steps: tuple[str, ...] = ()
    """True sentences that lead to the answer without naming it as such."""
    choices: tuple[str, ...] = ()
    tolerant: bool = False
    """All answers are numbers far enough apart that 5 % cannot confuse them."""
    ordered: bool = False
    """The answers have an order that a response must keep."""
    alternatives: tuple[str, ...] = ()
    """Right on their own (reference mode ``any``); empty where the answers form a set."""


World = Callable[[Random, Language], Facts]


def _say(language: Language, en: str, zh: str) -> str:
    return zh if language == "zh" else en


def _quantities(language: Language, values: Iterable[float]) -> tuple[Element, ...]:
    return tuple(elements.quantity(value, language) for value in values)


def _parted(
    members: Iterable[Element], is_right: Callable[[Element], bool]
) -> tuple[tuple[Element, ...], tuple[Element, ...]]:
    """Part elements into answers and decoys."""
    listed = tuple(members)
    return tuple(filter(is_right, listed)), tuple(e for e in listed if not is_right(e))


def _table(head: tuple[str, str], rows: Mapping[str, object]) -> str:
    return "\n".join(f"{left} | {right}" for left, right in [head, *rows.items()])


def _draw_towns(rng: Random, language: Language, low: int, high: int) -> tuple[dict[str, int], str]:
    """Draw towns with pairwise distinct counts, and what is counted."""
    towns: dict[str, int] = {}
    size = rng.randint(4, 6)
    while len(towns) < size:
        value = rng.randint(low, high)
        if value not in towns.values():
            towns[names.town(rng, language)] = value
    return towns, rng.choice(words_of("text")["goods"][language])


def _shown(language: Language, towns: Mapping[str, int], noun: str) -> dict[str, str]:
    """Fill the slots that show a table of towns."""
    return {"table": _table((_say(language, "Town", "城镇"), noun), towns), "noun": noun}


def _row_steps(language: Language, towns: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(
        _say(language, f"The row for {town} shows {count}.", f"{town}那一行是{count}。")
        for town, count in towns.items()
    )


def _table_filter(rng: Random, language: Language) -> Facts:
    """Ask for the towns whose count exceeds a threshold."""
    towns, noun = _draw_towns(rng, language, 10, 99)
    count = rng.randint(2, min(5, len(towns) - 1))
    threshold = sorted(towns.values(), reverse=True)[count]
    return Facts(
        {**_shown(language, towns, noun), "limit": str(threshold)},
        *_parted(map(Element, towns), lambda town: towns[town.text] > threshold),
        steps=_row_steps(language, towns),
    )


def _table_lookup(rng: Random, language: Language) -> Facts:
    """Ask for one town's count."""
    towns, noun = _draw_towns(rng, language, 10, 9000)
    town = rng.choice(list(towns))
    return Facts(
        {**_shown(language, towns, noun), "town": town},
        answers=_quantities(language, [towns[town]]),
        decoys=_quantities(language, [count for name, count in towns.items() if name != town]),
        steps=_row_steps(language, towns),
        tolerant=True,
    )


def _table_measure(rng: Random, language: Language) -> Facts:
    """Ask for one object's measure, with its unit."""
    measures = words_of("text")["measures"]
    unit = rng.choice(list(measures))
    measure = measures[unit][language]
    rows = {
        names.word(rng, language): elements.quantity(value, language, unit)
        for value in rng.sample([n / rng.choice((1, 2, 10)) for n in range(30, 2500, 7)], 4)
    }
    row = rng.choice(list(rows))
    head = (_say(language, "Name", "名称"), f"{measure} ({unit})")
    cells = {name: elements.digits(item.value or 0) for name, item in rows.items()}
    answer = rows.pop(row)
    return Facts(
        slots={"table": _table(head, cells), "measure": measure, "row": row},
        answers=(answer,),
        decoys=tuple(item for item in rows.values() if item.value != answer.value),
        steps=tuple(
            _say(language, f"For {name} the entry is {value}.", f"{name}对应{value}。")
            for name, value in cells.items()
        ),
        tolerant=True,
    )


def _sequence(rng: Random, language: Language) -> Facts:
    """Ask for the next terms of an arithmetic or geometric sequence."""
    start, step = rng.randint(2, 40), rng.randint(2, 15)
    double = rng.random() < 0.3
    terms = [start * 2**k if double else start + step * k for k in range(9)]
    count = rng.choice((1, 2, 3))
    answers = terms[5 : 5 + count]
    wrong = {answer + shift for answer in answers for shift in (1, -2, 3)} - set(terms)
    rule = _say(language, f"Each term grows by {step}.", f"每一项增加{step}。")
    if double:
        rule = _say(language, "Each term doubles the one before.", "每一项是前一项的两倍。")
    return Facts(
        slots={"shown": ", ".join(map(str, terms[:5])), "count": str(count)},
        answers=_quantities(language, answers),
        decoys=_quantities(language, sorted(wrong)),
        steps=(rule, _say(language, f"The last shown is {terms[4]}.", f"最后给出的是{terms[4]}。")),
        ordered=True,
    )


def _number_set(rng: Random, language: Language) -> Facts:
    """Ask for the members of a set that a number divides."""
    divisor, count = rng.choice((3, 4, 6, 7, 9)), rng.randint(1, 5)
    hits = rng.sample(range(2, 60), count)
    others = rng.sample([n for n in range(10, 400) if n % divisor], 4)
    members = [divisor * k for k in hits] + others
    rng.shuffle(members)
    remainders = {n: n % divisor for n in members[:4]}
    return Facts(
        slots={"members": ", ".join(map(str, members)), "divisor": str(divisor)},
        answers=_quantities(language, [n for n in members if n % divisor == 0]),
        decoys=_quantities(language, others),
        steps=tuple(
            _say(language, f"{n} leaves a remainder of {rest}.", f"{n}除以{divisor}余{rest}。")
            for n, rest in remainders.items()
        ),
    )


def _options(texts: Iterable[str], by_letter: bool) -> Iterable[Element]:
    for letter, text in zip(LETTERS, texts, strict=False):
        first, *others = (letter, text) if by_letter else (text, letter)
        yield Element(first, tuple(others), letter=letter, choice=text)


def _option_set(rng: Random, language: Language) -> Facts:
    """Offer options of which one or several are right; references are letters or texts."""
    size, divisor = rng.choice((4, 4, 5, 6)), rng.choice((3, 4, 7))
    count = rng.choice((1, 1, 2, 3))
    texts = [str(divisor * k) for k in rng.sample(range(3, 40), count)]
    texts += map(str, rng.sample([n for n in range(10, 200) if n % divisor], size - count))
    rng.shuffle(texts)
    options = _options(texts, rng.random() < 0.5)
    return Facts(
        {"divisor": str(divisor)},
        *_parted(options, lambda option: int(option.choice) % divisor == 0),
        steps=(
            _say(language, f"I divide every option by {divisor}.", f"把每个选项除以{divisor}。"),
        ),
        choices=tuple(texts),
    )


def _option_town(rng: Random, language: Language) -> Facts:
    """Offer the rows of a table as options, the largest of which is right."""
    towns, noun = _draw_towns(rng, language, 10, 99)
    offered = dict(list(towns.items())[:4])
    options = _options(offered, rng.random() < 0.5)
    best = max(offered, key=offered.__getitem__)
    return Facts(
        _shown(language, offered, noun),
        *_parted(options, lambda option: option.choice == best),
        steps=_row_steps(language, offered),
        choices=tuple(offered),
    )


def _word_problem(rng: Random, language: Language) -> Facts:
    """Ask for two steps of arithmetic in a sentence."""
    boxes, each = rng.randint(4, 40), rng.randint(6, 40)
    total = boxes * each
    given = rng.randint(3, total // 2)
    right = total - given
    wrong = {total + given, total, boxes + each - given, right + 10} - {right}
    sums = (f"{boxes} × {each} = {total}", f"{total} - {given} = {right}")
    return Facts(
        {
            "boxes": str(boxes),
            "each": str(each),
            "given": str(given),
            "goods": names.thing(rng, language),
            "who": names.word(rng, language),
        },
        answers=_quantities(language, [right]),
        decoys=_quantities(language, [value for value in sorted(wrong) if value > 0]),
        steps=tuple(f"{written}{_say(language, '.', '。')}" for written in sums),
        tolerant=True,
    )


def _part_of_whole(rng: Random, language: Language) -> Facts:
    """Ask for a share, which a percentage, a decimal and a fraction can all state."""
    part, whole = rng.choice(SHARES)
    factor = rng.randint(2, 30)
    answer = elements.share(part, whole, language)
    others = (elements.share(n, 10, language) for n in (1, 2, 3, 4, 6, 7, 8, 9))
    return Facts(
        slots={
            "part": str(part * factor),
            "whole": str(whole * factor),
            "goods": names.thing(rng, language),
        },
        answers=(answer,),
        decoys=tuple(other for other in others if other.text != answer.text),
        steps=(_say(language, "Divide the part by the whole.", "用部分除以总数。"),),
    )


def _peaks(rng: Random, language: Language) -> Facts:
    """Ask for the positions of the peaks that rise above a level."""
    spots = elements.distinct(
        lambda: elements.quantity(rng.randint(200, 2000), language, "nm"), 6, apart=0.12
    )
    heights = rng.sample(range(5, 95), 6)
    level = sorted(heights, reverse=True)[rng.randint(1, 4)]
    height_of = {spot.value: height for spot, height in zip(spots, heights, strict=True)}
    rows = {elements.digits(position or 0): height for position, height in height_of.items()}
    head = _say(language, "Position (nm), Height", "位置 (nm), 高度").split(", ")
    return Facts(
        {"table": _table((head[0], head[1]), rows), "level": str(level)},
        *_parted(spots, lambda spot: height_of[spot.value] > level),
        steps=tuple(
            _say(language, f"At {x} the height reads {y}.", f"{x}处的高度读作{y}。")
            for x, y in list(rows.items())[:4]
        ),
        tolerant=True,
    )


def _points(rng: Random, language: Language) -> Facts:
    """Ask for the points of the plane above a horizontal line."""
    heights = rng.sample(range(-9, 10), 6)
    spots = [(rng.choice([x for x in range(-9, 10) if x != y]), y) for y in heights]
    level = sorted(heights, reverse=True)[rng.randint(1, 4)]
    texts = [f"({x}, {y})" for x, y in spots]
    points = {
        Element(text, (f"({x},{y})",), (f"({y}, {x})",)): y
        for text, (x, y) in zip(texts, spots, strict=True)
    }
    above, others = _parted(points, lambda point: points[point] > level)
    # Drop look-alikes with swapped coordinates that are themselves points.
    answers = tuple(
        replace(point, lookalikes=tuple(near for near in point.lookalikes if near not in texts))
        for point in above
    )
    step = _say(
        language, f"I compare each second coordinate with {level}.", f"逐一比较纵坐标与{level}。"
    )
    slots = {"points": "; ".join(texts), "level": str(level)}
    return Facts(slots, answers, others, steps=(step,))


def _calendar(rng: Random, language: Language) -> Facts:
    """Ask for the dates of an event in a calendar."""
    days = elements.distinct(lambda: elements.draw_date(rng, language), 5)
    count = rng.randint(1, 3)
    event, other = names.word(rng, language), names.word(rng, language, 3)
    owners = [event] * count + [other] * (5 - count)
    rng.shuffle(owners)
    owner_of = {day.text: owner for day, owner in zip(days, owners, strict=True)}
    lines = (f"{day}: {owner}" for day, owner in owner_of.items())
    return Facts(
        {"calendar": "\n".join(lines), "event": event},
        *_parted(days, lambda day: owner_of[day.text] == event),
        steps=(_say(language, f"The calendar also lists {other}.", f"日历里还有{other}。"),),
    )


def _in_two(language: Language, members: list[Element], count: int) -> dict[str, str]:
    """Fill the slots that list the first ``count`` members and the others."""
    join = _say(language, ", ", "、")
    parts = {"first": members[:count], "second": members[count:]}
    return {name: join.join(member.text for member in part) for name, part in parts.items()}


def _roster(rng: Random, language: Language) -> Facts:
    """Ask for the members of one of two teams."""
    people = elements.distinct(lambda: elements.person(rng, language, short=False), 7)
    count = rng.randint(2, 5)
    team, other = names.word(rng, language), names.word(rng, language, 3)
    step = _say(language, f"Two teams are named, {team} and {other}.", f"有{team}和{other}两队。")
    return Facts(
        slots={"team": team, "other": other, **_in_two(language, people, count)},
        answers=tuple(people[:count]),
        decoys=tuple(people[count:]),
        steps=(step,),
    )


def _cargo(rng: Random, language: Language) -> Facts:
    """Ask for the goods in one of two crates."""
    goods = elements.distinct(lambda: Element(names.thing(rng, language)), 7)
    count = rng.randint(1, 5)
    here, there = rng.sample(range(1, 30), 2)
    return Facts(
        slots={"here": str(here), "there": str(there), **_in_two(language, goods, count)},
        answers=tuple(goods[:count]),
        decoys=tuple(goods[count:]),
        steps=(_say(language, f"I only look at crate {here}.", f"只看{here}号箱。"),),
    )


def _open(make: Callable[[Random, Language], Element]) -> World:
    """Make a world with a right element and others of its type, in one to three spellings."""

    def world(rng: Random, language: Language) -> Facts:
        answer, *decoys = elements.distinct(lambda: make(rng, language), 4)
        spellings = list(answer.aliases)
        rng.shuffle(spellings)
        return Facts(
            slots={
                "work": names.title(rng, language),
                "place": names.town(rng, language),
                "thing": names.word(rng, language),
                "date": str(rng.randint(1500, 2020)),
            },
            answers=(answer,),
            decoys=tuple(decoys),
            steps=(_recollection(rng, language),),
            alternatives=(answer.text, *spellings[: rng.choice((0, 0, 1, 2))]),
        )

    return world


def _recollection(rng: Random, language: Language) -> str:
    """Draw a sentence of thinking aloud."""
    town = names.town(rng, language)
    return str(rng.choice(words_of("text")["recollections"][language]).format(town=town))


SET_WORLDS: dict[str, tuple[World, int]] = {
    "table_filter": (_table_filter, 12),
    "table_lookup": (_table_lookup, 6),
    "table_measure": (_table_measure, 6),
    "sequence": (_sequence, 8),
    "number_set": (_number_set, 10),
    "option_set": (_option_set, 8),
    "option_town": (_option_town, 5),
    "word_problem": (_word_problem, 7),
    "part_of_whole": (_part_of_whole, 4),
    "peaks": (_peaks, 9),
    "points": (_points, 6),
    "calendar": (_calendar, 7),
    "roster": (_roster, 11),
    "cargo": (_cargo, 11),
}
"""By name, each with how often it is drawn."""
OPEN_WORLDS: dict[str, tuple[World, int]] = {
    "open_person": (_open(partial(elements.person, short=True)), 35),
    "open_place": (_open(elements.town), 20),
    "open_year": (_open(elements.year), 12),
    "open_date": (_open(elements.draw_date), 9),
    "open_count": (_open(lambda rng, lang: elements.quantity(rng.randint(2, 60), lang)), 9),
    "open_title": (_open(elements.title), 15),
}
