"""SimpleVQA: short factual questions on pictures, in Chinese and English."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, field_validator

from benchmarks.framework.answer_options import extract_confidence
from benchmarks.framework.base import Benchmark, ItemScore, PaperRow, benchmark
from benchmarks.framework.files import Row, parse_rows
from benchmarks.framework.tables import Ratio, coverage, intervals, store_verdicts, values
from benchmarks.simplevqa.complex_facts import (
    ATOMIC,
    ATOMIC_GIVEN,
    FORMS,
    ORIGIN,
    measure_complex_facts,
)
from benchmarks.simplevqa.published import DOMAINS, PUBLISHED, TASKS
from benchmarks.simplevqa.stated_confidence import measure_stated_confidence
from judging.errors import CustosError
from judging.tasks.simplevqa import CHINESE, CONCLUSIONS, CORRECT, parse_conclusion
from judging.types import JudgeRequest, Verdict, parse_record

METRICS = {
    "CO": Ratio((1, 0, 0), (1, 1, 1)),
    "IN": Ratio((0, 1, 0), (1, 1, 1)),
    "NA": Ratio((0, 0, 1), (1, 1, 1)),
    "CGA": Ratio((1, 0, 0), (1, 1, 0)),
    # The harmonic mean of c / n and c / (c + i), in one fraction: 0, not undefined, for c = 0.
    "F": Ratio((2, 0, 0), (2, 2, 1), is_rate=False),
}
"""Over columns correct, incorrect, not attempted (paper section 3.3)."""

_LANGUAGES = {
    "en": "english",
    "english": "english",
    "cn": "chinese",
    "zh": "chinese",
    "chinese": "chinese",
    "中文": "chinese",
    "英文": "english",
}

_CONFIDENCE = {
    "english": "Answer briefly. After the answer, state in square brackets how sure you are, from "
    "0 to 1. Example: [0.85]",
    "chinese": "请简短作答，并在答案后用方括号写出你的把握，取0到1之间的数，例如：[0.85]",
}
_HINT = {"english": "Known: {question} {fact}", "chinese": "已知：{question}{fact}"}

RESPONSES = {ORIGIN: "response", ATOMIC: "atomic_response", ATOMIC_GIVEN: "atomic_given_response"}
"""Form of a question to the field its response is in."""
_VERDICT_NAMES = {form: "simplevqa" if form == ORIGIN else f"simplevqa {form}" for form in FORMS}


class SimpleVQAItem(BaseModel):
    """An item with a response or, graded, with a conclusion per model. Official names."""

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
    atomic_question: str = ""
    """Asks for the subject alone: who or what is in the picture."""
    atomic_fact: str = ""
    """Its answer."""
    response: str | None = None
    atomic_response: str | None = None
    atomic_given_response: str | None = None
    model: str = "response"
    """Whose response it is."""
    judge_res: dict[str, str | None] = Field(default_factory=dict)
    """Model to what the judge said; ``A``, ``Correct``, ``正确``."""
    cfq: dict[str, str | None] = Field(default_factory=dict)
    """The same for the forms ``Atomic`` and ``Atomic-Given``."""

    @field_validator("judge_res", "cfq", mode="before")
    @classmethod
    def _unwrap_conclusions(cls, said: Any) -> Any:
        if not isinstance(said, dict):
            return said
        return {
            model: value.get("conclusion") if isinstance(value, dict) else value
            for model, value in said.items()
        }

    @property
    def is_complex(self) -> bool:
        """Whether it asks more than what its subject is."""
        asked, atomic = self.question.split(), self.atomic_question.split()
        return bool(atomic) and bool(self.atomic_fact.strip()) and asked != atomic

    @property
    def answered(self) -> dict[str, str]:
        """Form of the question to its response, for those there are."""
        said = {form: getattr(self, field) for form, field in RESPONSES.items()}
        return {form: response for form, response in said.items() if response is not None}

    def conclusion(self, form: str, model: str) -> str | None:
        """What was concluded on a form; ``None`` if nothing that can be read."""
        said = self.judge_res.get(model) if form == ORIGIN else self.cfq.get(form)
        return parse_conclusion(said or "")

    @property
    def variant(self) -> str:
        """Variant of the task: the language to judge in."""
        language = _LANGUAGES.get((self.language or "").strip().casefold())
        if language is None:
            raise CustosError(
                f"item '{self.id}': field 'language': '{self.language}' is not one of "
                f"{', '.join(_LANGUAGES)}"
            )
        return language


@benchmark
class SimpleVQA(Benchmark):
    """SimpleVQA (2,025 items): correct, incorrect and not attempted, by language, task, domain."""

    name = "simplevqa"
    summary = "short factual visual questions, Chinese and English"
    tasks = ("simplevqa",)
    grade_fields = ("judge_res", "cfq")
    headline = "CO"
    item_id = "data_id"
    image_field = "image"
    styles = ("standard", "confidence", "cfq")
    facets = {"vqa_category.task_category": TASKS, "language": ()}
    published = PUBLISHED

    def load(self, source: str, images: Path | None = None) -> list[Row]:
        """As for every benchmark, categories decoded."""
        return [_decode_category(row) for row in super().load(source, images)]

    def prompts(self, row: Row, style: str) -> dict[str, str]:
        """The bare question; with a request to state confidence; or in CFQ's three forms.

        In style ``cfq``, items that ask for no more than their subject are asked as they are.
        """
        item = _parse(row)
        if style == "confidence":
            return {"response": f"{item.question}\n{_CONFIDENCE[item.variant]}"}
        if style == "standard" or not item.is_complex:
            return {"response": item.question}
        hint = _HINT[item.variant].format(question=item.atomic_question, fact=item.atomic_fact)
        return {
            RESPONSES[ORIGIN]: item.question,
            RESPONSES[ATOMIC]: item.atomic_question,
            RESPONSES[ATOMIC_GIVEN]: f"{hint}\n{item.question}",
        }

    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """One per response, in the item's language; the judge sees no picture, as in the paper."""
        item = _parse(row)
        if not item.answered:
            raise CustosError(f"item '{item.id}': field 'response': Field required")
        return tuple(_request(item, form, response) for form, response in item.answered.items())

    def graded(self, row: Row, verdicts: Sequence[Verdict]) -> Row:
        """Adds ``judge_res`` with the Chinese words the official script counts, and ``cfq``."""
        item = _parse(row)
        said = dict(zip(item.answered, verdicts, strict=True))
        concluded = {
            form: {"conclusion": None if verdict.label is None else CHINESE[verdict.label]}
            for form, verdict in said.items()
        }
        graded = dict(row)
        if ORIGIN in concluded:
            origin = concluded.pop(ORIGIN)
            graded["judge_res"] = {**row.get("judge_res", {}), item.model: origin}
        if concluded:
            graded["cfq"] = concluded
        kept = {_VERDICT_NAMES[form]: verdict for form, verdict in said.items()}
        return {**graded, **store_verdicts(kept)}

    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """``overall``, ``by_language``, ``by_task``, ``by_domain``: CO, IN, NA, CGA, F as shares.

        Conclusions that cannot be read count in ``coverage`` alone. Where responses state how sure
        they are, also ``calibration``; where atomic questions were asked, also ``cfq``: accuracy by
        form and what failures come from. A file that holds several models gives one such table per
        model, under ``models``, without these two.
        """
        items = parse_rows(map(_decode_category, rows), SimpleVQAItem)
        models = list(dict.fromkeys(model for item in items for model in item.judge_res))
        if not models:
            raise CustosError("no item has a 'judge_res'")
        if len(models) == 1:
            return _table_of(models[0], items, rows, _measure_responses(models[0], items))
        return {"models": {model: _table_of(model, items, rows, {}) for model in models}}

    def paper_rows(self, table: Mapping[str, Any]) -> dict[str, dict[str, PaperRow]]:
        """Rows of the three tables of models that saw the pictures; of several models, each."""
        by_model: dict[str, Mapping[str, Any]] = table.get("models", {table.get("model"): table})
        rows: dict[str, dict[str, PaperRow]] = {}
        for model, own in by_model.items():
            for published, row in zip(self.published, _paper_rows(own), strict=False):
                if row:
                    rows.setdefault(published.source, {})[model] = row
        return rows

    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """1 for a correct response, else 0.

        Raises:
            CustosError: If the file holds several models.
        """
        items = parse_rows(map(_decode_category, rows), SimpleVQAItem)
        models = {model for item in items for model in item.judge_res}
        if len(models) > 1:
            raise CustosError(f"several models in one file: {', '.join(sorted(models))}")
        concluded = [item.conclusion(ORIGIN, next(iter(models), "")) for item in items]
        return [
            ItemScore(item.id, item.question, None if said is None else float(said == CORRECT))
            for item, said in zip(items, concluded, strict=True)
        ]


