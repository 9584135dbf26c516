"""CHARTOM's items: one chart with its FACT and MIND questions, responses and grades.

The 112 charts are not public. An item's fields are ``id`` (the pair's name and ``_1`` or, for the
manipulated version, ``_2``), ``kind``, ``question``, ``question_type`` (choice, ranking, number),
``choices``, ``answer``, ``unit``, ``manipulation``, ``image``, and ``hmi`` or the raw
``human_answers`` with ``alternatives``. ``custos prep chartom`` makes such items. A response adds
``fact_response`` and ``mind_response``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from benchmarks.chartom.misleadingness import HumanAnswer, hmi
from judging.errors import FieldError
from judging.rules.fact_rules import choice_of, number_is_right
from judging.rules.quantities import parse_fraction
from judging.rules.rankings import ranking_of, runs_upward
from judging.types import JudgeRequest

_NUMERIC_KEY = re.compile(r"([-+]?[\d.]+(?:e[-+]?\d+)?)\s*(.*)", re.IGNORECASE)
_VERSION = re.compile(r"(?<=.)_[12]\Z")
"""End of an id: the original or the manipulated version of a pair."""
HIGH_HMI = 0.5
"""From this HMI on a manipulated chart counts as misleading, and its justification is judged. The
paper writes "high" and gives no number: half of the readers is our choice."""


class ChartomItem(BaseModel):
    """One chart with its questions, and the responses and grades that it has."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    kind: Literal["line", "bar", "pie", "scatter", "map"]
    question: str
    question_type: Literal["choice", "ranking", "number"]
    choices: tuple[str, ...] = ()
    answer: float | str | tuple[str, ...]
    """For a ranking the items in order; for a choice the option's text, number from 1 or letter."""
    unit: str = ""
    manipulation: str = ""
    """Name of the planted manipulation; empty on original charts."""
    hmi: float | None = None
    alternatives: tuple[float, ...] = ()
    human_answers: tuple[float | str | tuple[str, ...] | None, ...] = ()
    fact_response: str | None = None
    mind_response: str | None = None
    cut_off: tuple[str, ...] = ()
    """Responses that ended at the token limit."""
    fact_correct: bool | None = None
    mind_prediction: float | None = None
    justification_named: bool | None = None

    @classmethod
    def of_request(cls, request: JudgeRequest) -> ChartomItem:
        """Return the item of a request of task ``chartom-fact``, to read its answer by rule.

        Raises:
            FieldError: If a numeric key does not begin with a number.
        """
        answer: float | str | tuple[str, ...] = request.references
        unit = ""
        if request.variant == "choice":
            answer = request.references[0]
        elif request.variant == "number":
            key = _NUMERIC_KEY.fullmatch(request.references[0].strip())
            if key is None:
                raise FieldError("references", f"'{request.references[0]}' is not a number")
            answer, unit = float(key[1]), key[2]
        return cls(
            id=request.id,
            kind="bar",
            question=request.question,
            question_type=request.variant,
            choices=request.choices,
            answer=answer,
            unit=unit,
            fact_response=request.response,
        )

    @property
    def pair(self) -> str:
        """Return the name that both versions share: ``G7_Q1`` of ``G7_Q1_2``.

        A chart whose id does not end in ``_1`` or ``_2`` is a pair of its own.
        """
        return _VERSION.sub("", self.id)

    @property
    def key(self) -> tuple[str, ...]:
        """Return the answer key as the judge sees it."""
        if isinstance(self.answer, tuple):
            return self.answer
        if self.question_type == "number":
            return (f"{self.answer:g} {self.unit}".strip(),)
        return (self.choices[self._right_choice()],)

    @property
    def needs_justification(self) -> bool:
        """Return whether the reasons are compared with the planted manipulation."""
        is_misleading = self.hmi is not None and self.hmi >= HIGH_HMI
        return bool(self.manipulation) and is_misleading and self.mind_response is not None

    @property
    def mind_error(self) -> float | None:
        """Return the squared distance of the prediction from the HMI; ``None`` without either."""
        predicted = self.mind_prediction
        if predicted is None and self.mind_response is not None:
            predicted = parse_fraction(self.mind_response)[0]
        return None if predicted is None or self.hmi is None else (predicted - self.hmi) ** 2

    def read_fact(self) -> bool | None:
        """Return whether the FACT answer is right by rule; ``None`` if it must be judged."""
        response = self.fact_response or ""
        if "fact_response" in self.cut_off:
            return None
        if not response.strip():
            return False
        if self.question_type == "number":
            return number_is_right(response, self._numeric_key(), self.unit)
        if self.question_type == "choice":
            right, chosen = self._right_choice(), choice_of(response, self.choices)
            return None if chosen is None else chosen == right
        return self._read_ranking(response)

    def _read_ranking(self, response: str) -> bool | None:
        """Return whether the order is right, where it is clear in the question's direction."""
        asked_upward = self._asked_upward()
        directions = (False, True) if asked_upward is None else (asked_upward,)
        orders = {ranking_of(response, self.key, asked_upward=each) for each in directions}
        if len(orders) != 1 or None in orders:
            return None
        return orders == {tuple(range(len(self.key)))}

    def _asked_upward(self) -> bool | None:
        """Return whether the question asks for the smallest first; ``None`` if it does not say."""
        try:
            return runs_upward(self.question)
        except ValueError:
            return None

    def measured_hmi(self, alternatives: Sequence[float]) -> float:
        """Return the HMI of the human answers, read as the question is answered.

        A ranking is asked for with the largest first unless the question says otherwise.

        Args:
            alternatives: Alternatives of both charts of the pair.
        """
        if self.question_type == "choice":
            chosen = [self._choice(answer) for answer in self.human_answers]
            return hmi(chosen, str(self._right_choice()))
        if self.question_type == "number":
            return hmi(self.human_answers, self._numeric_key(), alternatives, unit=self.unit)
        return hmi(self.human_answers, self.answer, asked_upward=bool(self._asked_upward()))

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


def _as_text(answer: HumanAnswer) -> str:
    return f"{answer:g}" if isinstance(answer, float) else str(answer)
