"""SimpleVQA: short factual questions on pictures, in Chinese and English."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, field_validator

from benchmarks.base import Benchmark, ItemScore, Published, benchmark
from benchmarks.files import Row, parse_rows
from benchmarks.tables import Ratio, coverage, intervals, store_verdicts, values
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

_TASKS = ("LS", "OIR", "TE", "PE", "LB", "TP", "QPR", "AC", "OAR")
_DOMAINS = ("LES", "EHC", "CS", "ETA", "FTM", "NS", "AR", "CHC", "LI")


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
    response: str | None = None
    model: str = "response"
    """Whose response it is."""
    judge_res: dict[str, str | None] = Field(default_factory=dict)
    """Model to what the judge said; ``A``, ``Correct``, ``正确``."""

    @field_validator("judge_res", mode="before")
    @classmethod
    def _unwrap_conclusions(cls, said: Any) -> Any:
        if not isinstance(said, dict):
            return said
        return {
            model: value.get("conclusion") if isinstance(value, dict) else value
            for model, value in said.items()
        }

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
    headline = "CO"
    item_id = "data_id"
    image_field = "image"
    published = (
        Published(
            "Table 3 (%): overall, then F by task",
            ("CO", "NA", "IN", "CGA", "F", *_TASKS),
            {
                "GPT-4o": (
                    *(47.2, 7.8, 45.0, 51.2, 49.1),
                    *(58.7, 53.4, 48.1, 36.4, 44.3, 57.5, 61.8, 35.1, 61.0),
                ),
                "Gemini-2.0-flash": (
                    *(52.8, 6.0, 41.2, 56.1, 54.4),
                    *(63.7, 60.9, 54.3, 55.0, 44.3, 61.5, 65.7, 33.9, 64.4),
                ),
                "Claude-3.5-Sonnet": (
                    *(48.5, 9.8, 41.8, 53.7, 50.9),
                    *(57.1, 53.9, 52.1, 29.7, 47.2, 58.4, 62.7, 46.7, 60.1),
                ),
                "InternVL2.5-78B-MPO": (
                    *(45.4, 5.9, 48.6, 48.3, 46.8),
                    *(57.4, 54.6, 50.3, 26.4, 34.4, 57.0, 65.8, 32.8, 72.3),
                ),
                "Qwen2.5-VL-72B": (
                    *(49.4, 5.4, 45.2, 52.2, 50.8),
                    *(57.7, 50.8, 51.0, 38.6, 51.6, 57.8, 65.8, 29.8, 62.8),
                ),
                "Qwen2.5-VL-7B": (
                    *(43.2, 5.1, 51.7, 45.6, 44.3),
                    *(38.6, 52.7, 37.6, 32.7, 41.0, 52.6, 53.6, 39.2, 56.7),
                ),
            },
        ),
        Published(
            "Table 4 (%): F by language and domain",
            ("chinese", "english", *_DOMAINS),
            {
                "GPT-4o": (50.1, 48.1, 47.0, 37.5, 58.2, 62.0, 50.5, 61.7, 30.3, 29.6, 58.8),
                "Gemini-2.0-flash": (
                    *(56.3, 52.5, 54.1, 35.4, 59.9, 67.5, 70.9, 64.6, 29.2, 36.3, 64.6),
                ),
                "Claude-3.5-Sonnet": (
                    *(49.3, 52.8, 49.1, 42.7, 52.7, 56.5, 48.1, 61.1, 38.7, 34.4, 66.5),
                ),
                "InternVL2.5-78B-MPO": (
                    *(53.1, 40.5, 54.2, 22.5, 60.2, 53.6, 35.5, 56.7, 27.5, 37.9, 63.6),
                ),
                "Qwen2.5-VL-72B": (
                    *(49.2, 52.3, 49.4, 45.2, 64.3, 62.4, 53.6, 58.3, 20.9, 30.3, 61.8),
                ),
                "Qwen2.5-VL-7B": (
                    *(42.9, 45.8, 42.9, 42.8, 54.9, 49.8, 40.4, 46.4, 25.9, 30.3, 56.9),
                ),
            },
        ),
        Published(
            "Table 5 (%): accuracy on the 569 CFQ items",
            ("Origin", "Atomic", "Atomic-Given"),
            {
                "DeepSeek-R1": (None, None, 55.01),
                "GPT-4o": (56.24, 56.94, 61.69),
                "Qwen2.5-VL-72B": (51.67, 59.58, 64.15),
                "InternVL2.5-78B-MPO": (55.36, 55.71, 69.95),
            },
        ),
        Published(
            "Table 6 (%): without the picture",
            ("CO", "IN", "NA", "CGA"),
            {
                "o1-preview": (3.65, 22.12, 74.22, 14.16),
                "DeepSeek-R1": (10.08, 53.60, 36.32, 15.82),
                "GPT-4o": (5.23, 31.60, 63.16, 14.20),
                "Gemini-2.0-flash": (7.06, 61.33, 31.60, 10.32),
            },
        ),
    )

    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """One request in the item's language; the judge sees no picture, as in the paper."""
        item = _parse(row)
        if item.response is None:
            raise CustosError(f"item '{item.id}': field 'response': Field required")
        return (
            JudgeRequest(
                id=item.id,
                task="simplevqa",
                variant=item.variant,
                question=item.question,
                references=(item.answer,) if item.answer else (),
                responses=(item.response,),
                metadata={"language": item.language, "task": item.task, "domain": item.domain},
            ),
        )

    def graded(self, row: Row, verdicts: Sequence[Verdict]) -> Row:
        """Adds ``judge_res`` with the Chinese words the official script counts."""
        [verdict] = verdicts
        said = None if verdict.label is None else CHINESE[verdict.label]
        judged = {**row.get("judge_res", {}), _parse(row).model: {"conclusion": said}}
        return {**row, "judge_res": judged, **store_verdicts({"simplevqa": verdict})}

    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """``overall``, ``by_language``, ``by_task``, ``by_domain``: CO, IN, NA, CGA, F as shares.

        Conclusions that cannot be read count in ``coverage`` alone. A file that holds several
        models gives one such table per model, under ``models``.
        """
        items = parse_rows(map(_decode_category, rows), SimpleVQAItem)
        models = list(dict.fromkeys(model for item in items for model in item.judge_res))
        if not models:
            raise CustosError("no item has a 'judge_res'")
        tables = {model: _table_of(model, items, rows) for model in models}
        return tables[models[0]] if len(tables) == 1 else {"models": tables}

    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """1 for a correct response, else 0.

        Raises:
            CustosError: If the file holds several models.
        """
        items = parse_rows(map(_decode_category, rows), SimpleVQAItem)
        models = {model for item in items for model in item.judge_res}
        if len(models) > 1:
            raise CustosError(f"several models in one file: {', '.join(sorted(models))}")
        concluded = [_conclusion(item, next(iter(models), "")) for item in items]
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


def _conclusion(item: SimpleVQAItem, model: str) -> str | None:
    return parse_conclusion(item.judge_res.get(model) or "")


def _table_of(model: str, items: Sequence[SimpleVQAItem], rows: Sequence[Row]) -> dict[str, Any]:
    columns = np.array(
        [[_conclusion(item, model) == conclusion for conclusion in CONCLUSIONS] for item in items],
        dtype=np.float64,
    )
    measured = intervals(
        columns,
        [item.question or str(number) for number, item in enumerate(items)],
        METRICS,
        {
            "by_language": [item.language for item in items],
            "by_task": [item.task for item in items],
            "by_domain": [item.domain for item in items],
        },
    )
    covered = coverage(rows, int(columns.sum()), len(items))
    return {"model": model, **values(measured), "intervals": measured, **covered}