def _parse(row: Row) -> SimpleVQAItem:
    decoded = _decode_category(row)
    return parse_record(SimpleVQAItem, decoded, f"item '{row.get('data_id', row.get('id', ''))}'")


def _decode_category(row: Row) -> Row:
    """The hub's Parquet keeps the categories as text, as Python or JSON writes a dict."""
    category = row.get("vqa_category")
    if not isinstance(category, str):
        return row
    try:
        return {**row, "vqa_category": ast.literal_eval(category)}
    except (SyntaxError, ValueError):
        raise CustosError(f"field 'vqa_category': cannot be read: {category!r:.80}") from None


def _request(item: SimpleVQAItem, form: str, response: str) -> JudgeRequest:
    is_atomic = form == ATOMIC
    answer = item.atomic_fact if is_atomic else item.answer
    return parse_record(
        JudgeRequest,
        {
            "id": item.id if form == ORIGIN else f"{item.id}/{form}",
            "task": "simplevqa",
            "variant": item.variant,
            "question": item.atomic_question if is_atomic else item.question,
            "references": (answer,) if answer else (),
            "responses": (response,),
            "metadata": {"language": item.language, "task": item.task, "domain": item.domain},
        },
        f"item '{item.id}'",
    )


def _table_of(
    model: str, items: Sequence[SimpleVQAItem], rows: Sequence[Row], more: Mapping[str, Any]
) -> dict[str, Any]:
    """CO, IN, NA, CGA and F of one model, and ``more`` estimates of its own."""
    concluded = [item.conclusion(ORIGIN, model) for item in items]
    columns = np.array(
        [[said == conclusion for conclusion in CONCLUSIONS] for said in concluded],
        dtype=np.float64,
    )
    measured = intervals(
        columns,
        _clusters(items),
        METRICS,
        {
            "by_language": [item.language for item in items],
            "by_task": [item.task for item in items],
            "by_domain": [item.domain for item in items],
        },
    )
    measured |= more
    covered = coverage(rows, int(columns.sum()), len(items))
    return {"model": model, **values(measured), "intervals": measured, **covered}


