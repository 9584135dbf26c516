"""The facts that every world provides, whatever it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

from data_prep.made import elements
from data_prep.made.elements import Element
from data_prep.made.words import names
from data_prep.made.words.names import Language


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


LETTERS = "ABCDEF"
GOODS: dict[Language, list[str]] = {
    "en": "mills bridges wells barns towers looms boats bakeries".split(),
    "zh": "磨坊 桥梁 水井 谷仓 塔楼 织机 船只 面包房".split(),
}
MEASURES: dict[str, dict[Language, str]] = {
    "km": {"en": "length", "zh": "长度"},
    "kg": {"en": "mass", "zh": "质量"},
    "m": {"en": "height", "zh": "高度"},
    "min": {"en": "duration", "zh": "时长"},
    "L": {"en": "volume", "zh": "容积"},
}


def _say(language: Language, en: str, zh: str) -> str:
    return zh if language == "zh" else en


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    return "\n".join(f"{left} | {right}" for left, right in [head, *rows])


def _rows(rng: Random, language: Language, low: int, high: int) -> dict[str, int]:
    """Draw a table of towns and pairwise distinct counts."""
    towns: dict[str, int] = {}
    size = rng.randint(4, 6)
    while len(towns) < size:
        value = rng.randint(low, high)
        if value not in towns.values():
            towns[names.town(rng, language)] = value
    return towns


def _town_table(language: Language, towns: Mapping[str, int], noun: str) -> str:
    head = (_say(language, "Town", "城镇"), noun)
    return _table(head, [(town, str(count)) for town, count in towns.items()])


def _row_steps(language: Language, towns: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(
        _say(language, f"The row for {town} shows {count}.", f"{town}那一行是{count}。")
        for town, count in towns.items()
    )


def table_filter(rng: Random, language: Language) -> Facts:
    """Ask for the towns whose count exceeds a threshold."""
    towns, noun = _rows(rng, language, 10, 99), rng.choice(GOODS[language])
    ranked = sorted(towns.values(), reverse=True)
    count = rng.randint(2, min(5, len(ranked) - 1))
    threshold = ranked[count]
    return Facts(
        slots={"table": _town_table(language, towns, noun), "noun": noun, "limit": str(threshold)},
        answers=tuple(elements.words(town) for town in towns if towns[town] > threshold),
        decoys=tuple(elements.words(town) for town in towns if towns[town] <= threshold),
        steps=_row_steps(language, towns),
    )


def table_lookup(rng: Random, language: Language) -> Facts:
    """Ask for one town's count."""
    towns, noun = _rows(rng, language, 10, 9000), rng.choice(GOODS[language])
    town = rng.choice(list(towns))
    counts = {name: elements.quantity(value, language) for name, value in towns.items()}
    return Facts(
        slots={"table": _town_table(language, towns, noun), "noun": noun, "town": town},
        answers=(counts.pop(town),),
        decoys=tuple(counts.values()),
        steps=_row_steps(language, towns),
        tolerant=True,
    )


def table_measure(rng: Random, language: Language) -> Facts:
    """Ask for one object's measure, with its unit."""
    unit = rng.choice(list(MEASURES))
    measure = MEASURES[unit][language]
    rows = {
        names.word(rng, language): elements.quantity(value, language, unit)
        for value in rng.sample([n / rng.choice((1, 2, 10)) for n in range(30, 2500, 7)], 4)
    }
    row = rng.choice(list(rows))
    head = (_say(language, "Name", "名称"), f"{measure} ({unit})")
    cells = {name: elements.digits(item.value or 0) for name, item in rows.items()}
    answer = rows.pop(row)
    return Facts(
        slots={"table": _table(head, list(cells.items())), "measure": measure, "row": row},
        answers=(answer,),
        decoys=tuple(item for item in rows.values() if item.value != answer.value),
        steps=tuple(
            _say(language, f"For {name} the entry is {value}.", f"{name}对应{value}。")
            for name, value in cells.items()
        ),
        tolerant=True,
    )


