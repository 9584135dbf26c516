"""CHARTOM's items, and the human misleadingness index (HMI) of people's answers to them.

The 112 charts are not public. An item's fields are ``id`` (the pair's name and ``_1`` or, for the
manipulated version, ``_2``), ``kind``, ``question``, ``question_type`` (choice, ranking, number),
``choices``, ``answer``, ``unit``, ``manipulation``, ``image``, and ``hmi`` or the raw
``human_answers`` with ``alternatives``. ``custos prep chartom`` makes such items. A response adds
``fact_response`` and ``mind_response``.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationInfo, field_validator

from benchmarks.framework.files import Row, parse_rows
from evaluation.estimate import without_nan
from evaluation.intervals import wilson_interval
from evaluation.report.plots import BLUE, ORANGE, figure_file, finish_axes
from evaluation.report.text import markdown_table, number, with_interval
from judging.errors import CustosError, FieldError
from judging.files.atomic import write_text
from judging.files.records import write_json
from judging.rules.fact_rules import choice_of, ranking_of, simplified
from judging.rules.quantities import KeyUnit, Quantity, final_quantity, parse_fraction, parse_unit
from judging.tasks.chartom import MOST_READ_OF_KEYS, UNFINISHED, asks_upward
from judging.types import JudgeRequest, parse_record

_VERSION = re.compile(r"(?<=.)_[12]\Z")
"""End of an id: the original or the manipulated version of a pair."""
HIGH_HMI = 0.5
"""From this HMI on a manipulated chart counts as misleading, and its justification is judged. The
paper writes "high" and gives no number: half of the readers is our choice."""
_SAME_NUMBER = 0.1
"""Powers of ten within which a number of another magnitude is taken for a known answer."""
_MILLIONS = re.compile(r"(?<=\d) ?m\b", re.IGNORECASE)

HumanAnswer = str | float | Sequence[str] | None
Share = Annotated[float, Field(ge=0, le=1)]


class ChartomItem(BaseModel):
    """One chart with its questions, and the responses and grades that it has."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str
    kind: Literal["line", "bar", "pie", "scatter", "map"]
    question: str
    question_type: Literal["choice", "ranking", "number"]
    choices: tuple[str, ...] = ()
    answer: FiniteFloat | str | tuple[str, ...]
    """For a ranking the items in order; for a choice the option's text, number from 1 or letter."""
    unit: str = ""
    manipulation: str = ""
    """Name of the planted manipulation; empty on original charts."""
    hmi: Share | None = None
    alternatives: tuple[FiniteFloat, ...] = ()
    human_answers: tuple[float | str | tuple[str, ...] | None, ...] = ()
    fact_response: str | None = None
    mind_response: str | None = None
    cut_off: tuple[str, ...] = ()
    """Responses that ended at the token limit."""
    fact_correct: bool | None = None
    mind_prediction: Share | None = None
    justification_named: bool | None = None

    @field_validator("answer")
    @classmethod
    def _read_number(cls, answer: Any, info: ValidationInfo) -> Any:
        """Read the number of a question for one, which files of tables hold as text."""
        if info.data.get("question_type") != "number" or not isinstance(answer, str):
            return answer
        with suppress(ValueError):
            if math.isfinite(number := float(answer)):
                return number
        return answer

    @property
    def pair(self) -> str:
        """Name what both versions share: ``G7_Q1`` of ``G7_Q1_2``.

        A chart whose id does not end in ``_1`` or ``_2`` is a pair of its own.
        """
        return _VERSION.sub("", self.id)

    @property
    def key(self) -> tuple[str, ...]:
        """Spell the answer key as the judge sees it."""
        if isinstance(self.answer, tuple):
            return self.answer
        if self.question_type == "number":
            return (f"{self._numeric_key():.15g} {self.unit}".strip(),)
        return (self.choices[self._right_choice()],)

    @property
    def needs_justification(self) -> bool:
        """Tell whether the reasons are compared with the planted manipulation."""
        is_misleading = self.hmi is not None and self.hmi >= HIGH_HMI
        return bool(self.manipulation) and is_misleading and self.mind_response is not None

    @property
    def mind_error(self) -> float | None:
        """Square the distance of the prediction from the HMI; ``None`` without either."""
        predicted = self.mind_prediction
        if predicted is None and self.mind_response is not None:
            predicted = parse_fraction(self.mind_response)[0]
        return None if predicted is None or self.hmi is None else (predicted - self.hmi) ** 2

    @property
    def fact_request(self) -> JudgeRequest:
        """Make the request that grades the FACT answer.

        Raise ``FieldError`` if the key does not fit the question.
        """
        response = self.fact_response or ""
        if "fact_response" in self.cut_off and response.strip():
            response = f"{response} {UNFINISHED[0]}"
        fields = {
            "id": self.id,
            "task": "chartom-fact",
            "variant": self.question_type,
            "question": self.question,
            "choices": self.choices,
            "references": self.key,
            "responses": (response,),
        }
        return parse_record(JudgeRequest, fields, f"item '{self.id}'")

    def measured_hmi(self, alternatives: Sequence[float]) -> float:
        """Measure the HMI of the human answers, read as the question is answered.

        ``alternatives`` are those of both charts of the pair. A ranking is asked for with the
        largest first unless the question says otherwise. Raise ``FieldError`` if answer and choices
        are too long to be looked for in every person's answer.
        """
        texts = (*self.choices, *(self.answer if isinstance(self.answer, tuple) else ()))
        if (length := sum(map(len, texts))) > MOST_READ_OF_KEYS:
            limit = f"at most {MOST_READ_OF_KEYS:,} are looked for in people's answers"
            field = "choices" if self.choices else "answer"
            raise FieldError(field, f"{length:,} characters, and {limit}")
        if self.question_type == "choice":
            chosen = [self._choice(answer) for answer in self.human_answers]
            return hmi(chosen, str(self._right_choice()))
        if self.question_type == "number":
            return hmi(self.human_answers, self._numeric_key(), alternatives, unit=self.unit)
        return hmi(self.human_answers, self.answer, asked_upward=bool(asks_upward(self.question)))

    def _choice(self, answer: HumanAnswer) -> str | None:
        chosen = None if answer is None else choice_of(_as_text(answer), self.choices)
        return None if chosen is None else str(chosen)

    def _numeric_key(self) -> float:
        if isinstance(self.answer, float):
            return self.answer
        raise FieldError("answer", f"{self.answer!r} is not a number", f"item '{self.id}'")

    def _right_choice(self) -> int:
        right = choice_of(_as_text(self.answer), self.choices)
        if right is None:
            fault = f"{self.answer!r} is none of the choices"
            raise FieldError("answer", fault, f"item '{self.id}'")
        return right


