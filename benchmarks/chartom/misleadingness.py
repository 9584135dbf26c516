"""CHARTOM's human misleadingness index (HMI), from the answers that people gave."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from judging.errors import CustosError
from judging.rules.fact_rules import ranking_of, simplified
from judging.rules.quantities import KeyUnit, Quantity, final_quantity, parse_unit

_SAME_NUMBER = 0.1
"""Powers of ten within which a number of another magnitude is taken for a known answer."""
_MILLIONS = re.compile(r"(?<=\d) ?m\b", re.IGNORECASE)

HumanAnswer = str | float | Sequence[str] | None


class AcceptableInterval(NamedTuple):
    """Open interval of acceptable human answers; infinite where no alternative bounds it."""

    low: float
    high: float


def acceptable_interval(correct: float, alternatives: Iterable[float]) -> AcceptableInterval:
    """Return the interval ``(L, U)`` of human answers that count as correct (section 2.2.2).

    Each bound is the geometric mean of the correct answer and the nearest other strategy's answer
    on that side. The paper's dogs: 1.2 with alternatives 6 and 300 gives ``(-inf, 2.68)``.

    Args:
        correct: Answer of the correct strategy.
        alternatives: Answers of the other strategies, on either chart of the pair.

    Raises:
        CustosError: If a bounding alternative has not the same sign as the correct answer: there
            is no geometric mean.
    """
    others = list(alternatives)
    above = min((a for a in others if a > correct), default=math.inf)
    below = max((a for a in others if a < correct), default=-math.inf)
    return AcceptableInterval(_bound(correct, below), _bound(correct, above))


def _bound(correct: float, alternative: float) -> float:
    if math.isinf(alternative):
        return alternative
    if correct * alternative <= 0:
        raise CustosError(
            f"no geometric mean of {correct} and {alternative}: both must have the same sign"
        )
    return math.copysign(math.sqrt(correct * alternative), correct)


def hmi(
    answers: Iterable[HumanAnswer],
    correct: HumanAnswer,
    alternatives: Iterable[float] = (),
    *,
    unit: str = "",
    asked_upward: bool = False,
) -> float:
    """Return the human misleadingness index: the share of people without an acceptable answer.

    Args:
        answers: People's answers; ``None`` and answers that cannot be read are not acceptable.
        correct: Correct answer. A number accepts its ``acceptable_interval``. A text and, for a
            ranking, a sequence of texts in order must be met exactly, apart from case and
            punctuation. An order may also be answered in a text, such as ``B > A > C``.
        alternatives: For a number: the other strategies' answers, on either chart of the pair.
        unit: Unit of a number and of the alternatives, such as ``million bags``. Answers are read
            in it: ``1,200,000`` and ``1.2 million`` are 1.2, and feet become yards.
        asked_upward: Whether the question asks for an order with the smallest first.

    Raises:
        CustosError: If there are no answers, or as ``acceptable_interval``.
    """
    given, others = list(answers), list(alternatives)
    if not given:
        raise CustosError("no human answers: an HMI needs at least one")
    if isinstance(correct, int | float):
        low, high = acceptable_interval(correct, others)
        amounts = (_amount(answer, (correct, *others), parse_unit(unit)) for answer in given)
        accepted = [amount is not None and low < amount < high for amount in amounts]
    else:
        accepted = [
            answer is not None and _is_met(answer, correct, asked_upward) for answer in given
        ]
    return (len(given) - sum(accepted)) / len(given)


def _amount(answer: HumanAnswer, known: Sequence[float], unit: KeyUnit) -> float | None:
    """Return a number in the key's magnitude and unit; ``None`` if there is none to read.

    Where only the key has a magnitude, the answer may be in it or in full; where only the answer
    has one, the key may have left it out. Of the two readings the one nearer to a known answer
    counts. A bare number against a bare key is what it is. A key without a unit takes numbers
    with any.

    Args:
        answer: What a person answered.
        known: The correct answer and the other strategies' answers.
        unit: The key's unit.
    """
    quantity = _quantity(answer, unit)
    if quantity is None:
        return None
    value = unit.convert(quantity) if unit.words else quantity.value
    if value is None or not math.isfinite(value):
        return None
    readings = [value / unit.magnitude]
    if unit.magnitude != 1 and quantity.magnitude is None:
        readings.append(value)
    if unit.magnitude == 1 and quantity.magnitude is not None:
        without = value / quantity.magnitude
        readings += [without] if _distance(without, known) < _SAME_NUMBER else []
    return min(readings, key=lambda reading: _distance(reading, known))


def _quantity(answer: HumanAnswer, unit: KeyUnit) -> Quantity | None:
    """Read an answer; ``1.2M`` is in millions unless the key is a length, which has metres."""
    if isinstance(answer, str):
        is_length = unit.unit is not None and unit.unit.dimension == "length"
        return final_quantity(answer if is_length else _MILLIONS.sub(" million", answer))
    return Quantity(float(answer)) if isinstance(answer, int | float) else None


def _distance(number: float, known: Sequence[float]) -> float:
    """Return how many powers of ten a number is from the nearest known one of its sign."""
    return min(
        (abs(math.log10(number / other)) for other in known if number * other > 0),
        default=math.inf,
    )


def _is_met(answer: HumanAnswer, correct: HumanAnswer, asked_upward: bool) -> bool:
    """Return whether a choice or an order is the right one."""
    if isinstance(answer, str) and isinstance(correct, Sequence) and not isinstance(correct, str):
        order = ranking_of(answer, correct, asked_upward=asked_upward)
        return order == tuple(range(len(correct)))
    return _plain(answer) == _plain(correct)


def _plain(answer: HumanAnswer) -> tuple[str, ...]:
    parts = [answer] if isinstance(answer, str | int | float) else list(answer or ())
    return tuple(simplified(str(part)) for part in parts)
