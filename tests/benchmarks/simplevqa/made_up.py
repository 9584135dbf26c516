"""Made-up items of SimpleVQA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.framework.base import get_benchmark
from judging.types import Verdict

SIMPLEVQA = get_benchmark("simplevqa")


def item(number: int = 1, said: Any = None, **fields: Any) -> dict[str, Any]:
    row = {
        "data_id": number,
        "question": f"Who painted picture {number}?",
        "answer": "Rembrandt",
        "language": "EN",
        "vqa_category": {"task_category": "AC", "subject_category": "AR"},
        **fields,
    }
    return row if said is None else {**row, "judge_res": {"g4o_response": said}}


def graded(conclusions: Sequence[Any], **fields: Any) -> list[dict[str, Any]]:
    return [item(number, said, **fields) for number, said in enumerate(conclusions)]


COMPLEX: dict[str, Any] = {
    "question": "In what year was the person in the picture born?",
    "answer": "1606",
    "atomic_question": "Who is the person in the picture?",
    "atomic_fact": "Rembrandt",
}


def three_forms(letters: str, number: int) -> dict[str, Any]:
    """ScoredItems item that is right (+) or not (-) as Origin, Atomic and Atomic-Given."""
    row = item(number, **COMPLEX, response="x", atomic_response="y", atomic_given_response="z")
    row["question"] += str(number)
    labels = {"+": "Correct", "-": "Incorrect", "0": "Not attempted"}
    verdicts = [Verdict(status="scored", label=labels[letter], judge="j") for letter in letters]
    return SIMPLEVQA.graded_row(row, verdicts)
