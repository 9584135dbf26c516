"""The field ``reasoning`` in tables, where many have a column of that name for something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow, parse_table
from judging.types import JudgeRequest
from tests.data_prep.tables.made_up import KINDS, save_table

ROW = {"question": "?", "references": "x", "response": "<think>y</think>x"}


def read(path: Path, rows: list[dict[str, str]], mapping: TableMapping | None = None) -> list[Any]:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    save_table(path, rows, columns)
    return [parsed for _, parsed in parse_table(path, JudgeRequest, mapping)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_may_name_it_and_the_mapping_names_it_for_all(tmp_path: Path, kind: str) -> None:
    rows = [{**ROW, "reasoning": "keep"}, {**ROW, "reasoning": "drop"}]
    found = read(tmp_path / f"a.{kind}", rows)
    assert [each.answers for each in found] == [(ROW["response"],), ("x",)]
    assert [each.responses for each in found] == [(ROW["response"],)] * 2
    [kept] = read(tmp_path / f"b.{kind}", [ROW], TableMapping(reasoning="keep"))
    assert kept.answers == kept.responses
    conflict = read(tmp_path / f"c.{kind}", rows, TableMapping(reasoning="keep"))
    assert [isinstance(each, BadRow) for each in conflict] == [False, True]


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_thoughts_is_not_the_field(tmp_path: Path, kind: str) -> None:
    """Data sets of reasoning models hold thoughts in a column called ``reasoning``."""
    mapping = TableMapping(reasoning="keep")
    [found] = read(tmp_path / f"a.{kind}", [{**ROW, "reasoning": "Is it y? No."}], mapping)
    assert found.metadata == {"reasoning": "Is it y? No."}
    assert found.reasoning == "keep"


def test_a_column_called_nearly_so_is_kept_as_metadata(tmp_path: Path) -> None:
    [found] = read(tmp_path / "a.csv", [{**ROW, "Reasoning": "Is it y? No."}])
    assert found.metadata == {"Reasoning": "Is it y? No."}
    assert found.reasoning == "drop"