def _clusters(items: Sequence[SimpleVQAItem]) -> list[str]:
    return [item.question or str(number) for number, item in enumerate(items)]


def _measure_responses(model: str, items: Sequence[SimpleVQAItem]) -> dict[str, Any]:
    """What only the responses themselves tell: ``calibration`` and ``cfq``, where there is any."""
    right = [_right_by_form(item, model) for item in items]
    confidence = [extract_confidence(item.response or "") for item in items]
    measured = {}
    if any(stated is not None for stated in confidence):
        origin = [by_form[0] for by_form in right]
        measured["calibration"] = measure_stated_confidence(confidence, origin, _clusters(items))
    if any(item.cfq for item in items):
        measured["cfq"] = measure_complex_facts(right, _clusters(items))
    return measured


def _right_by_form(item: SimpleVQAItem, model: str) -> tuple[bool | None, bool | None, bool | None]:
    origin, atomic, given = (
        None if (said := item.conclusion(form, model)) is None else said == CORRECT
        for form in FORMS
    )
    return origin, atomic, given


def _paper_rows(table: Mapping[str, Any]) -> tuple[PaperRow, PaperRow, PaperRow]:
    """One model's rows of Tables 3, 4 and 5, in percent; the last is empty without CFQ."""

    def percent(part: Mapping[str, Any] | None, metric: str) -> float | None:
        value = (part or {}).get(metric)
        return None if value is None else 100 * value

    languages = {
        _LANGUAGES.get(name.strip().casefold()): part for name, part in table["by_language"].items()
    }
    return (
        tuple(percent(table["overall"], name) for name in ("CO", "NA", "IN", "CGA", "F"))
        + tuple(percent(table["by_task"].get(name), "F") for name in TASKS),
        tuple(percent(languages.get(name), "F") for name in ("chinese", "english"))
        + tuple(percent(table["by_domain"].get(name), "F") for name in DOMAINS),
        tuple(percent(table["cfq"], form) for form in FORMS) if "cfq" in table else (),
    )
