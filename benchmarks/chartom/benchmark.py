"""CHARTOM: pairs of an honest and a misleading chart, a FACT and a MIND question about each.

The 112 charts are not public. An item is one chart: ``id`` (the pair's name and ``_1`` or, for the
manipulated version, ``_2``), ``kind``, ``question``, ``question_type`` (choice, ranking, number),
``choices``, ``answer``, ``unit``, ``manipulation``, ``image``, and ``hmi`` or the raw
``human_answers`` with ``alternatives``. ``custos prep chartom`` makes such items. A response adds
``fact_response`` and ``mind_response``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from benchmarks.chartom.fact_rules import choice_of, number_is_right, ranking_of, simplified
from benchmarks.chartom.quantities import final_quantity, parse_fraction
from benchmarks.framework.base import Benchmark, ItemScore, Published, benchmark
from benchmarks.framework.files import Row, parse_rows
from benchmarks.framework.tables import Ratio, coverage, intervals, store_verdicts, values
from judging.errors import CustosError
from judging.tasks.chartom_fact import CORRECT
from judging.tasks.chartom_justification import NAMED
from judging.types import JudgeRequest, Verdict, parse_record

HIGH_HMI = 0.5
"""From here on a manipulated chart counts as misleading and its justification is judged. The paper
says "high" and gives no number: half of the readers is ours."""

_MIND = """\
University students will be shown this chart and asked:

{fact}

What share of them, do you expect, will be led to a wrong answer by the chart? Begin with your \
estimate as a decimal number from 0 to 1, then give your reasons."""

Answer = str | float | Sequence[str] | None


class Acceptable(NamedTuple):
    """Open interval of acceptable human answers; infinite where no alternative bounds it."""

    low: float
    high: float


def acceptable_interval(correct: float, alternatives: Iterable[float]) -> Acceptable:
    """Interval ``(L, U)`` of human answers that count as correct (CHARTOM section 2.2.2).

    Each bound is the geometric mean of the correct answer and the nearest other strategy's answer
    on that side. Dogs: 1.2 with alternatives 6 and 300 gives ``(-inf, 2.68)``.

    Args:
        correct: What the correct strategy answers.
        alternatives: What the other strategies answer, on either chart of the pair.

    Raises:
        CustosError: If a bounding alternative has not the same sign as the correct answer: there
            is no geometric mean.
    """
    others = list(alternatives)
    above = min((a for a in others if a > correct), default=math.inf)
    below = max((a for a in others if a < correct), default=-math.inf)
    return Acceptable(_bound(correct, below), _bound(correct, above))


def _bound(correct: float, alternative: float) -> float:
    if math.isinf(alternative):
        return alternative
    if correct * alternative <= 0:
        raise CustosError(
            f"no geometric mean of {correct} and {alternative}: both must have the same sign"
        )
    return math.copysign(math.sqrt(correct * alternative), correct)


def hmi(answers: Iterable[Answer], correct: Answer, alternatives: Iterable[float] = ()) -> float:
    """Human misleadingness index: the share of people without an acceptable answer.

    Args:
        answers: What people answered; ``None`` or nothing readable is not acceptable.
        correct: Correct answer. A number accepts its ``acceptable_interval``; a text, and for
            ranking a sequence of texts in order, must be met exactly, apart from case and
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


def _number(answer: Answer) -> float | None:
    if isinstance(answer, str):
        said = final_quantity(answer)
        return said.number if said else None
    return float(answer) if isinstance(answer, int | float) else None


def _plain(answer: Answer) -> tuple[str, ...]:
    listed = [answer] if isinstance(answer, str | int | float) else list(answer or ())
    return tuple(simplified(str(part)) for part in listed)


def _told(answer: Answer) -> str:
    return f"{answer:g}" if isinstance(answer, float) else str(answer)