def sequence(rng: Random, language: Language) -> Facts:
    """Ask for the next terms of an arithmetic or geometric sequence."""
    start, step = rng.randint(2, 40), rng.randint(2, 15)
    double = rng.random() < 0.3
    terms = [start * 2**k if double else start + step * k for k in range(9)]
    count = rng.choice((1, 2, 3))
    answers = terms[5 : 5 + count]
    wrong = {answer + shift for answer in answers for shift in (1, -2, 3)} - set(terms)
    rule = (
        _say(language, "Each term doubles the one before.", "每一项是前一项的两倍。")
        if double
        else _say(language, f"Each term grows by {step}.", f"每一项增加{step}。")
    )
    return Facts(
        slots={"shown": ", ".join(map(str, terms[:5])), "count": str(count)},
        answers=tuple(elements.quantity(value, language) for value in answers),
        decoys=tuple(elements.quantity(value, language) for value in sorted(wrong)),
        steps=(rule, _say(language, f"The last shown is {terms[4]}.", f"最后给出的是{terms[4]}。")),
        ordered=True,
    )


def number_set(rng: Random, language: Language) -> Facts:
    """Ask for the members of a set that a number divides."""
    divisor, count = rng.choice((3, 4, 6, 7, 9)), rng.randint(1, 5)
    hits = rng.sample(range(2, 60), count)
    others = rng.sample([n for n in range(10, 400) if n % divisor], 4)
    members = [divisor * k for k in hits] + others
    rng.shuffle(members)
    return Facts(
        slots={"members": ", ".join(map(str, members)), "divisor": str(divisor)},
        answers=tuple(elements.quantity(n, language) for n in members if n % divisor == 0),
        decoys=tuple(elements.quantity(n, language) for n in others),
        steps=tuple(
            _say(
                language,
                f"{n} leaves a remainder of {n % divisor}.",
                f"{n}除以{divisor}余{n % divisor}。",
            )
            for n in members[:4]
        ),
    )


def option_set(rng: Random, language: Language) -> Facts:
    """Offer options of which one or several are right; references are letters or texts."""
    size, divisor = rng.choice((4, 4, 5, 6)), rng.choice((3, 4, 7))
    count = rng.choice((1, 1, 2, 3))
    texts = [str(divisor * k) for k in rng.sample(range(3, 40), count)]
    texts += map(str, rng.sample([n for n in range(10, 200) if n % divisor], size - count))
    rng.shuffle(texts)
    by_letter = rng.random() < 0.5
    options = [
        _option(letter, text, by_letter) for letter, text in zip(LETTERS, texts, strict=False)
    ]
    right = [int(option.choice) % divisor == 0 for option in options]
    return Facts(
        slots={"divisor": str(divisor)},
        answers=tuple(option for option, ok in zip(options, right, strict=True) if ok),
        decoys=tuple(option for option, ok in zip(options, right, strict=True) if not ok),
        steps=(
            _say(language, f"I divide every option by {divisor}.", f"把每个选项除以{divisor}。"),
        ),
        choices=tuple(texts),
    )


def option_town(rng: Random, language: Language) -> Facts:
    """Offer the rows of a table as options, the largest of which is right."""
    towns, noun = _rows(rng, language, 10, 99), rng.choice(GOODS[language])
    by_letter = rng.random() < 0.5
    offered = list(towns)[:4]
    options = [
        _option(letter, town, by_letter) for letter, town in zip(LETTERS, offered, strict=False)
    ]
    best = max(offered, key=lambda town: towns[town])
    table = {town: towns[town] for town in offered}
    return Facts(
        slots={"table": _town_table(language, table, noun), "noun": noun},
        answers=tuple(option for option in options if option.choice == best),
        decoys=tuple(option for option in options if option.choice != best),
        steps=_row_steps(language, table),
        choices=tuple(offered),
    )


def _option(letter: str, text: str, by_letter: bool) -> Element:
    spellings = (letter, text) if by_letter else (text, letter)
    return Element(spellings[0], spellings[1:], letter=letter, choice=text)


