"""Answers of docs/evouna.md, "What it gets wrong": 391 answers, labelled by reading."""

from pathlib import Path

from judging.files.records import read_records
from judging.tasks import get_task
from judging.types import LabelledExample

ROWS = Path(__file__).parents[2] / "examples/awkward_answers.jsonl"


def test_no_rule_contradicts_a_label() -> None:
    rows = [row for _, row in read_records(ROWS, LabelledExample)]
    task = get_task("hieval-qs")
    rulings = [task.rule_if_certain(row) for row in rows]
    decided = [(row, ruling) for row, ruling in zip(rows, rulings, strict=True) if ruling]
    assert (len(rows), len(decided)) == (391, 55)
    assert [row.id for row, ruling in decided if ruling.label != row.label] == []
