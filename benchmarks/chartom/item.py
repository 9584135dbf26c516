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
from judging.rules.fact_rules import choice_of
from judging.rules.quantities import parse_fraction
from judging.tasks import get_task
from judging.tasks.chartom import CORRECT, UNFINISHED, asks_upward
from judging.types import JudgeRequest, parse_record

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
            return (f"{self._numeric_key():.15g} {self.unit}".strip(),)
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

    @property
    def fact_request(self) -> JudgeRequest:
        """Return the request that grades the FACT answer.

        Raises:
            FieldError: If the key does not fit the question.
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

    def read_fact(self) -> bool | None:
        """Return whether the FACT answer is right by rule; ``None`` if it must be judged."""
        ruling = get_task("chartom-fact").rule_if_certain(self.fact_request)
        return None if ruling is None else ruling.label == CORRECT

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


def _as_text(answer: HumanAnswer) -> str:
    return f"{answer:g}" if isinstance(answer, float) else str(answer)
