"""CHARTOM's human misleadingness index (HMI), from the answers that people gave."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from benchmarks.chartom.fact_rules import simplified
from benchmarks.chartom.quantities import final_quantity
from judging.errors import CustosError

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
    answers: Iterable[HumanAnswer], correct: HumanAnswer, alternatives: Iterable[float] = ()
) -> float:
    """Return the human misleadingness index: the share of people without an acceptable answer.

    Args:
        answers: People's answers; ``None`` and answers that cannot be read are not acceptable.
        correct: Correct answer. A number accepts its ``acceptable_interval``. A text and, for a
            ranking, a sequence of texts in order must be met exactly, apart from case and
            punctuation.
        alternatives: For a number: the other strategies' answers, on either chart of the pair.

    Raises:
        CustosError: If there are no answers, or as ``acceptable_interval``.
    """
    given = list(answers)
    if not given:
        raise CustosError("no human answers: an HMI needs at least one")
    if isinstance(correct, int | float):
        low, high = acceptable_interval(correct, alternatives)
        accepted = [(n := _number(answer)) is not None and low < n < high for answer in given]
    else:
        accepted = [answer is not None and _plain(answer) == _plain(correct) for answer in given]
    return (len(given) - sum(accepted)) / len(given)


def _number(answer: HumanAnswer) -> float | None:
    if isinstance(answer, str):
        quantity = final_quantity(answer)
        return quantity.number if quantity else None
    return float(answer) if isinstance(answer, int | float) else None


def _plain(answer: HumanAnswer) -> tuple[str, ...]:
    parts = [answer] if isinstance(answer, str | int | float) else list(answer or ())
    return tuple(simplified(str(part)) for part in parts)
