import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from judging.files.spreadsheets import write_spreadsheet


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
    assert all(cell.startswith(f"'{start}") for [cell] in read(path))


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
