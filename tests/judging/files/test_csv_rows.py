"""Tables as spreadsheets write them, good and broken."""

import csv
import io
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judging.errors import CustosError
from judging.files.csv_rows import GUARD, CsvFile, guarded, unguarded, write_spreadsheet
from judging.files.opening import TextFormat
from judging.files.records import read_records, read_rows
from judging.types import MAX_TEXT_CHARS, JudgeRequest

LETTERS = st.one_of(
    st.sampled_from("\"',;\t|\r\n=+-@~5 ("), st.characters(codec="utf-8", exclude_characters="\0")
)
CELLS = st.text(LETTERS, max_size=8).filter(lambda text: GUARD not in text)
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


@pytest.mark.parametrize("stated", [None, "utf-8", "cp1252", "utf-16-le"])
@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_text_and_knows_better_than_a_statement(
    tmp_path: Path, mark: str, stated: str | None
) -> None:
    path = save(tmp_path / "a.csv", '"größe",b\né,ü\n'.encode(mark))
    assert list(read_rows(path, TextFormat(encoding=stated))) == [(1, {"größe": "é", "b": "ü"})]
    if stated != "cp1252":
        path = save(tmp_path / "a.jsonl", '{"größe": "ü"}\n'.encode(mark))
        assert list(read_rows(path, TextFormat(encoding=stated))) == [(1, {"größe": "ü"})]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("\n \n,\na,b\n1,2\n\n3,4\n", [(1, {"a": "1", "b": "2"}), (3, {"a": "3", "b": "4"})]),
        ('a,b\n"x, ""y""\nz",\n\n,\n1,2\n', [(1, {"a": 'x, "y"\nz'}), (4, {"a": "1", "b": "2"})]),
    ],
)
def test_the_header_is_the_first_row_with_a_text_and_empty_rows_are_none(
    tmp_path: Path, content: str, rows: list[Any]
) -> None:
    assert list(read_rows(save(tmp_path / "a.csv", content))) == rows


def test_columns_of_one_name_are_called_after_their_places(tmp_path: Path) -> None:
    """As a join in SQL and forms write them. A field of ours is not guessed (see below)."""
    path = save(tmp_path / "a.csv", "a,b,a,,column 4\n1,2,3,4,5\n")
    assert CsvFile(path).columns == (
        *("a (column 1)", "b", "a (column 3)"),
        *("column 4 (column 4)", "column 4 (column 5)"),
    )


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_what_databases_write_for_a_missing_value_is_one(tmp_path: Path, name: str) -> None:
    path = save(
        tmp_path / name, "a,b,c\n1,\\N,x \\N\n".replace(",", "\t" if name == "a.tsv" else ",")
    )
    assert list(read_rows(path)) == [(1, {"a": "1", "c": "x \\N"})]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n \n", "a.csv: the file is empty"),
        ("id,b,id\n1,2,3", "a.csv: 2 columns have the name 'id' in the header; rename all but one"),
        ('a,"b\n1,2', "a.csv: the header cannot be read: a quotation mark is not closed"),
        ("größe,b\n".encode("latin-1"), "a.csv: the header is not UTF-8 text; .*--encoding"),
        ("a,b".encode("utf-16-le"), "a.csv: the header holds a NUL .*--encoding utf-16-le,"),
        (b"\xff\xfea\0,\0b", "a.csv: is not utf-16 text"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = save(tmp_path / "a.csv", content)
    with pytest.raises(CustosError, match=message):
        list(read_rows(path))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"1,2,3", "row 1 below the header: 3 cells, and the header has 2"),
        (b"1,\xfc", "row 1 below the header: column 'b' is not UTF-8 text; state the encoding"),
        (b"1,x\0y", "row 1 below the header: column 'b' holds a NUL character"),
        (b'"x" y,2', "row 1 below the header: "),
        (b'5,"the "Ann" and', "row 1 below the header: "),
        (b'1,"open', "row 1 below the header: a quotation mark is not closed"),
    ],
)
def test_rows_that_are_errors_and_do_not_end_the_file(
    tmp_path: Path, row: bytes, message: str
) -> None:
    path = save(tmp_path / "a.csv", b"a,b\n" + row + b"\n3,4\n\n5,6\n")
    (_, error), *good = read_rows(path)
    assert isinstance(error, CustosError)
    assert message in str(error)
    assert good == [(2, {"a": "3", "b": "4"}), (4, {"a": "5", "b": "6"})]