def pair_alternatives(items: Iterable[ChartomItem]) -> dict[str, list[float]]:
    """Collect the other strategies' answers on either chart of each pair."""
    alternatives: dict[str, list[float]] = {}
    for item in items:
        alternatives.setdefault(item.pair, []).extend(item.alternatives)
    return alternatives


def _as_text(answer: HumanAnswer) -> str:
    return f"{answer:.15g}" if isinstance(answer, float) else str(answer)


def acceptable_interval(correct: float, alternatives: Iterable[float]) -> tuple[float, float]:
    """Bound the human answers that count as correct: the open interval ``(L, U)`` (section 2.2.2).

    Each bound is the geometric mean of the correct answer and the nearest other strategy's answer
    on that side, on either chart of the pair; it is infinite without one. The paper's dogs: 1.2
    with alternatives 6 and 300 gives ``(-inf, 2.68)``. Raise ``CustosError`` if a bounding
    alternative has not the same sign as the correct answer: there is no geometric mean.
    """
    others = list(alternatives)
    above = min((a for a in others if a > correct), default=math.inf)
    below = max((a for a in others if a < correct), default=-math.inf)

    def bound(near: float) -> float:
        if math.isinf(near):
            return near
        if not (min(correct, near) > 0 or max(correct, near) < 0):  # the product may be 0 or ∞
            fault = "both must have the same sign"
            raise CustosError(f"no geometric mean of {correct} and {near}: {fault}")
        root = math.sqrt(correct * near)
        if not 0 < root < math.inf:  # no float holds the product
            root = math.sqrt(abs(correct)) * math.sqrt(abs(near))
        return math.copysign(root, correct)

    return bound(below), bound(above)


