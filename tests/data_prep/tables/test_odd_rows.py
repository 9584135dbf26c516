"""Rows that no honest program writes, and rows that say nothing where an option says it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import read_table
from judging.errors import CustosError
from judging.files.records import write_records
from judging.types import JudgeRequest
from tests.data_prep.tables.made_up import save

ROW = {"question": "?", "references": ["x"], "response": "y"}


def test_a_fault_in_the_second_of_mapped_responses_is_an_error_of_its_column(
    tmp_path: Path,
) -> None:
    row = {"question": "?", "outputs": ["x", {"text": "y"}]}
    path = save(tmp_path / "pairs.jsonl", json.dumps(row))
    mapping = TableMapping(columns={"responses": "outputs"}, task="truthful-pair")
    with pytest.raises(CustosError) as error:
        list(read_table(path, JudgeRequest, mapping))
    assert str(error.value) == (
        f"{path} row 1: field 'responses': column 'outputs': expected a text, got an object"
    )


def test_a_field_that_is_null_takes_what_is_given_for_all_rows(tmp_path: Path) -> None:
    path = save(tmp_path / "rows.jsonl", json.dumps({**ROW, "mode": None}))
    [(_, request)] = read_table(path, JudgeRequest, TableMapping(mode="score"))
    assert request.mode == "score"


@pytest.mark.parametrize(
    ("metadata", "fault"),
    [
        ('{"note": "\\ud800"}', r"field 'note': holds half a character"),
        ('{"a":' * 300 + "1" + "}" * 300, "nested too deeply"),
    ],
)
def test_metadata_in_a_cell_that_could_not_be_written_again(
    tmp_path: Path, metadata: str, fault: str
) -> None:
    """Refuse the row when it is read: writing it failed, after everything else was done."""
    quoted = metadata.replace('"', '""')
    path = save(tmp_path / "rows.csv", f'question,references,response,metadata\n?,x,y,"{quoted}"\n')
    with pytest.raises(CustosError, match=f"rows.csv row 1 .*'metadata': .*{fault}"):
        list(read_table(path, JudgeRequest))


def test_bytes_in_the_metadata_of_parquet_rows_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist([ROW | {"metadata": {"a": "b", "png": b"\xff"}}]), path)
    [(_, request)] = read_table(path, JudgeRequest)
    assert request.metadata == {"a": "b", "png": None}
    write_records(tmp_path / "out.jsonl", [request])
