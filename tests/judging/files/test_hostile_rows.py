"""Lines that break a decoder, in every reader of rows: the error of one row, by file and number."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.framework.files import read_file
from cli.shared.request_rows import read_requests
from data_prep.sources.conversations import load_conversations
from data_prep.sources.hieval import load_hieval
from data_prep.splits.manifest import load_generic
from data_prep.tables.cells import as_list, as_metadata
from data_prep.tables.reader import BadRow, parse_table
from judging import CustosError, Verdict
from judging.errors import FieldError
from judging.files.records import read_records, read_rows
from judging.types import LabelledExample

GOOD = b'{"question": "?", "references": ["a"], "response": "a", "label": "Correct"}\n'
HOSTILE = {
    "200,000 brackets": (b"[" * 200_000, "nested too deeply"),
    "200,000 objects": (b'{"a":' * 200_000, "nested too deeply"),
    "a number of 5,000 digits": (b'{"question": ' + b"9" * 5000 + b"}", "too many digits"),
    "bad UTF-8": (b'{"question": "\xff"}', "not UTF-8 text: byte 0xff at position 14"),
    "300 objects": (
        b'{"metadata": %b}' % (b'{"a":' * 300 + b"1" + b"}" * 300),
        "nested too deeply",
    ),
    "half a surrogate pair": (b'{"metadata": {"a": "\\ud800"}}', "'metadata': holds half a char"),
    "a name that is half a pair": (b'{"\\ud800": 1}', "holds half a character"),
    "a key twice": (b'{"question": "a", "question": "b"}', "the key 'question' occurs twice"),
    "a key twice inside": (b'{"metadata": {"n": [{"a": 1, "a": 1}]}}', "the key 'a' occurs"),
    "a key twice beside written marks": (
        b'{"response": "\\u0022\\u0022", "": "", "": ""}',
        "the key '' occurs twice",
    ),
    "half an object": (b'{"question": ', "not valid JSON at character 14: Expecting value"),
}


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A file whose second of three rows is hostile, and what is said of it."""
    line, reason = HOSTILE[request.param]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD + line + b"\n" + GOOD)
    return path, reason


def test_the_rows_beside_it_are_read(hostile: tuple[Path, str]) -> None:
    path, reason = hostile
    (_, first), (number, error), (last, third) = read_rows(path)
    assert first == third and (number, last) == (2, 3)
    assert isinstance(error, CustosError)
    assert str(error).startswith(f"{path} row 2: ") and reason in str(error)
    bad_rows: list[str] = []
    assert len(list(read_records(path, LabelledExample, bad_rows))) == 2
    assert bad_rows == [str(error)]


def test_a_table_has_one_bad_row_and_a_verdict_says_so(hostile: tuple[Path, str]) -> None:
    path, reason = hostile
    _, (number, bad), _ = parse_table(path, LabelledExample)
    assert number == 2 and isinstance(bad, BadRow)
    assert reason in str(bad.error)
    _, (row, verdict), _ = read_requests(path)
    assert row == 2 and isinstance(verdict, Verdict)
    assert verdict.status == "invalid" and reason in (verdict.message or "")


@pytest.mark.parametrize("read", [read_file, load_conversations, load_generic, load_hieval])
def test_other_readers_name_the_row(
    tmp_path: Path, hostile: tuple[Path, str], read: Callable[[Path], Iterable[Any]]
) -> None:
    path = tmp_path / "first.jsonl"
    path.write_bytes(hostile[0].read_bytes().removeprefix(GOOD))
    with pytest.raises(CustosError, match=f"first.jsonl row 1: .*{hostile[1]}"):
        list(read(path))


@pytest.mark.parametrize("cell", ["[" * 200_000, '{"a":' * 200_000])
def test_a_cell_of_a_table_is_no_traceback(cell: str) -> None:
    assert as_list(cell, ";") == [cell]
    with pytest.raises(CustosError, match="expected a JSON object"):
        as_metadata(cell)


def test_a_json_document_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    for line, reason in HOSTILE.values():
        path.write_bytes(line)
        for read in (read_rows, read_file):
            with pytest.raises(CustosError, match=f"rows.json: (not valid|.*{reason})"):
                list(read(path))


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_a_byte_order_mark_is_no_text(tmp_path: Path, name: str) -> None:
    """Read files of programs that put one first, as those of Windows do."""
    rows = GOOD if name.endswith("l") else b"[" + GOOD + b"]"
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + rows)
    [(_, row)] = read_rows(tmp_path / name)
    assert row["label"] == "Correct"


def test_two_columns_of_one_name_in_a_parquet_file_are_refused(tmp_path: Path) -> None:
    """Refuse them as in CSV files: the first was lost."""
    columns = [pa.array(["x"]), pa.array(["y"])]
    pq.write_table(pa.Table.from_arrays(columns, ["a", "a"]), tmp_path / "rows.parquet")
    with pytest.raises(CustosError, match="rows.parquet: 2 columns have the name 'a'"):
        list(read_rows(tmp_path / "rows.parquet"))


@pytest.mark.parametrize("row", [b'{"id": "%b", "question": ""}', b'{"id": "1", "%b": 1}'])
def test_very_long_ids_and_names_are_one_bad_row(tmp_path: Path, row: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(row % (b"x" * 300_000))
    [(_, verdict)] = read_requests(path)
    assert isinstance(verdict, Verdict) and verdict.status == "invalid"
    assert len(verdict.id) + len(verdict.message or "") < 50_000


def test_a_key_twice_in_a_json_array_names_the_row(tmp_path: Path) -> None:
    """Refuse it: the first value was lost without a word."""
    path = tmp_path / "rows.json"
    path.write_bytes(b'[{"a": 1, "b": {"a": 1}}, {"a": "\\u0022", "b": 1, "a": 2}]')
    with pytest.raises(CustosError, match="rows.json: row 2: the key 'a' occurs twice"):
        list(read_rows(path))


def test_marks_and_escapes_in_texts_are_no_keys(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(rb'{"a": "\u0022\"a\"\\u0022", "b": NaN, "c": {"a": "\u0022"}}')
    [(_, row)] = read_rows(path)
    assert row["a"] == '""a"\\u0022' and row["c"] == {"a": '"'}


def test_a_row_of_a_json_array_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(b'[{"a": 1}, {"a": 1, "note": ["\\ud800"]}]')
    with pytest.raises(CustosError, match="rows.json: row 2: field 'note': holds half a char"):
        list(read_rows(path))


@pytest.mark.parametrize("field", ["confidence", "score", "weight"])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_labelled_rows_hold_finite_numbers(tmp_path: Path, field: str, number: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD.replace(b"}", f', "{field}": {number}}}'.encode()))
    with pytest.raises(FieldError, match=f"rows.jsonl row 1: field '{field}'"):
        list(read_records(path, LabelledExample))


@pytest.mark.parametrize("field", ["confidence", "score", "weight"])
def test_labelled_tables_hold_finite_numbers(tmp_path: Path, field: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"question,references,response,label,{field}\n?,a,a,Correct,inf\n")
    [(_, bad)] = parse_table(path, LabelledExample)
    assert isinstance(bad, BadRow) and f"field '{field}'" in str(bad.error)
