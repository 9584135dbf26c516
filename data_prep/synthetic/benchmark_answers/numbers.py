"""The ways to write a number that CHARTOM's answers are made with."""

from __future__ import annotations

from random import Random

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()

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


def in_words(number: int) -> str:
    """Return a whole number below a thousand in English words."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")
    hundreds, rest = divmod(number, 100)
    return f"{_ONES[hundreds]} hundred" + (f" and {in_words(rest)}" if rest else "")


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
