"""Numbers with their units in free text: CHARTOM's numeric answers and predictions."""

import math
import re
import unicodedata
from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judging.reasoning import without_thoughts
from judging.rules.answer_options import has_doubt
from judging.rules.whole_words import ONES, TENS

TOLERANCE = 0.1
"""A number is right within this share of the key (CHARTOM section 2.3)."""
_ROUNDING = 1e-9
"""Share of the key by which binary fractions may miss the tolerance."""

_MAGNITUDES = {
    "dozen": 12.0,
    "hundred": 1e2,
    "thousand": 1e3,
    "k": 1e3,
    "lakh": 1e5,
    "million": 1e6,
    "millions": 1e6,
    "mn": 1e6,
    "crore": 1e7,
    "billion": 1e9,
    "billions": 1e9,
    "bn": 1e9,
    "trillion": 1e12,
    "%": 1e-2,
    "percent": 1e-2,
}
_ONES, _TENS = ("zero", *ONES.split()), TENS.split()
_WORDS = {
    **{word: float(value) for value, word in enumerate(_ONES)},
    **{word: 10.0 * value for value, word in enumerate(_TENS, 2)},
    **{
        f"{tens}{joint}{ones}": 10.0 * num_tens + num_ones
        for num_tens, tens in enumerate(_TENS, 2)
        for num_ones, ones in enumerate(_ONES[1:10], 1)
        for joint in "- "
    },
    "half": 0.5,
    "one half": 0.5,
}


class Unit(NamedTuple):
    """A unit's dimension, and its size in the base unit of that dimension."""

    dimension: str
    factor: float


_UNITS = {
    spelling: Unit(dimension, factor)
    for dimension, table in {
        "length": {
            "mm millimeter millimeters millimetre millimetres": 0.001,
            "cm centimeter centimeters centimetre centimetres": 0.01,
            "m meter meters metre metres": 1.0,
            "km kilometer kilometers kilometre kilometres": 1000.0,
            "inch inches": 0.0254,
            "ft foot feet": 0.3048,
            "yd yard yards": 0.9144,
            "mi mile miles": 1609.344,
        },
        "mass": {
            "g gram grams": 0.001,
            "kg kilogram kilograms kilo kilos": 1.0,
            "tonne tonnes": 1000.0,
            "ton tons": 907.18474,
            "lb lbs pound pounds": 0.45359237,
            "oz ounce ounces": 0.028349523125,
        },
        "time": {
            "second seconds": 1.0,
            "minute minutes": 60.0,
            "hour hours": 3600.0,
            "day days": 86400.0,
        },
    }.items()
    for spellings, factor in table.items()
    for spelling in spellings.split()
}

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(
    rf"(?<![\w.])(?<![a-z]-)(?P<sign>[-+])?\$?(?:"
    rf"(?P<whole>\d+)\s+(?P<over>\d+)\s*/\s*(?P<under>\d+)"
    rf"|(?P<top>{_DIGITS})\s*/\s*(?P<bottom>{_DIGITS})"
    rf"|(?P<plain>{_DIGITS})(?:\s*(?:e|[x×*]\s*+10\s*+\^?)\s*+(?P<exponent>[-+]?\d+))?"
    rf"|(?P<word>(?a:{'|'.join(sorted(_WORDS, key=len, reverse=True))}))\b)",  # not "FİVE"
    re.IGNORECASE,
)
_FOLLOWING = re.compile(r"\s*(%|[a-z]+)", re.IGNORECASE)
_COUNTED = re.compile(r"\s+(?:in|of|out\s+of)\s+(?:\d|(?:" + "|".join(_WORDS) + r")\b)", re.I)
_FINAL = re.compile(r"(?:answer|result)\s*(?:is|:|=|would be)|\\boxed\s*\{", re.IGNORECASE)
_EQUATION = re.compile(r"[\d\s.,+\-*/x×÷()^%$]+[=≈]([^=≈]*)", re.IGNORECASE)
_MAGNITUDE = re.compile(r"%|\b(?:hundred|thousand|million|billion|trillion|percent)s?\b", re.I)
_SECOND_NUMBER = re.compile(
    r"^(?:[-–—~/^:±+]|\(?\s*\d|(?:to|and|until)\b)|\b(?:to|and)\s+[-+$]?\d", re.IGNORECASE
)
"""In what follows the number of a key: another number, or the other end of a range."""
_TWO_UNITS = re.compile(
    r"\d\.(?:1[01]\s?(?:ft|feet|foot)|[0-5]\d\s?(?:h|hours?|hrs?|min|minutes?|[ap]\.?m|uhr))\b",
    re.I,
)
_PERCENT = _MAGNITUDES["%"]
_LEFT_OUT = (1e2, 1e3, 1e6, 1e9, 1e12)
"""Magnitudes that an answer or a key may leave out: per cent, thousands and so on."""
MOST_DIGITS = 300
"""Characters of a number that is finite as a float, and so is its thousandfold."""