class ChartomItem(BaseModel):
    """One chart with its questions, and the responses and grades there are."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    kind: Literal["line", "bar", "pie", "scatter", "map"]
    question: str
    question_type: Literal["choice", "ranking", "number"]
    choices: tuple[str, ...] = ()
    answer: float | str | tuple[str, ...]
    """Ranking: the items in order. Choice: the option's text, number from 1 or letter."""
    unit: str = ""
    manipulation: str = ""
    """What was planted; empty on original charts."""
    hmi: float | None = None
    alternatives: tuple[float, ...] = ()
    human_answers: tuple[float | str | tuple[str, ...] | None, ...] = ()
    fact_response: str | None = None
    mind_response: str | None = None
    fact_correct: bool | None = None
    mind_prediction: float | None = None
    justification_named: bool | None = None

    @property
    def pair(self) -> str:
        """What both versions share: ``G7_Q1`` of ``G7_Q1_2``."""
        return self.id.rpartition("_")[0] or self.id

    @property
    def key(self) -> tuple[str, ...]:
        """The answer key as the judge sees it."""
        if isinstance(self.answer, tuple):
            return self.answer
        if self.question_type == "number":
            return (f"{self.answer:g} {self.unit}".strip(),)
        return (self.choices[self._right_choice()],)

    @property
    def needs_justification(self) -> bool:
        """Whether the reasons are compared with the planted manipulation."""
        is_misleading = self.hmi is not None and self.hmi >= HIGH_HMI
        return bool(self.manipulation) and is_misleading and self.mind_response is not None

    def read_fact(self) -> bool | None:
        """Whether the FACT answer is right, by rule; ``None`` if it must be judged."""
        said = self.fact_response or ""
        if not said.strip():
            return False
        if self.question_type == "number":
            return number_is_right(said, self._numeric_key(), self.unit)
        if self.question_type == "choice":
            right, chosen = self._right_choice(), choice_of(said, self.choices)
            return None if chosen is None else chosen == right
        order = ranking_of(said, self.key)
        return None if order is None else order == tuple(range(len(self.key)))

    def measured_hmi(self, alternatives: Sequence[float]) -> float:
        """:func:`hmi` of the human answers, read as the question is answered.

        Args:
            alternatives: Of both charts of the pair.
        """
        if self.question_type == "choice":
            chosen = [self._choice(answer) for answer in self.human_answers]
            return hmi(chosen, str(self._right_choice()))
        if self.question_type == "number":
            return hmi(self.human_answers, self._numeric_key(), alternatives)
        return hmi(self.human_answers, self.answer)

    def _choice(self, answer: Answer) -> str | None:
        chosen = None if answer is None else choice_of(_told(answer), self.choices)
        return None if chosen is None else str(chosen)

    def _numeric_key(self) -> float:
        if isinstance(self.answer, float):
            return self.answer
        raise CustosError(f"item '{self.id}': field 'answer': {self.answer!r} is not a number")

    def _right_choice(self) -> int:
        right = choice_of(_told(self.answer), self.choices)
        if right is None:
            raise CustosError(
                f"item '{self.id}': field 'answer': {self.answer!r} is none of the choices"
            )
        return right


METRICS = {
    "fact_accuracy": Ratio((1, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0)),
    "mind_mse": Ratio((0, 0, 1, 0, 0, 0), (0, 0, 0, 1, 0, 0), is_rate=False),
    "justification": Ratio((0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 0, 1)),
}