def kinds(path: Path) -> list[Any]:
    """Return the cells of every row, and ``None`` for one that cannot be used."""
    return [list(row.values()) if isinstance(row, dict) else None for _, row in read_rows(path)]


def test_an_open_quotation_mark_costs_no_row_that_is_sure_to_be_one(tmp_path: Path) -> None:
    """Between two rows with an open mark stand whole rows; a text on several lines is no row."""
    rows = '1,"open,x\n2,"a,b",x\n3,c,x\n4,"open,x\n5,d,"e\nf"\n6,g,h\n'
    assert kinds(save(tmp_path / "a.csv", f"n,b,c\n{rows}")) == [
        None,
        ["2", "a,b", "x"],
        ["3", "c", "x"],
        None,
        ["5", "d", "e\nf"],
        ["6", "g", "h"],
    ]
    cell = '1,"He said "no" and\nwent, in fact,\naway."\n2,x\n'
    assert kinds(save(tmp_path / "b.csv", f"a,b\n{cell}")) == [None, ["2", "x"]]


@pytest.mark.parametrize(
    ("row", "cells"),
    [("1,2,3,,", [["1", "2", "3"]]), ("1,2", [["1", "2"]]), ("1,2,3,,x", [None]), ("1", [None])],
)
def test_cells_at_the_end_that_are_empty_or_missing(
    tmp_path: Path, row: str, cells: list[Any]
) -> None:
    assert kinds(save(tmp_path / "a.csv", f"a,b,c\n{row}\n{row}\n")) == cells * 2
    broken = "q,gold,response,label\nQ,x,It was\nAnn,right\nQ,x,y,right\n"
    assert kinds(save(tmp_path / "b.csv", broken)) == [None, None, ["Q", "x", "y", "right"]]


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("a.tsv", 'a\tb\tc\n1\t"It was,\tx\n2\tno."\ty\n', [["1", '"It was,', "x"]]),
        ("a.tsv", 'a\tb\tc\n1\t5" disk\tx\n2\t"Emma" is it\ty\n', [["1", '5" disk', "x"]]),
        ("a.tsv", 'a\tb\tc\n1\t"x\ny\tz"\t2\n', [["1", "x\ny\tz", "2"]]),
        ("a.tsv", '"a"\t"b"\n"1"\t"2"\n', [["1", "2"]]),
        ("a.csv", 'a,b,"c; d; e; f; g"\n1,2,3\n', [["1", "2", "3"]]),
        ("a.csv", "a;b;c, or d, or e, or f\n1;2;3\n4,5;6;7\n", [["1", "2", "3"]]),
        ("a.csv", "a|b|c\n1|2|3\n", [["1", "2", "3"]]),
        ("a.csv", "sep=;\r\na;b,c\r\n1;2\r\n", [["1", "2"]]),
    ],
)
def test_all_rows_decide_how_a_file_is_written(
    tmp_path: Path, name: str, content: str, rows: list[list[str]]
) -> None:
    assert kinds(save(tmp_path / name, content))[:1] == rows


def test_a_reading_in_doubt_is_said(tmp_path: Path) -> None:
    merged = '\t"It was\tx\n2\tno."\ty\n'
    assert CsvFile(save(tmp_path / "a.tsv", f"a\tb\tc\n1{merged}")).doubt
    assert CsvFile(save(tmp_path / "a.csv", f"a\tb\tc\n1{merged}".replace("\t", ","))).doubt
    for sure in ('a\tb\tc\n1\t"x\ny"\t2\n', "a\tb\tc\n1\t2\t3\n"):
        assert not CsvFile(save(tmp_path / "a.tsv", sure)).doubt
        assert not CsvFile(save(tmp_path / "a.csv", sure.replace("\t", ","))).doubt