@dataclass(frozen=True)
class Quantity:
    """A number as written, the magnitude after it (``million``, ``%``) and its unit."""

    number: float
    magnitude: float | None = None
    unit: Unit | None = None
    start: int = 0
    end: int = 0

    @property
    def value(self) -> float:
        """Return the number with its magnitude, in the quantity's unit."""
        return self.number * (self.magnitude or 1.0)


def unread_magnitude(text: str, quantities: Sequence[Quantity]) -> bool:
    """Tell whether a magnitude stands apart from the quantities, as in ``1.2 (in millions)``."""
    inside = {at for quantity in quantities for at in range(quantity.start, quantity.end)}
    return any(match.start() not in inside for match in _MAGNITUDE.finditer(text))


def has_two_units(text: str) -> bool:
    """Tell whether a point may stand between two units: 5.10 feet, and half past one as 1.30 h."""
    return _TWO_UNITS.search(text) is not None


def find_quantities(text: str) -> list[Quantity]:
    """List every quantity in a text, in order.

    Examples: ``1.2 million bags``, ``1 1/5``, ``3e5``, ``five feet``. ``start`` and ``end`` are
    positions in the text that ``plain_text`` returns.
    """
    text = plain_text(text)
    return [_read(text, match) for match in _NUMBER.finditer(text)]


def plain_text(text: str) -> str:
    """Return a text with plain digits, signs and commas, and without the ``**`` of Markdown."""
    text = re.sub(r"(\d)([¼½¾])", r"\1 \2", text)
    text = re.sub(r"(?<=[\d)])([⁰¹²³⁴-⁹]+)", r"^\1", text)  # 10⁶ is not 106
    text = unicodedata.normalize("NFKC", text)
    return text.replace("\u2212", "-").replace("\u2044", "/").replace("{,}", ",").replace("**", "")


def _read(text: str, match: re.Match[str]) -> Quantity:
    number = _number(match)
    end, magnitude, unit = match.end(), None, None
    while following := _FOLLOWING.match(text, end):
        word = following[1].casefold()
        if magnitude is None and unit is None and word in _MAGNITUDES:
            magnitude = _MAGNITUDES[word]
        elif unit is None and word in _UNITS:
            unit = _UNITS[word]
        else:
            break
        end = following.end()
    return Quantity(number, magnitude, unit, match.start(), end)


def _number(match: re.Match[str]) -> float:
    sign = -1.0 if match["sign"] == "-" else 1.0
    if match["word"]:
        return sign * _WORDS[match["word"].casefold()]
    if match["whole"]:
        return sign * (float(match["whole"]) + _divide(match["over"], match["under"]))
    if match["top"]:
        return sign * _divide(match["top"], match["bottom"])
    mantissa = float(match["plain"].replace(",", ""))
    exponent = float(match["exponent"] or 0)  # an integer may have no more than 4,300 digits
    return sign * mantissa * 10.0**exponent if abs(exponent) < 300 else math.nan


def _divide(top: str, bottom: str) -> float:
    under = float(bottom.replace(",", ""))
    return float(top.replace(",", "")) / under if under else math.nan


def final_quantity(text: str) -> Quantity | None:
    """Find the quantity that an answer settles on; ``None`` if it names several.

    That is its only quantity, the result of an equation that is all of the answer, or the only one
    after its last ``answer is`` or box.
    """
    text = equation_result(text)
    marks = [match.end() for match in _FINAL.finditer(text)]
    for tail in (text[marks[-1] :] if marks else text, text):
        distinct = {(q.number, q.magnitude, q.unit): q for q in find_quantities(tail)}
        if len(distinct) == 1:
            return next(iter(distinct.values()))
    return None


def equation_result(text: str) -> str:
    """Return what follows the last ``=`` of an answer that is one equation, else the answer.

    ``1/250 x 300 = 1.2 million`` is one: its left side has no words. ``2018 = 250, 2019 = 300`` is
    none.
    """
    equation = _EQUATION.fullmatch(plain_text(text))
    return equation[1] if equation else plain_text(text)


class KeyUnit(NamedTuple):
    """Meaning of the text of a key's unit, such as ``million bags``."""

    magnitude: float
    unit: Unit | None
    words: tuple[str, ...]

    @property
    def counted(self) -> list[str]:
        """Return the words that name what is counted, without magnitudes."""
        return [word for word in self.words if word not in _MAGNITUDES]

    def convert(self, quantity: Quantity) -> float | None:
        """Return a quantity in the key's unit but in full; ``None`` if units cannot be compared."""
        if not math.isfinite(quantity.number):
            return None
        if quantity.unit is None or quantity.unit == self.unit:
            return quantity.value
        if self.unit is None or self.unit.dimension != quantity.unit.dimension:
            return None
        return quantity.value * quantity.unit.factor / self.unit.factor


def parse_unit(text: str) -> KeyUnit:
    """Read the unit of a key."""
    words = re.findall(r"%|[a-z]+", text.casefold())
    magnitude = math.prod(_MAGNITUDES[word] for word in words if word in _MAGNITUDES)
    unit = next((_UNITS[word] for word in words if word in _UNITS), None)
    return KeyUnit(magnitude, unit, tuple(words))


