"""SimpleVQA's items, with their responses and with the conclusions on them.

Complex fact questions (CFQ, section 4 of the paper) are asked three times: as they are (Origin),
for their subject alone (Atomic), and with the subject given (Atomic-Given).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from typing import Any

from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, field_validator

from benchmarks.framework.files import Row, item_name, parse_row
from judging.errors import FieldError
from judging.files.questions import normalise_question
from judging.rules.answer_options import extract_confidence, without_confidence
from judging.tasks.simplevqa import parse_conclusion

ORIGIN, ATOMIC, ATOMIC_GIVEN = "Origin", "Atomic", "Atomic-Given"
FORMS = (ORIGIN, ATOMIC, ATOMIC_GIVEN)
LANGUAGES = {
    "en": "english",
    "english": "english",
    "cn": "chinese",
    "zh": "chinese",
    "chinese": "chinese",
    "中文": "chinese",
    "英文": "english",
}
"""Spelling in the data to variant of the task."""
RESPONSE_FIELDS = {
    ORIGIN: "response",
    ATOMIC: "atomic_response",
    ATOMIC_GIVEN: "atomic_given_response",
}
"""Form of a question to the field that its response is in."""

_OUR_FIELDS = frozenset(RESPONSE_FIELDS.values())
_OF_OUR_SHAPE = {*_OUR_FIELDS, "confidence", "cfq"}
_ANSWER = "_response"
"""End of the official name of a model's answer."""


class SimpleVQAItem(BaseModel):
    """An item with a response or, graded, with a conclusion per model, under official names."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str = Field("", validation_alias=AliasChoices("data_id", "id"))
    question: str = ""
    answer: str = ""
    language: str | None = None
    task: str | None = Field(
        None,
        validation_alias=AliasChoices(
            "task", "task_category", AliasPath("vqa_category", "task_category")
        ),
    )
    domain: str | None = Field(
        None,
        validation_alias=AliasChoices(
            "domain", "subject_category", AliasPath("vqa_category", "subject_category")
        ),
    )
    original_question: str = ""
    """English wording of the question, written together with the atomic question."""
    atomic_question: str = ""
    """Question for the subject alone, in English or in the item's language: who or what is in the
    picture."""
    atomic_fact: str = ""
    """Answer to the atomic question."""
    response: str | None = None
    confidence: float | None = Field(None, ge=0, le=1)
    """Confidence in [0, 1] that came beside the response, in a field of its own."""
    atomic_response: str | None = None
    atomic_given_response: str | None = None
    model: str = "response"
    """Name of the model that the responses are from."""
    judge_res: dict[str, str | None] = Field(default_factory=dict)
    """Model to the judge's conclusion, such as ``A``, ``Correct`` or ``正确``."""
    cfq: dict[str, str | None] = Field(default_factory=dict)
    """The same for the forms ``Atomic`` and ``Atomic-Given``."""

    @field_validator("judge_res", "cfq", mode="before")
    @classmethod
    def _unwrap_conclusions(cls, conclusions: Any) -> Any:
        if not isinstance(conclusions, dict):
            return conclusions
        return {
            name: value.get("conclusion") if isinstance(value, dict) else value
            for name, value in conclusions.items()
        }

    @property
    def is_complex(self) -> bool:
        """Tell whether it asks more than what its subject is."""
        if not self.atomic_question.strip() or not self.atomic_fact.strip():
            return False
        # Atomic questions are in English: a Chinese question is compared by its translation.
        spellings = {normalise_question(self.question), normalise_question(self.original_question)}
        return normalise_question(self.atomic_question) not in spellings

    @property
    def responses(self) -> dict[str, str]:
        """Map the forms of the question that were asked to the responses.

        A stated confidence is no part of the answer and is left out.
        """
        responses = {form: getattr(self, field) for form, field in RESPONSE_FIELDS.items()}
        return {
            form: without_confidence(response)
            for form, response in responses.items()
            if response is not None
        }

    @property
    def missing(self) -> list[str]:
        """List the fields that grading needs and the item lacks."""
        given = {"question": self.question, "answer": self.answer, "language": self.language}
        missing = [name for name, text in given.items() if not text]
        return missing if self.responses else [*missing, "response"]

    @property
    def stated_confidence(self) -> float | None:
        """Read the confidence in [0, 1] that the model states; ``None`` for none."""
        if self.confidence is not None:
            return self.confidence
        return extract_confidence(self.response or "")

    def conclusion(self, form: str, model: str) -> str | None:
        """Read the conclusion on a form of the question; ``None`` if none can be read."""
        text = self.judge_res.get(model) if form == ORIGIN else self.cfq.get(form)
        return parse_conclusion(text or "")

    @property
    def variant(self) -> str:
        """Name the variant of the task: the language to judge in.

        Raise ``FieldError`` if the language is unknown.
        """
        language = LANGUAGES.get((self.language or "").strip().casefold())
        if language is None:
            fault = f"'{self.language}' is not one of {', '.join(LANGUAGES)}"
            raise FieldError("language", fault, f"item '{self.id}'")
        return language


