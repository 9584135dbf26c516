"""EVOUNA: answers of five systems to open questions, each judged right or wrong by people.

Wang et al., "Evaluating Open-QA Evaluation" (NeurIPS 2023 datasets track), files ``NQ.json`` and
``TQ.json`` of the repository wangcunxiang/QA-Eval, Apache-2.0.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field, StrictBool, ValidationInfo, field_validator

from data_prep.splits.near_duplicates import question_key
from judging.files.records import read_records
from judging.types import LabelledExample

ANSWERERS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
"""Systems whose answers were judged, as the file's keys name them."""


class EvounaRow(BaseModel):
    """One question of the file with the five answers and judgements."""

    question: str = Field(min_length=1)
    improper: StrictBool
    """Set for questions without a fixed answer, which the authors exclude."""
    golden_answer: str | None
    """Alternatives joined by ``/``, each right on its own."""

    answer_fid: str | None = None
    answer_gpt35: str | None = None
    answer_chatgpt: str | None = None
    answer_gpt4: str | None = None
    answer_newbing: str | None = None

    judge_fid: StrictBool | None = None
    judge_gpt35: StrictBool | None = None
    judge_chatgpt: StrictBool | None = None
    judge_gpt4: StrictBool | None = None
    judge_newbing: StrictBool | None = None

    @field_validator("golden_answer")
    @classmethod
    def _proper_rows_have_an_answer(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("improper") is False and not (value or "").strip(" /"):
            raise ValueError("a proper row needs an answer")
        return value

    def references(self) -> tuple[str, ...]:
        """List the alternatives of the golden answer, each once, in the order of the file.

        A slash that belongs to an answer ("AC/DC") cannot be told from a separator.
        """
        alternatives = (part.strip() for part in (self.golden_answer or "").split("/"))
        return tuple(dict.fromkeys(part for part in alternatives if part))


def load_evouna(path: Path | str, bad_rows: list[str] | None = None) -> list[LabelledExample]:
    """Read every judged answer of an EVOUNA file (a JSON array, as published).

    Improper rows are left out, and so are answers or judgements that are null. Examples are of task
    ``hieval-qs``, labelled ``Correct`` or ``Wrong``; their group is their question, and their
    metadata names the ``answerer``. Ids of rows of ``TQ.json`` begin with ``evouna-tq``, so that
    they can be joined with those of ``NQ.json``, which begin with ``evouna`` alone. Errors are
    those of :func:`read_records`.
    """
    examples = []
    file = Path(path).stem.lower()
    name = "evouna" if file == "nq" else f"evouna-{file}"
    for number, row in read_records(Path(path), EvounaRow, bad_rows):
        for answerer in () if row.improper else ANSWERERS:
            answer: str | None = getattr(row, f"answer_{answerer}")
            is_right: bool | None = getattr(row, f"judge_{answerer}")
            if answer is None or is_right is None:
                continue
            example = LabelledExample(
                id=f"{name}-{number}-{answerer}",
                task="hieval-qs",
                variant="plain",
                question=row.question,
                references=row.references(),
                reference_mode="any",
                responses=(answer,),
                label="Correct" if is_right else "Wrong",
                metadata={"answerer": answerer},
                group=question_key(row.question),
                source="evouna",
            )
            examples.append(example)
    return examples