def parse_key(text: str) -> tuple[float, str] | None:
    """Read a numeric key such as ``1,200 bags`` as its number and its unit.

    Return ``None`` if it does not begin with a number, or goes on with another number or a doubt:
    ``40-50 mm`` and ``40 or more`` are no single number. A unit may hold a number: ``per 100``.
    """
    plain = plain_text(text).strip()
    number = _NUMBER.match(plain)
    if number is None or not math.isfinite(value := _number(number)):
        return None
    unit = plain[number.end() :].strip(" .,;:")
    if "$" in number[0] and "dollar" not in unit:
        unit = f"{unit} dollars".strip()
    return None if _SECOND_NUMBER.search(unit) or has_doubt(unit) else (value, unit)


def is_close(quantity: Quantity, key: float, unit: KeyUnit) -> bool | None:
    """Tell whether a quantity lies within 10 % of the key.

    A number without a unit is taken to be in the key's. A number without a magnitude may have the
    key's or be written in full: ``1.2`` and ``1,200,000`` both equal 1.2 million.

    Returns:
        ``None`` if the units cannot be compared, if the key in full is too large for a float, if
        the two differ by a magnitude that one of them may leave out (``1.2 million`` against a bare
        1.2, ``1200`` against 1.2 million), or if a percentage may be a change that leads to the
        key: ``+20 %`` against 1.2.
    """
    value = unit.convert(quantity)
    if value is None:
        return None
    in_full = key * unit.magnitude
    if not math.isfinite(in_full):
        return None
    is_bare = quantity.magnitude is None and quantity.unit is None
    if within_tolerance(value, in_full) or (is_bare and within_tolerance(value, key)):
        return True
    is_stated = quantity.magnitude is not None and unit.magnitude != 1
    if not is_stated:
        for power in _LEFT_OUT:
            if within_tolerance(value * power, in_full) or within_tolerance(value, in_full * power):
                return None
    is_change = quantity.magnitude == _PERCENT and unit.magnitude != _PERCENT
    return None if is_change and within_tolerance(1 + value, in_full) else False


def within_tolerance(value: float, key: float) -> bool:
    """Tell whether a value lies within 10 % of the key."""
    return is_near(value, key, TOLERANCE + _ROUNDING)


def is_near(value: float, key: float, share: float) -> bool:
    """Tell whether a value is off by at most a share of the key; only infinity is near infinity."""
    return value == key or abs(value - key) <= share * abs(key) < math.inf


def is_near_any(values: Iterable[float], keys: Sequence[float], share: float) -> bool:
    """Tell whether a value is off by at most ``share`` of a key, below 1; the keys ascend.

    Of the keys on one side of a value the nearest decides.
    """
    places = ((value, bisect(keys, value)) for value in values)
    return any(
        is_near(value, key, share)
        for value, place in places
        for key in keys[max(0, place - 1) : place + 1]
    )


LONGEST_BEGINNING = 10_000
"""Characters in which a share that a response begins with is looked for."""


def parse_fraction(text: str) -> tuple[float | None, str]:
    """Read a MIND answer: the predicted share in [0, 1], which comes first, and the reasons.

    Thoughts before it do not count (:func:`judging.reasoning.without_thoughts`).

    Returns:
        The first number if it is a share (``0.3``, ``30 %``, ``3/10``, ``half``), and the text
        after it. Otherwise ``None`` and the whole text. No share is one end of a range, part of a
        count (``1 in 5``), the number of a list, a number that a decimal comma cuts, and a whole
        number in words (``one``), which mostly means something else.
    """
    text = plain_text(without_thoughts(text))
    quantities = find_quantities(text[:LONGEST_BEGINNING])
    candidates = [
        quantity
        for quantity in quantities
        if quantity.value % 1 or re.search(r"[\d%]", text[quantity.start : quantity.end])
    ]
    if not candidates:
        return None, text.strip()
    first = candidates[0]
    counts_in_words = quantities[0] is not first and _is_count(text, quantities[0])
    is_listed = len(candidates) > 1 and re.match(r"\s*\d+[.)]\s", text)
    is_cut = re.match(r",\d", text[first.end :])
    is_share = 0 <= first.value <= 1 and not first.unit
    if counts_in_words or is_listed or is_cut or not is_share:
        return None, text.strip()
    if _begins_range(text, candidates) or _is_count(text, first):
        return None, text.strip()
    return first.value, text[first.end :].lstrip(" \t\n.,;:-–—)]*")


def _begins_range(text: str, quantities: Sequence[Quantity]) -> bool:
    """Tell whether the first quantity is the lower end of a range."""
    first = quantities[0]
    between = text[first.end : quantities[1].start].strip() if len(quantities) > 1 else ""
    before = text[: first.start].rstrip().casefold()
    is_range = between in ("-", "–", "—", "to") or first.end == quantities[-1].start
    return is_range or (between == "and" and before.endswith("between"))


def _is_count(text: str, quantity: Quantity) -> bool:
    """Tell whether a quantity is the ``1`` of ``1 in 5``; a share (``35 % of 20``) is not."""
    whole = quantity.magnitude is None and quantity.number % 1 == 0
    return whole and _COUNTED.match(text, quantity.end) is not None