def hmi(
    answers: Iterable[HumanAnswer],
    correct: HumanAnswer,
    alternatives: Iterable[float] = (),
    *,
    unit: str = "",
    asked_upward: bool = False,
) -> float:
    """Measure human misleadingness: the share of people without an acceptable answer.

    Answers that are ``None`` or cannot be read are not acceptable. A correct number accepts its
    ``acceptable_interval``, given the other strategies' ``alternatives`` on either chart of the
    pair. A correct text and, for a ranking, a sequence of texts in order must be met exactly, apart
    from case and punctuation. An order may also be answered in a text, such as ``B > A > C``;
    ``asked_upward`` says that the question asks for the smallest first.

    Numbers are read in ``unit``, such as ``million bags``: ``1,200,000`` and ``1.2 million`` are
    1.2, and feet become yards. Raise ``CustosError`` if there are no answers, or as
    ``acceptable_interval``.
    """
    given, others = list(answers), list(alternatives)
    if not given:
        raise CustosError("no human answers: an HMI needs at least one")
    if isinstance(correct, int | float):
        low, high = acceptable_interval(correct, others)
        known, key_unit = _KnownNumbers((correct, *others)), parse_unit(unit)
        amounts = (_amount(answer, known, key_unit) for answer in given)
        accepted = [amount is not None and low < amount < high for amount in amounts]
    else:
        accepted = [a is not None and _is_met(a, correct, asked_upward) for a in given]
    return (len(given) - sum(accepted)) / len(given)


class _KnownNumbers:
    """Numbers of which the nearest to another is looked for, by powers of ten."""

    def __init__(self, numbers: Sequence[float]) -> None:
        self.powers = {
            is_negative: sorted(
                math.log10(abs(each)) for each in numbers if each and (each < 0) == is_negative
            )
            for is_negative in (False, True)
        }

    def distance(self, number: float) -> float:
        """Measure how many powers of ten a number is from the nearest known one of its sign."""
        if not number:
            return math.inf
        power, known = math.log10(abs(number)), self.powers[number < 0]
        place = bisect(known, power)
        return min(
            (abs(power - each) for each in known[max(0, place - 1) : place + 1]), default=math.inf
        )


def _amount(answer: HumanAnswer, known: _KnownNumbers, unit: KeyUnit) -> float | None:
    """Convert an answer to the key's magnitude and unit; ``None`` if there is no number to read.

    ``known`` are the correct answer and the other strategies' answers. Where only the key has a
    magnitude, the answer may be in it or in full; where only the answer has one, the key may have
    left it out. Of the two readings the one nearer to a known answer counts. A bare number against
    a bare key is what it is. A key without a unit takes numbers with any.
    """
    quantity = Quantity(float(answer)) if isinstance(answer, int | float) else None
    if isinstance(answer, str):
        # "1.2M" is in millions unless the key is a length, which has metres.
        is_length = unit.unit is not None and unit.unit.dimension == "length"
        quantity = final_quantity(answer if is_length else _MILLIONS.sub(" million", answer))
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
        readings += [without] if known.distance(without) < _SAME_NUMBER else []
    return min(readings, key=known.distance)


def _is_met(answer: HumanAnswer, correct: HumanAnswer, asked_upward: bool) -> bool:
    """Tell whether a choice or an order is the right one."""
    if isinstance(answer, str) and isinstance(correct, Sequence) and not isinstance(correct, str):
        order = ranking_of(answer, correct, asked_upward=asked_upward)
        return order == tuple(range(len(correct)))
    return _plain(answer) == _plain(correct)


def _plain(answer: HumanAnswer) -> tuple[str, ...]:
    parts = [answer] if isinstance(answer, str | int | float) else list(answer or ())
    return tuple(simplified(str(part)) for part in parts)


PICTURE = "hmi.png"


