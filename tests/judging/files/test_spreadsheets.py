import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judging.files.csv_rows import CsvFile, guarded, unguarded, write_spreadsheet

LETTERS = st.one_of(
    st.sampled_from("\"',;\t|\r\n=+-@~5 ("), st.characters(codec="utf-8", exclude_characters="\0")
)
TEXTS = st.text(LETTERS, max_size=12) | st.sampled_from(["~'=1", "'=1", "~'~'-x", "\\N", "~'\\N"])


def read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_rows_come_back_and_excel_sees_utf8(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    rows = [("é, ü\n日本", 0.25, None), ('say "hi"', 3, True)]
    write_spreadsheet(path, ("text", "number", "flag"), rows)
    assert path.read_bytes().startswith(b"\xef\xbb\xbftext,")
    assert read(path)[1:] == [["é, ü\n日本", "0.25", ""], ['say "hi"', "3", "True"]]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_no_cell_is_a_formula(tmp_path: Path, start: str) -> None:
    path = tmp_path / "out.csv"
    write_spreadsheet(path, (f"{start}name",), [(f"{start}1+cmd|' /C calc'!A0",)])
    assert all(cell.startswith(f"~'{start}") for [cell] in read(path))


@given(text=TEXTS)
@example("x;=1+1")
@example('x;"=1+1"')
@example("x;~'\"-y")
@example("x\n- an item (SUM)")
def test_a_guard_is_taken_away_where_it_was_put(text: str) -> None:
    assert unguarded(guarded(text)) == text
    assert guarded(guarded(text)) != guarded(text) or text == guarded(text)


@pytest.mark.parametrize(
    "text",
    [
        "'=1",
        "'- Ann",
        "it's ~'x",
        "~'sym",
        "-5",
        "+49",
        "[1,-5]",
        '["1","-5"]',
        "a\n- b",
        "x, -y",
        "a=b",
    ],
)
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


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    write_spreadsheet(tmp_path / "out.csv", ("x",), [(-0.5,)])
    assert read(tmp_path / "out.csv")[1] == ["-0.5"]


def test_nothing_is_left_of_a_file_that_fails(tmp_path: Path) -> None:
    def rows() -> Iterator[tuple[str]]:
        yield ("written",)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        write_spreadsheet(tmp_path / "out.csv", ("x",), rows())
    assert list(tmp_path.iterdir()) == []


def test_a_text_that_utf_8_cannot_hold_is_written_with_a_question_mark(tmp_path: Path) -> None:
    write_spreadsheet(tmp_path / "out.csv", ("x",), [("a\ud800b",)])
    assert (tmp_path / "out.csv").read_text(encoding="utf-8-sig").splitlines() == ["x", "a?b"]