@benchmark
class Chartom(Benchmark):
    """CHARTOM (56 pairs): FACT accuracy, MIND squared error, justifications (section 2.3)."""

    name = "chartom"
    summary = "misleading charts: what they say, and how many people they mislead"
    tasks = ("chartom-fact", "chartom-justification")
    grade_fields = ("fact_correct", "mind_prediction", "justification_named")
    headline = "FACT accuracy"
    image_field = "image"
    facets = {"kind": (), "question_type": (), "manipulation": ()}
    published = (
        Published(
            "Table 1",
            ("kind", "original HMI", "manipulation", "manipulated HMI"),
            {
                "G4_Q1": ("line", 0.03, "inconsistent x-axis", 0.97),
                "G3_Q1": ("line", 0.03, "inverted y-axis", 0.81),
                "G9_Q1": ("line", 0.06, "dual axes", 0.74),
                "G1_Q1": ("line", 0.14, "truncated y-axis", 0.40),
                "G2_Q1": ("line", 0.07, "compressed y-axis", 0.04),
                "G12_Q1": ("bar", 0.28, "3D effect", 0.96),
                "G7_Q1": ("bar", 0.18, "truncated y-axis", 0.29),
                "G8_Q1": ("bar", 0.09, "compressed y-axis", 0.06),
                "G10_Q1": ("bar", 0.02, "pictorial bars", 0.06),
                "G6_Q1": ("scatter", 0.03, "swapped axis", 0.71),
                "G5_Q1": ("scatter", 0.02, "logarithmic y-axis", 0.63),
                "G15_Q1": ("map", 0.01, "inverted color scale", 0.10),
                "G13_Q1": ("pie", 0.26, "3D effect", 0.90),
                "G14_Q1": ("pie", 0.66, "3D effect + pop out", 0.99),
            },
        ),
    )

    def load(self, source: str, images: Path | None = None) -> list[Row]:
        """As for every benchmark; HMI is computed wherever people's raw answers are given."""
        rows = super().load(source, images)
        items = parse_rows(rows, ChartomItem)
        alternatives: dict[str, list[float]] = {}
        for item in items:
            alternatives.setdefault(item.pair, []).extend(item.alternatives)
        return [
            {**row, "hmi": item.measured_hmi(alternatives[item.pair])}
            if item.human_answers
            else row
            for row, item in zip(rows, items, strict=True)
        ]

    def prompts(self, row: Row, style: str) -> dict[str, str]:
        """FACT with its numbered options; MIND with the same inside, the number asked for first."""
        item = _parse(row)
        options = "  ".join(f"{number}. {text}" for number, text in enumerate(item.choices, 1))
        fact = "\n".join(part for part in (item.question, options) if part)
        return {"fact_response": fact, "mind_response": _MIND.format(fact=fact)}

    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """FACT where rules cannot read the answer, then the justification where it is due."""
        item = _parse(row)
        if item.fact_response is None and item.mind_response is None:
            raise CustosError(f"item '{item.id}': field 'fact_response': Field required")
        asked: list[dict[str, Any]] = []
        if item.fact_response is not None and item.read_fact() is None:
            asked.append(
                {
                    "id": item.id,
                    "task": "chartom-fact",
                    "variant": item.question_type,
                    "question": item.question,
                    "choices": item.choices,
                    "references": item.key,
                    "responses": (item.fact_response,),
                }
            )
        if item.needs_justification:
            asked.append(
                {
                    "id": item.id,
                    "task": "chartom-justification",
                    "question": item.question,
                    "references": (item.manipulation,),
                    "responses": (parse_fraction(item.mind_response or "")[1],),
                }
            )
        return tuple(parse_record(JudgeRequest, one, f"item '{item.id}'") for one in asked)

    def graded(self, row: Row, verdicts: Sequence[Verdict]) -> Row:
        """Adds ``fact_correct``, ``mind_prediction`` and ``justification_named``; null if open."""
        item = _parse(row)
        asked = [request.task for request in self.requests(row)]
        said = dict(zip(asked, verdicts, strict=True))
        grades: Row = {}
        if item.fact_response is not None:
            by_rule = item.read_fact()
            judged = _is(said.get("chartom-fact"), CORRECT)
            grades["fact_correct"] = judged if by_rule is None else by_rule
        if item.mind_response is not None:
            grades["mind_prediction"] = parse_fraction(item.mind_response)[0]
        if item.needs_justification:
            grades["justification_named"] = _is(said.get("chartom-justification"), NAMED)
        return {**row, **grades, **store_verdicts(said)}

    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """``overall`` and the parts: FACT accuracy, MIND mean squared error, justifications.

        Parts: ``by_question_type``, ``by_version``, ``by_kind``, ``by_manipulation`` (manipulated
        charts alone). Pairs are clusters.
        """
        items = parse_rows(rows, ChartomItem)
        columns = np.array([_columns(item) for item in items]).reshape(-1, 6)
        asked = sum(
            (item.fact_response is not None)
            + (item.mind_response is not None and item.hmi is not None)
            + item.needs_justification
            for item in items
        )
        scored = int(columns[:, 1::2].sum())
        if not scored:
            raise CustosError("no item is graded")
        measured = intervals(
            columns,
            [item.pair for item in items],
            METRICS,
            {
                "by_question_type": [item.question_type for item in items],
                "by_version": ["manipulated" if i.manipulation else "original" for i in items],
                "by_kind": [item.kind for item in items],
                "by_manipulation": [item.manipulation or None for item in items],
            },
        )
        return {**values(measured), "intervals": measured, **coverage(rows, scored, asked)}

    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """1 for a right FACT answer, else 0."""
        return [
            ItemScore(i.id, i.pair, None if i.fact_correct is None else float(i.fact_correct))
            for i in parse_rows(rows, ChartomItem)
        ]


def _parse(row: Row) -> ChartomItem:
    return parse_record(ChartomItem, row, f"item '{row.get('id', '')}'")


def _is(verdict: Verdict | None, label: str) -> bool | None:
    return None if verdict is None or verdict.label is None else verdict.label == label


def _columns(item: ChartomItem) -> tuple[float, ...]:
    """Value and presence of the FACT grade, the squared MIND error and the justification."""
    fact, named = item.fact_correct, item.justification_named
    error = None
    if item.hmi is not None and item.mind_prediction is not None:
        error = (item.mind_prediction - item.hmi) ** 2
    return tuple(
        number
        for value in (fact, error, named)
        for number in (float(value or 0), float(value is not None))
    )