def measure_hmi(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Measure the HMI of every chart that has one, from the smallest to the largest.

    Items are as ``Chartom.load`` returns them, with ``hmi`` computed from people's answers. Raise
    ``CustosError`` if no item has an HMI.

    Each chart has ``id, pair, kind, manipulation``; ``hmi`` with ``value``, ``low``, ``high`` and
    ``n`` (people are independent: Wilson's interval; none for a published HMI, whose answers are
    not known); ``acceptable``, the bounds of right numbers, ``None`` where nothing bounds them; and
    ``answers``, how many people gave which.
    """
    items = parse_rows(rows, ChartomItem)
    alternatives = pair_alternatives(items)
    charts = [_chart(item, alternatives[item.pair]) for item in items if item.hmi is not None]
    if not charts:
        raise CustosError("no item has 'human_answers' or 'hmi'")
    return sorted(charts, key=lambda chart: (chart["hmi"]["value"], chart["id"]))


def _chart(item: ChartomItem, alternatives: Sequence[float]) -> dict[str, Any]:
    num_people = len(item.human_answers)
    hmi: dict[str, Any] = {"value": item.hmi, "low": None, "high": None, "n": num_people}
    if num_people and item.hmi is not None:
        interval = wilson_interval(round(item.hmi * num_people), num_people)
        hmi |= {"low": interval.low, "high": interval.high}
    acceptable = None
    # The answer to a choice may be a number too: that of the option.
    if item.question_type == "number" and isinstance(item.answer, float):
        bounds = acceptable_interval(item.answer, alternatives)
        acceptable = [None if math.isinf(bound) else bound for bound in bounds]
    chart: dict[str, Any] = without_nan(
        {
            "id": item.id,
            "pair": item.pair,
            "kind": item.kind,
            "manipulation": item.manipulation,
            "hmi": hmi,
            "acceptable": acceptable,
            "answers": dict(Counter(map(_answer_text, item.human_answers)).most_common()),
        }
    )
    return chart


def _answer_text(answer: HumanAnswer) -> str:
    if answer is None:
        return "(none)"
    return _as_text(answer) if isinstance(answer, float | str) else " > ".join(answer)


def write_hmi_report(charts: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write ``hmi.json``, ``hmi.md`` and the sorted picture to a folder, made if it is missing."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "hmi.json", list(charts))
    draw_sorted(charts, out / PICTURE)
    write_text(out / "hmi.md", _markdown(charts))


def draw_sorted(charts: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the HMI of all charts in order, originals and manipulated ones in two colours."""
    with figure_file(path, max(6.0, 0.14 * len(charts)), 4) as figure:
        axes = figure.subplots()
        for name, colour in (("original", BLUE), ("manipulated", ORANGE)):
            bars = {
                position: chart["hmi"]["value"]
                for position, chart in enumerate(charts)
                if bool(chart["manipulation"]) == (name == "manipulated")
            }
            axes.bar(list(bars), list(bars.values()), color=colour, label=name)
        axes.set_ylim(0, 1)
        axes.set_xticks([])
        axes.set_xlabel(f"{len(charts)} charts, sorted")
        axes.set_ylabel("HMI")
        finish_axes(axes)


def pair_rows(charts: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Lay out Table 1: pair, kind, HMI of the original, manipulation, HMI of the manipulated chart.

    Pairs are in the order of their manipulated chart's HMI, the most misleading first.
    """
    versions: dict[str, dict[bool, Mapping[str, Any]]] = {}
    for chart in charts:
        versions.setdefault(chart["pair"], {})[bool(chart["manipulation"])] = chart

    def height(pair: str) -> float:
        chart = versions[pair].get(True)
        return -1.0 if chart is None else float(chart["hmi"]["value"])

    rows: list[tuple[str, ...]] = []
    for pair in sorted(versions, key=lambda name: (-height(name), name)):
        original, manipulated = versions[pair].get(False), versions[pair].get(True)
        kind = (manipulated or original or {})["kind"]
        planted = "-" if manipulated is None else str(manipulated["manipulation"])
        hmis = [with_interval(chart and chart["hmi"]) for chart in (original, manipulated)]
        rows.append((pair, str(kind), hmis[0], planted, hmis[1]))
    return rows


HEADINGS = ("pair", "kind", "original HMI", "manipulation", "manipulated HMI")


def _markdown(charts: Sequence[Mapping[str, Any]]) -> str:
    people = [
        (
            chart["id"],
            "-" if chart["acceptable"] is None else _bounds(chart["acceptable"]),
            ", ".join(f"{answer} ({count})" for answer, count in chart["answers"].items()),
        )
        for chart in sorted(charts, key=lambda chart: str(chart["id"]))
        if chart["answers"]
    ]
    parts = [
        "# Human misleadingness index",
        "The share of people whose answer to a chart's FACT question is not acceptable, with 95 % "
        "intervals where people's answers are known (Wilson's; people answer independently).",
        markdown_table(HEADINGS, pair_rows(charts)),
        f"![HMI of all charts, sorted]({PICTURE})",
    ]
    if people:
        parts.append(markdown_table(("chart", "acceptable", "answers (people)"), people))
    return "\n\n".join(parts) + "\n"


def _bounds(acceptable: Sequence[float | None]) -> str:
    low, high = acceptable
    return (
        f"{number(low) if low is not None else '-∞'} to {number(high) if high is not None else '∞'}"
    )