def test_delimiter_and_encoding_are_stated(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", "wer,was;wo\nä,ö;ü\n".encode("cp1252"))
    stated = TextFormat(";", "cp1252")
    assert list(read_rows(path, stated)) == [(1, {"wer,was": "ä,ö", "wo": "ü"})]
    line = '{"question": "größe"}\n'.encode("latin-1")
    assert list(read_rows(save(tmp_path / "a.jsonl", line), TextFormat(encoding="latin-1"))) == [
        (1, {"question": "größe"})
    ]


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


@given(
    rows=TABLES,
    delimiter=st.sampled_from(",;\t|"),
    ending=st.sampled_from(["\n", "\r\n"]),
    quotes_all=st.booleans(),
)
def test_written_cells_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    delimiter: str,
    ending: str,
    quotes_all: bool,
) -> None:
    # Text that tabs separate says with its header that it has quotation marks.
    # Python leaves a carriage return without marks unless it is part of the ends of lines.
    is_sure = delimiter in "\t|" or ending == "\n"
    quoting: Literal[0, 1] = csv.QUOTE_ALL if quotes_all or is_sure else csv.QUOTE_MINIMAL
    path = tmp_path_factory.mktemp("cells") / ("a.tsv" if delimiter == "\t" else "a.csv")
    names = [f"c{column}" for column in range(len(rows[0]) if rows else 1)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=ending, quoting=quoting)
        writer.writerows([names, *rows])
    wanted = [
        (number, {name: cell for name, cell in zip(names, row, strict=True) if cell.strip()})
        for number, row in enumerate(rows, 1)
        if any(cell.strip() for cell in row)
    ]
    stated = TextFormat(delimiter if len(names) == 1 else None)
    assert list(read_rows(path, stated)) == wanted


TEXTS = st.text(LETTERS, max_size=12) | st.sampled_from(["~'=1", "'=1", "~'~'-x", "\\N", "~'\\N"])


def read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_rows_come_back_and_excel_sees_utf8(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    rows = [("é, ü\n日本", -0.25, None), ('say "hi"', 3, True), ("a\ud800b", 1, False)]
    write_spreadsheet(path, ("text", "number", "flag"), rows)
    assert path.read_bytes().startswith(b"\xef\xbb\xbftext,")
    assert read(path)[1:] == [
        ["é, ü\n日本", "-0.25", ""],
        ['say "hi"', "3", "True"],
        ["a?b", "1", "False"],
    ]


@given(text=TEXTS)
@example("x;=1+1")
@example('x;"=1+1"')
@example("x;~'\"-y")
@example("x\n- an item (SUM)")
def test_a_guard_is_taken_away_where_it_was_put(text: str) -> None:
    assert unguarded(guarded(text)) == text
    assert guarded(guarded(text)) != guarded(text) or text == guarded(text)


@pytest.mark.parametrize("text", ["'=1", "it's ~'x", "-5", "[1,-5]", "a\n- b", "x, -y", "a=b"])
def test_what_is_no_formula_and_an_apostrophe_of_people_stay(text: str) -> None:
    assert guarded(text) == unguarded(text) == text


@given(rows=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=4), name=st.sampled_from("ct"))
def test_rows_are_read_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], name: str
) -> None:
    path = tmp_path_factory.mktemp("sheets") / f"a.{name}sv"
    columns = ("=name", "b;=c", "c")
    write_spreadsheet(path, columns, rows)
    wanted = [
        {column: cell for column, cell in zip(columns, row, strict=True) if cell.strip()}
        for row in rows
        if any(cell.strip() for cell in row)
    ]
    assert [row for _, row in CsvFile(path).rows()] == wanted
    assert CsvFile(path).columns == columns
    if name == "c":  # as a spreadsheet saves it again
        with path.open(encoding="utf-8-sig", newline="") as file:
            again = list(csv.reader(file))
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=";", quoting=csv.QUOTE_ALL).writerows(again)
        assert [row for _, row in CsvFile(path).rows()] == wanted


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("opened", [",", ";", "\t"])
def test_no_text_is_a_formula_whatever_a_spreadsheet_takes_for_the_delimiter(
    tmp_path: Path, delimiter: str, opened: str
) -> None:
    path = tmp_path / "a.csv"
    formulas = ("=1+1", "+1+1", "-cmd|' /C calc'!A0", "@SUM(1)", "- SUM(1)", '=1&"', "=1", "＝1")
    edges = [f"{edge}{quotes}" for edge in ",;\t\n" for quotes in ("", '"', '""')]
    rows = [(f"x{edge}{text}", f"y{edge}{text}") for edge in edges for text in formulas]
    write_spreadsheet(path, ("a", "b"), [*rows, *((text, text) for text in formulas)], delimiter)
    text = path.read_bytes().decode("utf-8-sig")
    for line in csv.reader(io.StringIO(text, newline=""), delimiter=opened):
        assert not [cell for cell in line if cell.startswith(tuple("=+-@＝"))]