def word_problem(rng: Random, language: Language) -> Facts:
    """Ask for two steps of arithmetic in a sentence."""
    boxes, each = rng.randint(4, 40), rng.randint(6, 40)
    given = rng.randint(3, boxes * each // 2)
    total = boxes * each
    answer = elements.quantity(total - given, language)
    wrong = {total + given, total, boxes + each - given, total - given + 10} - {total - given}
    goods = names.thing(rng, language)
    return Facts(
        slots={
            "boxes": str(boxes),
            "each": str(each),
            "given": str(given),
            "goods": goods,
            "who": names.word(rng, language),
        },
        answers=(answer,),
        decoys=tuple(elements.quantity(value, language) for value in sorted(wrong) if value > 0),
        steps=(
            _say(language, f"{boxes} × {each} = {total}.", f"{boxes} × {each} = {total}。"),
            _say(
                language,
                f"{total} - {given} = {answer.text}.",
                f"{total} - {given} = {answer.text}。",
            ),
        ),
        tolerant=True,
    )


def part_of_whole(rng: Random, language: Language) -> Facts:
    """Ask for a share, which a percentage, a decimal and a fraction can all state."""
    part, whole = rng.choice(
        ((1, 2), (1, 4), (3, 4), (1, 5), (2, 5), (3, 5), (4, 5), (3, 10), (7, 10))
    )
    factor = rng.randint(2, 30)
    answer = elements.share(part, whole, language)
    others = [elements.share(n, 10, language) for n in (1, 2, 3, 4, 6, 7, 8, 9)]
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


def peaks(rng: Random, language: Language) -> Facts:
    """Ask for the positions of the peaks that rise above a level."""
    spots = elements.distinct(
        lambda: elements.quantity(rng.randint(200, 2000), language, "nm"), 6, apart=0.12
    )
    heights = rng.sample(range(5, 95), 6)
    count = rng.randint(1, 4)
    level = sorted(heights, reverse=True)[count]
    pairs = list(zip(spots, heights, strict=True))
    rows = [(elements.digits(spot.value or 0), str(height)) for spot, height in pairs]
    head = _say(language, "Position (nm), Height", "位置 (nm), 高度").split(", ")
    return Facts(
        slots={"table": _table((head[0], head[1]), rows), "level": str(level)},
        answers=tuple(spot for spot, height in pairs if height > level),
        decoys=tuple(spot for spot, height in pairs if height <= level),
        steps=tuple(
            _say(language, f"At {x} the height reads {y}.", f"{x}处的高度读作{y}。")
            for x, y in rows[:4]
        ),
        tolerant=True,
    )


def points(rng: Random, language: Language) -> Facts:
    """Ask for the points of the plane above a horizontal line."""
    heights = rng.sample(range(-9, 10), 6)
    spots = [(rng.choice([x for x in range(-9, 10) if x != y]), y) for y in heights]
    level = sorted(heights, reverse=True)[rng.randint(1, 4)]
    above = [spot for spot in spots if spot[1] > level]
    mirrored = {elements.point(*spot) for spot in spots}
    answers = tuple(_without_mirror(elements.point(*spot), mirrored) for spot in above)
    return Facts(
        slots={
            "points": "; ".join(elements.point(*spot).text for spot in spots),
            "level": str(level),
        },
        answers=answers,
        decoys=tuple(elements.point(*spot) for spot in spots if spot not in above),
        steps=(
            _say(
                language,
                f"I compare each second coordinate with {level}.",
                f"逐一比较纵坐标与{level}。",
            ),
        ),
    )


def _without_mirror(spot: Element, points: set[Element]) -> Element:
    """Drop a look-alike with swapped coordinates that is itself one of the points."""
    texts = {other.text for other in points}
    return replace(spot, lookalikes=tuple(text for text in spot.lookalikes if text not in texts))


def calendar(rng: Random, language: Language) -> Facts:
    """Ask for the dates of an event in a calendar."""
    days = elements.distinct(
        lambda: elements.date(
            rng.randint(1800, 2020), rng.randint(1, 12), rng.randint(1, 27), language
        ),
        5,
    )
    count = rng.randint(1, 3)
    event, other = names.word(rng, language), names.word(rng, language, 3)
    owners = [event] * count + [other] * (5 - count)
    rng.shuffle(owners)
    lines = [f"{day.text}: {owner}" for day, owner in zip(days, owners, strict=True)]
    return Facts(
        slots={"calendar": "\n".join(lines), "event": event},
        answers=tuple(day for day, owner in zip(days, owners, strict=True) if owner == event),
        decoys=tuple(day for day, owner in zip(days, owners, strict=True) if owner != event),
        steps=(_say(language, f"The calendar also lists {other}.", f"日历里还有{other}。"),),
    )


def roster(rng: Random, language: Language) -> Facts:
    """Ask for the members of one of two teams."""
    people = elements.distinct(lambda: elements.person(rng, language, short=False), 7)
    count = rng.randint(2, 5)
    team, other = names.word(rng, language), names.word(rng, language, 3)
    join = "、" if language == "zh" else ", "
    first, second = people[:count], people[count:]
    return Facts(
        slots={
            "team": team,
            "other": other,
            "first": join.join(person.text for person in first),
            "second": join.join(person.text for person in second),
        },
        answers=tuple(first),
        decoys=tuple(second),
        steps=(
            _say(language, f"Two teams are named, {team} and {other}.", f"有{team}和{other}两队。"),
        ),
    )


def cargo(rng: Random, language: Language) -> Facts:
    """Ask for the goods in one of two crates."""
    goods = elements.distinct(lambda: elements.words(names.thing(rng, language)), 7)
    count = rng.randint(1, 5)
    join = "、" if language == "zh" else ", "
    here, there = rng.sample(range(1, 30), 2)
    return Facts(
        slots={
            "here": str(here),
            "there": str(there),
            "first": join.join(item.text for item in goods[:count]),
            "second": join.join(item.text for item in goods[count:]),
        },
        answers=tuple(goods[:count]),
        decoys=tuple(goods[count:]),
        steps=(_say(language, f"I only look at crate {here}.", f"只看{here}号箱。"),),
    )


SET_WORLDS: tuple[tuple[World, int], ...] = (
    (table_filter, 12),
    (table_lookup, 6),
    (table_measure, 6),
    (sequence, 8),
    (number_set, 10),
    (option_set, 8),
    (option_town, 5),
    (word_problem, 7),
    (part_of_whole, 4),
    (peaks, 9),
    (points, 6),
    (calendar, 7),
    (roster, 11),
    (cargo, 11),
)


def _facts(rng: Random, make: Callable[[], Element], language: Language) -> Facts:
    """Draw a right element and others of its type; list one to three right spellings."""
    answer, *decoys = elements.distinct(make, 4)
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


def _recollection(rng: Random, language: Language) -> str:
    """Draw a sentence of thinking aloud that gives nothing away."""
    town = names.town(rng, language)
    if language == "zh":
        return rng.choice((f"这个问题在{town}的史料中有线索。", f"先回想一下{town}的相关记载。"))
    return rng.choice(
        (
            f"Several sources from {town} touch on this.",
            "I recall that this question has come up before.",
            f"The archive in {town} has a file about it.",
        )
    )


def open_person(rng: Random, language: Language) -> Facts:
    """Ask who did it."""
    return _facts(rng, lambda: elements.person(rng, language, short=True), language)


def open_place(rng: Random, language: Language) -> Facts:
    """Ask where it is."""
    return _facts(rng, lambda: elements.town(rng, language, region=True), language)


def open_year(rng: Random, language: Language) -> Facts:
    """Ask in which year it happened."""
    return _facts(rng, lambda: elements.year(rng, language), language)


def open_date(rng: Random, language: Language) -> Facts:
    """Ask on which day it happened."""
    return _facts(
        rng,
        lambda: elements.date(
            rng.randint(1800, 2020), rng.randint(1, 12), rng.randint(1, 27), language
        ),
        language,
    )


def open_count(rng: Random, language: Language) -> Facts:
    """Ask how many there are."""
    return _facts(rng, lambda: elements.quantity(rng.randint(2, 60), language), language)


def open_title(rng: Random, language: Language) -> Facts:
    """Ask what the work is called."""
    return _facts(rng, lambda: elements.title(rng, language), language)


OPEN_WORLDS: tuple[tuple[World, int], ...] = (
    (open_person, 35),
    (open_place, 20),
    (open_year, 12),
    (open_date, 9),
    (open_count, 9),
    (open_title, 15),
)
