"""Tables as spreadsheets write them, good and broken."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.errors import CustosError
from judging.files.csv_rows import CsvFile
from judging.files.records import read_records, read_rows
from judging.types import MAX_TEXT_CHARS, JudgeRequest

CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=5)
)


def save(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "question,gold\nWho?,Ann\n"),
        ("a.csv", "question;gold\r\nWho?;Ann\r\n"),
        ("a.csv", '"question, as asked";gold\nWho?;Ann'.replace(", as asked", "")),
        ("a.csv", "question\tgold\nWho?\tAnn\n"),
        ("a.tsv", "question\tgold\nWho?\tAnn\n"),
        ("a.csv", "\ufeffquestion,gold\nWho?,Ann\n"),
        ("a.csv", " question , gold \nWho?,Ann\n"),
    ],
)
def test_one_table_in_many_forms(tmp_path: Path, name: str, content: str) -> None:
    path = save(tmp_path / name, content)
    assert list(read_rows(path)) == [(1, {"question": "Who?", "gold": "Ann"})]
    assert CsvFile(path).columns == ("question", "gold")


def test_quoted_cells_and_empty_ones(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", 'a,b,c\n"x, ""y""\nz",, \n\n,,\n1,2,3\n')
    assert list(read_rows(path)) == [
        (1, {"a": 'x, "y"\nz'}),
        (4, {"a": "1", "b": "2", "c": "3"}),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.csv: the file is empty, expected a first row with the names of the columns"),
        ("\n\na,b\n", "a.csv: the file is empty"),
        ("a,b,a\n1,2,3", "a.csv: 2 columns have the name 'a' in the header"),
        ("a,,column 2\n1,2,3", "a.csv: 2 columns have the name 'column 2' in the header"),
        ('a,"b\n1,2', "a.csv: the header cannot be read: a quotation mark is not closed"),
        ("sep=;\na;b\n1;2", "a.csv: the first row tells Excel what separates cells; delete it"),
        ("a,b".encode("utf-16"), "a.csv: the header .* save the table as UTF-8"),
        ("größe,b\n".encode("latin-1"), "a.csv: the header is not UTF-8 text"),
        ('a,b\n1,2\n3,"open\n', "row 2 below the header: a quotation mark is not closed"),
        ('a,b\n"x" y,2\n', "row 1 below the header: .*must be written twice"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = save(tmp_path / "a.csv", content)
    with pytest.raises(CustosError, match=message):
        list(read_rows(path))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"1,2,3", "row 1 below the header: expected 2 cells, as the header has, got 3"),
        (b"1", "row 1 below the header: expected 2 cells, as the header has, got 1"),
        (b"1,\xfc", "row 1 below the header: column 'b' is not UTF-8 text; save the table"),
        (b"1,x\0y", "row 1 below the header: column 'b' holds a NUL character"),
    ],
)
def test_rows_that_are_errors_and_do_not_end_the_file(
    tmp_path: Path, row: bytes, message: str
) -> None:
    path = save(tmp_path / "a.csv", b"a,b\n" + row + b"\n3,4\n")
    (_, error), (number, good) = read_rows(path)
    assert isinstance(error, CustosError)
    assert message in str(error)
    assert (number, good) == (2, {"a": "3", "b": "4"})


def test_a_huge_cell_is_one_bad_row(tmp_path: Path) -> None:
    fits, too_long = "x" * MAX_TEXT_CHARS, "y" * (MAX_TEXT_CHARS + 1)
    rows = f"question,response\n?,{fits}\n?,{too_long}\n?,z\n"
    bad: list[str] = []
    read = read_records(save(tmp_path / "a.csv", rows), JudgeRequest, bad)
    assert [(number, len(request.response)) for number, request in read] == [
        (1, MAX_TEXT_CHARS),
        (3, 1),
    ]
    assert len(bad) == 1
    assert "row 2 below the header: field 'responses.0': String should have at most" in bad[0]


def test_rows_are_read_one_by_one(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", 'a\n1\n2\n"open')
    rows = read_rows(path)
    assert [next(rows), next(rows)] == [(1, {"a": "1"}), (2, {"a": "2"})]


@given(rows=TABLES, delimiter=st.sampled_from(",;\t"), ending=st.sampled_from(["\n", "\r\n"]))
def test_written_cells_come_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], delimiter: str, ending: str
) -> None:
    path = tmp_path_factory.mktemp("cells") / ("a.tsv" if delimiter == "\t" else "a.csv")
    names = [f"c{column}" for column in range(len(rows[0]) if rows else 1)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=ending, quoting=csv.QUOTE_ALL)
        writer.writerows([names, *rows])
    wanted = [
        (number, {name: cell for name, cell in zip(names, row, strict=True) if cell.strip()})
        for number, row in enumerate(rows, 1)
        if any(cell.strip() for cell in row)
    ]
    assert list(read_rows(path)) == wanted