def language_names(items: Iterable[SimpleVQAItem]) -> list[str | None]:
    """Name the language of each item, as the first item in this language spells it."""
    spelled: dict[str, str] = {}
    names: list[str | None] = []
    for item in items:
        language = (item.language or "").strip().casefold()
        key = LANGUAGES.get(language, language)
        names.append(spelled.setdefault(key, item.language or "") or None)
    return names


def answering_models(row: Row) -> list[str]:
    """Name the models whose answers a row of the official files holds.

    The official scripts name a model after the field of its answer: ``g4o_response``. A row with a
    ``response`` of our own shape has one answer, and none of these. An answer that is null is none.
    """
    if row.get("response") is not None:
        return []
    names = [name for name in row if name.endswith(_ANSWER) and name not in _OUR_FIELDS]
    return [name for name in names if row[name] is not None]


def row_of_model(row: Row, model: str, models: Iterable[str]) -> Row:
    """Cut a row with several models down to what it holds of one of them.

    The row is one of the official files, graded or not; ``models`` are all models in the file.
    """
    kept = {"judge_res": {}, **row}
    for other in models:
        if other != model:
            kept.pop(other, None)
            kept.pop(_score_field(other), None)
    if model != row.get("model", "response"):
        kept = {name: value for name, value in kept.items() if name not in _OF_OUR_SHAPE}
    if isinstance(kept["judge_res"], dict):
        kept["judge_res"] = {key: value for key, value in kept["judge_res"].items() if key == model}
    # Verdicts on the only answer of a row do not name its model.
    names = answering_models(row)
    is_only_one = len(names) < 2 and model == row.get("model", (names or ["response"])[0])
    if isinstance(kept.get("verdicts"), dict) and not is_only_one:
        verdict = kept["verdicts"].get(verdict_name(model))
        kept["verdicts"] = {} if verdict is None else {verdict_name(): verdict}
    return kept


def verdict_name(model: str | None = None) -> str:
    """Name the verdict on a question as it is, in a row of one or several models."""
    return "simplevqa" if model is None else f"simplevqa {model}"


def _score_field(model: str) -> str:
    """Name the official field of a model's stated confidence."""
    return f"{model.removesuffix(_ANSWER)}_confidence_score"


def parse_item(row: Row) -> SimpleVQAItem:
    """Validate an item; raise ``FieldError`` if it does not fit."""
    return parse_row(SimpleVQAItem, decode_row(row), _location(row))


def decode_row(row: Row) -> Row:
    """Decode a row of the official files: its categories and its model's answer.

    The official scripts write ``g4o_response`` and ``g4o_confidence_score`` (0 to 100, -1 for none)
    for a model ``g4o``; the answer is also read from the JSON object that a model is asked for.
    Fields that are null are left out. Raise ``FieldError`` if the categories cannot be read, or the
    row holds the answers of several models.
    """
    decoded = decode_category(row)
    if row.get("response") is None:
        names = answering_models(row)
        if len(names) > 1:
            fault = f"answers of several models: {', '.join(names)}"
            raise FieldError("response", fault, _location(row))
        for name in names:
            confidence = _as_share(row.get(_score_field(name)))
            answer = {"response": row[name], "confidence": confidence}
            decoded = {**decoded, "model": row.get("model", name), **answer}
    decoded = {**decoded, **_json_answer(decoded.get("response"))}
    return {name: value for name, value in decoded.items() if value is not None}


def decode_category(row: Row) -> Row:
    """Turn the categories, which the hub's Parquet files hold as text, into an object.

    Raise ``FieldError`` if the text cannot be read.
    """
    category = row.get("vqa_category")
    if not isinstance(category, str):
        return row
    try:
        return {**row, "vqa_category": ast.literal_eval(category)}
    except (SyntaxError, ValueError):
        fault = f"cannot be read: {category!r:.80}"
        raise FieldError("vqa_category", fault, _location(row)) from None


def _json_answer(response: Any) -> Row:
    """Read the answer and the confidence of a JSON object, in a code fence or bare."""
    try:
        answer = json.loads(re.sub(r"^```\w*|```$", "", response.strip()).strip())
    except (AttributeError, ValueError):
        return {}
    if not isinstance(answer, dict) or "answer" not in answer:
        return {}
    confidence = _as_share(answer.get("confidence_score"))
    return {"response": str(answer["answer"]), "confidence": confidence}


def _as_share(score: Any) -> float | None:
    """Convert a confidence of 0 to 100 to a share; ``None`` for anything else."""
    try:
        number = float(score)
    except (TypeError, ValueError):
        return None
    return number / 100 if 0 <= number <= 100 else None


def _location(row: Row) -> str:
    return item_name(row.get("data_id", row.get("id")))
