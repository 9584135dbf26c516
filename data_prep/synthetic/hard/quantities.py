"""Numbers in and out of the tolerance: how they are read, moved and written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from data_prep.synthetic.text.behaviours import EDGE, TOLERANCE
from judging.tasks.hieval_qs import CORRECT

_QUANTITY = re.compile(
    r"(?P<before>(?:about |approximately |around |roughly )?[$€£]?)"
    r"(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?P<unit> ?%|(?: ?[^\W\d_]+){0,3})"
)
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
SMALLEST_WHOLE = 20
"""Whole numbers below this have no other whole number within 5 %; most count something."""
OTHER_UNITS = {
    "km": "m", "kg": "g", "m": "cm", "min": "hours", "L": "mL", "nm": "mm", "%": "per mille",
    "percent": "per mille", "miles": "yards", "feet": "inches", "million": "thousand",
    "billion": "million", "metres": "kilometres", "kilometres": "metres", "dollars": "cents",
    "years": "months", "days": "weeks", "hours": "minutes", "minutes": "seconds",
}  # fmt: skip
"""A unit to put in place of another; the number then means something else."""


@dataclass(frozen=True)
class Quantity:
    """A number as a reference writes it."""

    before: str
    value: float
    decimals: int
    unit: str
    """What follows the number, with the space before it."""


def read_quantity(references: Sequence[str]) -> Quantity | None:
    """Return the number that all references give; ``None`` for years, small counts and others."""
    read = [_read(reference) for reference in references]
    first = read[0] if read else None
    if first is None or any(q is None or q.value != first.value for q in read):
        return None
    is_small = not first.decimals and first.value < SMALLEST_WHOLE
    return None if is_small or not first.value else first


def _read(reference: str) -> Quantity | None:
    match = _QUANTITY.fullmatch(reference.strip())
    if match is None or _YEAR.fullmatch(reference.strip()):
        return None
    words = match["unit"].split()
    if any(word != word.lower() and word not in OTHER_UNITS for word in words):
        return None  # a name, such as that of a film
    if words and not match["unit"].startswith(" ") and words[0] not in OTHER_UNITS:
        return None  # an ordinal, or a year in Chinese
    plain = match["number"].replace(",", "")
    decimals = len(plain.partition(".")[2])
    return Quantity(match["before"], float(plain), decimals, match["unit"])


def quantity_slots(
    rng: Random, quantity: Quantity, label: str, *, tolerance: bool
) -> dict[str, str]:
    """Return what fills the slots of a frame: a number that earns the label, and a range around it.

    With the tolerance a number is right up to 5 % off; without it only the number itself is.

    Args:
        rng: Generator to draw from.
        quantity: Number of the references.
        label: ``Correct`` or ``Wrong``.
        tolerance: Whether the tolerance is granted.
    """
    unit = quantity.unit
    if label == CORRECT:
        share = rng.uniform(0.001, TOLERANCE - EDGE) if tolerance and rng.random() < 0.7 else 0.0
        value = _moved(rng, quantity, share, (0.0, TOLERANCE - EDGE))
    elif tolerance:
        value, unit = _wrong(rng, quantity, (TOLERANCE + EDGE, 0.6))
    else:
        value, unit = _wrong(rng, quantity, (0.0, 0.6))
    around = (rng.uniform(0.6, 0.9), rng.uniform(1.1, 1.5))
    low, high = (round(quantity.value * share, quantity.decimals + 1) for share in around)
    if not quantity.decimals:
        low, high = round(low), round(high)
    return {
        "yes": _write(rng, quantity, value, unit),
        "low": _write(rng, quantity, low, quantity.unit),
        "high": _write(rng, quantity, high, quantity.unit),
    }


def _wrong(rng: Random, quantity: Quantity, bounds: tuple[float, float]) -> tuple[float, str]:
    """Return a number that is off by a share within bounds, or by its unit or its size."""
    unit = quantity.unit.strip()
    way = rng.random()
    if way < 0.15 and unit in OTHER_UNITS:
        return quantity.value, quantity.unit.replace(unit, OTHER_UNITS[unit])
    if way < 0.35:
        return quantity.value * rng.choice((0.01, 0.1, 10, 100)), quantity.unit
    low, high = bounds
    near = max(low, 0.004) + 0.04 + rng.random() * 0.05
    share = near if rng.random() < 0.6 else rng.uniform(near, high)
    if low == 0 and rng.random() < 0.6:  # what the tolerance would forgive
        share = rng.uniform(0.004, TOLERANCE)
    value = _moved(rng, quantity, share, bounds)
    # What rounds back to the right number becomes ten times as large.
    return 10 * value if value == quantity.value else value, quantity.unit


def _moved(rng: Random, quantity: Quantity, share: float, bounds: tuple[float, float]) -> float:
    """Move a number by about a share; the move stays within bounds after rounding, or is exact."""
    low, high = bounds
    for decimals in (quantity.decimals, quantity.decimals + 1, quantity.decimals + 2):
        value = round(quantity.value * (1 + share * rng.choice((-1, 1))), decimals)
        off = abs(value - quantity.value) / quantity.value
        if low < off < high or off == share == 0:
            return value
    return quantity.value


def _write(rng: Random, quantity: Quantity, value: float, unit: str) -> str:
    """Write a number with its unit: with or without separators of thousands, or in words for %."""
    decimals = max(quantity.decimals, 2 if value < SMALLEST_WHOLE else 1)
    plain = f"{value:.{decimals + 2}f}".rstrip("0").rstrip(".")
    if value >= 1000 and rng.random() < 0.5:
        whole, _, rest = plain.partition(".")
        plain = f"{int(whole):,}" + (f".{rest}" if rest else "")
    if unit.strip() == "%" and rng.random() < 0.4:
        unit = " percent"
    return f"{quantity.before}{plain}{unit}"
