"""Answers of docs/evouna.md, "What it gets wrong", labelled by reading."""

from pathlib import Path

import pytest

from judging.files.records import read_records
from judging.tasks import get_task
from judging.types import LabelledExample

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("name", "n", "ruled"), [("awkward", 391, 57), ("everyday", 460, 2)])
def test_no_rule_contradicts_a_label(name: str, n: int, ruled: int) -> None:
    rows = [row for _, row in read_records(EXAMPLES / f"{name}_answers.jsonl", LabelledExample)]
    task = get_task("hieval-qs")
    rulings = [task.rule_if_certain(row) for row in rows]
    decided = [(row, ruling) for row, ruling in zip(rows, rulings, strict=True) if ruling]
    assert (len(rows), len(decided)) == (n, ruled)
    assert [row.id for row, ruling in decided if ruling.label != row.label] == []
