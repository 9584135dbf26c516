"""Files, folders and data sets of the hub that are named as a table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import parse_table, read_table
from data_prep.tables.source import open_table
from judging.errors import CustosError
from judging.types import JudgeRequest
from tests.data_prep.tables.made_up import SHEET, save


def test_a_hub_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def load(name: str, config: str | None, *, split: str, revision: str | None) -> object:
        asked.append((name, config, split, revision))
        return datasets.Dataset.from_list([{"question": "?", "gold": "x", "answer": "y", "n": 3}])

    monkeypatch.setattr(datasets, "load_dataset", load)
    mapping = TableMapping(columns={"references": "gold", "response": "answer"})
    [(_, request)] = read_table("org/answers@v2:en/test", JudgeRequest, mapping)
    assert (request.references, request.metadata) == (("x",), {"n": 3})
    assert set(asked) == {("org/answers", "en", "test", "v2")}


def test_bytes_in_a_column_that_is_not_ours_are_left_out(tmp_path: Path) -> None:
    row = {"question": "?", "references": ["x"], "response": "y", "raw": b"\xff", "n": 1}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    mapping = TableMapping(columns={"group": "question"})
    [(_, request)] = read_table(path, JudgeRequest, mapping)
    assert request.metadata == {"n": 1}


def test_sources_that_are_no_tables(tmp_path: Path) -> None:
    save(tmp_path / "a.csv", SHEET)
    with pytest.raises(CustosError, match=r"is a folder; name a file in it: a\.csv"):
        list(read_table(tmp_path, JudgeRequest))
    with pytest.raises(CustosError, match="no such file"):
        list(read_table(tmp_path / "b.csv", JudgeRequest))
    assert list(read_table(save(tmp_path / "c.jsonl", ""), JudgeRequest)) == []


@pytest.mark.parametrize(
    ("file", "split"), [("state.json", ""), ("dataset_dict.json", "['train']")]
)
def test_a_folder_of_save_to_disk_is_named(tmp_path: Path, file: str, split: str) -> None:
    save(tmp_path / file, "{}")
    save(tmp_path / "dataset_info.json", "{}")
    call = f"datasets.load_from_disk('{tmp_path}'){split}.to_parquet('rows.parquet')"
    with pytest.raises(CustosError, match=f"{re.escape(call)}$"):
        list(read_table(tmp_path, JudgeRequest))


def test_an_array_in_a_file_of_lines_is_named(tmp_path: Path) -> None:
    rows = [{"question": "?", "references": ["x"], "response": "y"}]
    path = save(tmp_path / "a.jsonl", json.dumps(rows))
    message = "the name of a file that is one JSON array must end in .json"
    with pytest.raises(CustosError, match=f"row 1: expected an object, got list; {message}$"):
        list(read_table(path, JudgeRequest))
    save(path, json.dumps(rows, indent=1))
    with pytest.raises(CustosError, match=rf"a\.jsonl: {message}$"):
        list(parse_table(path, JudgeRequest))


def test_an_index_without_a_name_is_metadata(tmp_path: Path) -> None:
    """Read what pandas writes unless it is asked not to, and columns that Excel left empty."""
    path = save(tmp_path / "a.csv", ",question,references,response,,\n0,?,x,y,,\n1,?,x,y,,z\n")
    (_, first), (_, second) = read_table(path, JudgeRequest)
    assert first.metadata == {"column 1": "0"}
    assert second.metadata == {"column 1": "1", "column 6": "z"}


def test_a_missing_table_names_the_nearest_file(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("question\n", encoding="utf-8")
    with pytest.raises(
        CustosError, match=r"pair\.csv: no such file; the nearest is '.*/pairs\.csv'"
    ):
        next(read_table(tmp_path / "pair.csv", JudgeRequest))


@pytest.mark.parametrize(
    ("cell", "references"),
    [
        ("AT&amp;T", ("AT&amp;T",)),
        ("O&#039;Connor;Sin&eacute;ad", ("O&#039;Connor", "Sin&eacute;ad")),
        ("AT&T;Bell", ("AT&T", "Bell")),
        ("R&nosuch;D", ("R&nosuch", "D")),
        ("a; b;", ("a", "b")),
    ],
)
def test_no_entity_of_html_is_cut(tmp_path: Path, cell: str, references: tuple[str, ...]) -> None:
    path = save(tmp_path / "a.csv", f"question,references,response\nq,{cell},x\n")
    [(_, request)] = read_table(path, JudgeRequest)
    assert request.references == references


def test_cells_that_are_split_unasked_are_counted(tmp_path: Path) -> None:
    cells = ["a", "a;b", '"[""a"", ""b""]"', "&amp;", "c;d"]
    rows = "".join(f"q,{cell},x\n" for cell in cells)
    table = open_table(save(tmp_path / "a.csv", f"question,gold,response\n{rows}"))
    [doubt] = table.doubts("gold", None)
    assert "2 rows, the first is row 2" in doubt
    assert table.doubts("gold", ";") == table.doubts("none", None) == []
