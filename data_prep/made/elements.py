"""Elements of an answer set: how each may be written, and what is easily mistaken for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from data_prep.made.words import names
from data_prep.made.words.names import Language
from data_prep.made.words.wordings import words_of

MONTHS = (
    "January February March April May June July August September October November December"
).split()
ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
ZH_DIGITS = "零一二三四五六七八九"


@dataclass(frozen=True)
class Element:
    """An answer element of known meaning."""

    text: str
    """As a reference spells it."""
    aliases: tuple[str, ...] = ()
    """Other right spellings."""
    lookalikes: tuple[str, ...] = ()
    """Look-alikes that are wrong."""
    letter: str = ""
    """Option letter, where the question offers options."""
    choice: str = ""
    """Text of that option."""
    value: float | None = None
    """Numeric value, where the 5 % tolerance may apply."""
    unit: str = ""

    def spell(self, rng: Random, alias_rate: float = 0.3) -> str:
        """Write the element in a right spelling, usually that of the reference."""
        return rng.choice(self.aliases) if self.aliases and rng.random() < alias_rate else self.text


def distinct(make: Callable[[], Element], count: int, *, apart: float = 0.0) -> list[Element]:
    """Draw elements until ``count`` differ in text (and, if numbers, by ``apart`` relatively)."""

    def differ(new: Element, old: Element) -> bool:
        if new.value is None or old.value is None:
            return new.text != old.text
        gap = abs(new.value - old.value)
        return new.text != old.text and gap > apart * max(abs(new.value), abs(old.value))

    elements: list[Element] = []
    while len(elements) < count:
        new = make()
        if all(differ(new, old) for old in elements):
            elements.append(new)
    return elements


def digits(value: float) -> str:
    """Write a number plainly: ``1200``, ``0.35``."""
    return str(int(value)) if value == int(value) else f"{value:.6f}".rstrip("0")


def english(number: int, joint: str = " ") -> str:
    """Spell a whole number below 1000; ``joint`` stands after the hundreds."""
    if number < 20:
        return ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS[tens] + (f"-{ONES[ones]}" if ones else "")
    hundreds, remainder = divmod(number, 100)
    return f"{ONES[hundreds]} hundred" + (joint + english(remainder) if remainder else "")


def chinese(number: int) -> str:
    """Spell a whole number below 1000 in Chinese numerals."""
    if number < 10:
        return ZH_DIGITS[number]
    if number < 20:
        return "十" + (ZH_DIGITS[number - 10] if number > 10 else "")
    if number < 100:
        tens, ones = divmod(number, 10)
        return ZH_DIGITS[tens] + "十" + (ZH_DIGITS[ones] if ones else "")
    hundreds, remainder = divmod(number, 100)
    if not remainder:
        tail = ""
    elif remainder < 10:
        tail = "零" + ZH_DIGITS[remainder]
    else:
        tail = ("一" if remainder < 20 else "") + chinese(remainder)
    return ZH_DIGITS[hundreds] + "百" + tail


def quantity(value: float, language: Language, unit: str = "") -> Element:
    """Build a number, with a unit or without."""
    plain = digits(value)
    spellings = [plain]
    whole = int(value) if value == int(value) else None
    if whole is not None and whole >= 1000:
        spellings.append(f"{whole:,}")
        if whole % 100 == 0:
            spellings.append(f"{whole / 10 ** (len(plain) - 1):g}e{len(plain) - 1}")
    elif whole is not None and whole >= 0:
        spellings += [english(whole)] if language == "en" else [chinese(whole)]
    if not unit:
        return Element(plain, tuple(spellings[1:]), value=value)
    units = words_of("text")["units"]
    long = units[unit][language]
    gap = " " if language == "en" else ""
    text = f"{plain} {unit}"
    aliases = [f"{plain}{gap}{long}", f"{plain}{unit}", plain]
    aliases += [f"{spelling}{gap}{long}" for spelling in spellings[1:]]
    lookalikes = tuple(f"{plain} {other}" for other in units if other != unit)
    return Element(text, tuple(aliases), lookalikes, value=value, unit=unit)


def share(part: int, whole: int, language: Language) -> Element:
    """Build a share of a whole: a percentage, a decimal or a fraction."""
    percent = 100 * part // whole
    zh = (f"百分之{chinese(percent)}",)
    en = (f"{percent} percent", f"{english(percent)} percent")
    aliases = (digits(part / whole), f"{part}/{whole}", *(zh if language == "zh" else en))
    return Element(f"{percent}%", aliases, (digits(percent / 1000), f"{percent // 10}%"))


def draw_date(rng: Random, language: Language) -> Element:
    """Draw a calendar date."""
    year, month, day = rng.randint(1800, 2020), rng.randint(1, 12), rng.randint(1, 27)
    iso = f"{year}-{month:02}-{day:02}"
    if language == "zh":
        near = [f"{year + 1}年{month}月{day}日", f"{year}年{month}月{day + 1}日"]
        return Element(f"{year}年{month}月{day}日", (iso, f"{year}/{month}/{day}"), tuple(near))
    name, next_name = MONTHS[month - 1], MONTHS[month % 12]
    near = [f"{day + 1} {name} {year}", f"{day} {next_name} {year}", f"{day} {name} {year + 10}"]
    aliases = (f"{name} {day}, {year}", iso, f"{day} {name[:3]} {year}")
    return Element(f"{day} {name} {year}", aliases, tuple(near))


def year(rng: Random, language: Language) -> Element:
    """Draw a year; a month may be added to it in English."""
    value, mark = rng.randint(1500, 2020), "年" if language == "zh" else ""
    alias = str(value) if language == "zh" else f"{rng.choice(MONTHS)} {value}"
    near = tuple(f"{value + shift}{mark}" for shift in (-10, -1, 1, 2, 100))
    return Element(f"{value}{mark}", (alias,), near)


def person(rng: Random, language: Language, *, short: bool) -> Element:
    """Invent a person; ``short`` allows initials and dropped names as right spellings."""
    given, middle, surname = names.person(rng, language)
    if language == "zh":
        full = surname + given
        near = (surname + names.sibling(rng, given, "zh"), names.surname(rng) + given)
        return Element(full, (), tuple(name for name in near if name != full))
    full = " ".join(filter(None, (given, middle, surname)))
    near = (f"{given} {names.sibling(rng, surname, 'en')}", f"{names.word(rng, 'en')} {surname}")
    aliases = [f"{given[0]}. {surname}", surname]
    if middle:
        aliases += [f"{given} {surname}", f"{given} {middle[0]}. {surname}"]
    if middle and short and rng.random() < 0.5:
        full, aliases = f"{given} {surname}", [full, f"{given} {middle[0]}. {surname}", surname]
    return Element(full, tuple(aliases) if short else (), near)


def town(rng: Random, language: Language) -> Element:
    """Invent a town; in English the land that it lies in may be named as well."""
    name = names.town(rng, language)
    if language == "zh":
        return Element(name, (), (names.sibling(rng, name[:-1], "zh") + name[-1],))
    head, *tail = name.split()
    land = names.word(rng, "en") + "ia"
    near = " ".join([names.sibling(rng, head, "en"), *tail])
    return Element(name, (f"{name}, {land}", f"{name} in {land}"), (near,))


def title(rng: Random, language: Language) -> Element:
    """Invent the title of a work."""
    name = names.title(rng, language)
    if language == "zh":
        return Element(f"《{name}》", (name,), (f"《{names.title(rng, 'zh')}》",))
    head, tail = name.rsplit(" ", 1)
    near = f"{head} {names.sibling(rng, tail, 'en')}"
    return Element(name, (f'"{name}"', f"The {name}"), (near,))
