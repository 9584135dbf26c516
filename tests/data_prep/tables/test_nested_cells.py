"""Columns that hold objects and lists of objects, as question-answering data sets do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import read_table
from judging.errors import CustosError
from judging.types import JudgeRequest
from tests.data_prep.tables.made_up import save

SQUAD = {"text": ["Jane Austen", "Austen"], "answer_start": [3, 8]}
VQA = [{"answer": "two", "answer_id": 1}, {"answer": "2", "answer_id": 2}]


def read_one(path: Path, **columns: str) -> JudgeRequest:
    mapping = TableMapping(columns=columns, reference_mode="any")
    [(_, request)] = read_table(path, JudgeRequest, mapping)
    return request


def written(folder: Path, **cells: Any) -> Path:
    row = {"question": "?", "response": "x", **cells}
    return save(folder / "rows.jsonl", f"{json.dumps(row)}\n")


@pytest.mark.parametrize(
    ("cell", "column", "references"),
    [
        (SQUAD, "answers.text", ("Jane Austen", "Austen")),
        (SQUAD, "answers.text.1", ("Austen",)),
        (VQA, "answers.answer", ("two", "2")),
        (VQA, "answers.0.answer", ("two",)),
        ({"value": "two", "aliases": []}, "answers.value", ("two",)),
    ],
)
def test_a_part_of_a_cell_fills_a_field(
    tmp_path: Path, cell: Any, column: str, references: tuple[str, ...]
) -> None:
    request = read_one(written(tmp_path, answers=cell), references=column)
    assert request.references == references
    assert request.metadata == {"answers": cell}


def test_a_conversation_holds_question_and_response(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "She."}]
    path = save(tmp_path / "rows.jsonl", json.dumps({"messages": turns, "gold": "Austen"}))
    request = read_one(
        path, question="messages.0.content", response="messages.1.content", references="gold"
    )
    assert (request.question, request.responses) == ("Who?", ("She.",))


def test_parts_of_parquet_cells(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    row = {"question": "?", "response": "x", "answers": SQUAD}
    pq.write_table(pa.Table.from_pylist([row]), path)
    assert read_one(path, references="answers.text").references == ("Jane Austen", "Austen")


def test_a_column_whose_name_has_a_dot_is_that_column(tmp_path: Path) -> None:
    path = written(tmp_path, answers=SQUAD, **{"answers.text": ["she"]})
    assert read_one(path, references="answers.text").references == ("she",)


@pytest.mark.parametrize(
    ("cells", "column", "references"),
    [
        ({"gold.texts": ["a", "b"]}, "gold.texts.1", ("b",)),
        ({"gold": {"x.y": {"texts": "a"}}}, "gold.x.y.texts", ("a",)),
        ({"gold.x": {"z": "a"}, "gold": {"x": {"y": "b"}}}, "gold.x.y", ("b",)),
        ({"gold.re\u0301f": ["a"]}, "gold.r\xe9f.0", ("a",)),
    ],
)
def test_names_with_dots_within_a_path(
    tmp_path: Path, cells: dict[str, Any], column: str, references: tuple[str, ...]
) -> None:
    request = read_one(written(tmp_path, **cells), references=column)
    assert request.references == references


def test_a_list_where_a_text_should_be_says_how_to_name_an_element(tmp_path: Path) -> None:
    path = save(
        tmp_path / "a.jsonl",
        json.dumps({"question": "?", "references": "r", "said.by": ["y", "z"]}),
    )
    with pytest.raises(CustosError) as error:
        read_one(path, response="said.by")
    assert "--map response=said.by.0" in str(error.value)
    assert read_one(path, response="said.by.1").responses == ("z",)


def test_a_cell_without_the_part_is_empty_in_its_row(tmp_path: Path) -> None:
    rows = [{"question": "?", "response": "x", "answers": cell} for cell in (SQUAD, {}, None)]
    path = save(tmp_path / "rows.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    mapping = TableMapping(columns={"references": "answers.text"}, reference_mode="any")
    read = [request.references for _, request in read_table(path, JudgeRequest, mapping)]
    assert read == [("Jane Austen", "Austen"), (), ()]


def test_a_part_that_no_row_has_is_a_missing_column(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match="no column 'answers.txt' for 'references'"):
        read_one(written(tmp_path, answers=SQUAD), references="answers.txt")


@pytest.mark.parametrize(
    "cell",
    [
        [{"type": "text", "text": "She."}],
        {"parts": [{"text": "She."}]},
        {"a.b": "no name", "c": {"d": "She."}},
        ["She.", "They."],
    ],
)
def test_every_hint_names_a_part_that_is_read(tmp_path: Path, cell: Any) -> None:
    row = {"question": "?", "references": ["x"], "m": cell}
    path = save(tmp_path / "rows.jsonl", json.dumps(row))
    with pytest.raises(CustosError) as error:
        read_one(path, response="m")
    options = str(error.value).partition("name a part of it: ")[2].split(" or ")
    read = [read_one(path, response=option.partition("response=")[2]) for option in options]
    assert "She." in [request.responses[0] for request in read]


def test_a_column_of_which_a_part_is_mapped_is_used(tmp_path: Path) -> None:
    """It is nearly called like our field ``annotators``."""
    path = written(tmp_path, annotations=[{"result": ["x"]}])
    assert read_one(path, references="annotations.0.result").references == ("x",)


@pytest.mark.parametrize("cell", [SQUAD, [SQUAD, SQUAD]])
def test_an_object_where_a_list_should_be_says_how_to_name_a_part(
    tmp_path: Path, cell: Any
) -> None:
    with pytest.raises(CustosError) as error:
        read_one(written(tmp_path, answers=cell), references="answers")
    assert str(error.value).endswith(
        "; name a part of it: --map references=answers.text or "
        "--map references=answers.answer_start"
    )
