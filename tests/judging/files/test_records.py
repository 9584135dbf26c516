from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from judging.errors import CustosError
from judging.files.atomic import atomic_write
from judging.files.records import read_records, read_rows, write_json, write_records
from judging.types import JudgeRequest, LabelledExample

GOOD = {"question": "?", "response": "a"}


def _lines(path: Path, *rows: object) -> Path:
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_three_kinds_of_file_read_alike(tmp_path: Path) -> None:
    rows = [{"question": "1?", "responses": ["ä"]}, {"question": "2?", "responses": ["b"]}]
    jsonl = _lines(tmp_path / "a.jsonl", *rows)
    array = tmp_path / "a.json"
    array.write_text(json.dumps(rows), encoding="utf-8")
    parquet = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), parquet)
    expected = [(1, JudgeRequest(question="1?", responses=("ä",))),
                (2, JudgeRequest(question="2?", responses=("b",)))]  # fmt: skip
    for path in (jsonl, array, parquet):
        assert list(read_records(path, JudgeRequest)) == expected


def test_absent_parquet_values_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = [{"question": "1?", "response": "a", "variant": None}]
    schema = pyarrow.schema([(name, pyarrow.string()) for name in rows[0]])
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema), path)
    assert list(read_rows(path)) == [(1, {"question": "1?", "response": "a"})]


def test_blank_lines_keep_their_number(tmp_path: Path) -> None:
    path = _lines(tmp_path / "a.jsonl", GOOD, "", "   ", GOOD)
    assert [number for number, _ in read_rows(path)] == [1, 4]


def test_the_first_bad_row_is_named(tmp_path: Path) -> None:
    path = _lines(tmp_path / "a.jsonl", GOOD, {"question": "?"}, GOOD)
    with pytest.raises(CustosError, match=r"a\.jsonl row 2: field 'responses': Field required"):
        list(read_records(path, JudgeRequest))
    path = _lines(tmp_path / "b.jsonl", GOOD, '{"question": ')
    with pytest.raises(CustosError, match=r"b\.jsonl row 2: not valid JSON"):
        list(read_records(path, JudgeRequest))


def test_bad_rows_can_be_collected(tmp_path: Path) -> None:
    path = _lines(tmp_path / "a.jsonl", "oops", GOOD, {"question": 3, "response": "a"}, GOOD)
    bad: list[str] = []
    assert [number for number, _ in read_records(path, JudgeRequest, bad)] == [2, 4]
    assert len(bad) == 2
    assert "row 1: not valid JSON" in bad[0]
    assert "row 3: field 'question'" in bad[1]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_pointers_of_git_lfs(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 123\n")
    with pytest.raises(CustosError, match=rf"a\.{kind}: this is a pointer of Git LFS"):
        list(read_rows(path))


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match=r"none\.jsonl: no such file"):
        list(read_rows(tmp_path / "none.jsonl"))
    (tmp_path / "a.xlsx").write_text("a,b", encoding="utf-8")
    with pytest.raises(CustosError, match=r"a\.xlsx: unknown kind of file.*\.jsonl.*as CSV"):
        list(read_rows(tmp_path / "a.xlsx"))
    for name, remedy in (
        ("a.CSV", "rename it to 'a.csv'"),
        ("a.ndjson", "rename it to 'a.jsonl'"),
        ("a.jsonl.gz", "unpack it first"),
    ):
        (tmp_path / name).write_text("a,b", encoding="utf-8")
        with pytest.raises(CustosError, match=f"{name}: unknown kind of file.*; {remedy}$"):
            list(read_rows(tmp_path / name))
    (tmp_path / "a.json").write_text('{"a": 1}\n{"a": 2}\n', encoding="utf-8")
    with pytest.raises(CustosError, match=r"a\.json: .*one object a line must end in \.jsonl$"):
        list(read_rows(tmp_path / "a.json"))
    (tmp_path / "a.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CustosError, match="expected a JSON array of rows, got dict"):
        list(read_rows(tmp_path / "a.json"))
    (tmp_path / "b.json").write_text("[", encoding="utf-8")
    with pytest.raises(CustosError, match=r"b\.json: not valid JSON"):
        list(read_rows(tmp_path / "b.json"))


def test_a_file_that_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(CustosError, match=r"a\.parquet"):
        list(read_rows(tmp_path / "a.parquet"))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\xff\xfd\x00")
    with pytest.raises(CustosError, match=r"a\.jsonl row 1: not UTF-8 text"):
        list(read_records(tmp_path / "a.jsonl", JudgeRequest))


def test_written_records_come_back(tmp_path: Path) -> None:
    records = [
        LabelledExample(question="Größe?", responses=("a\nb",), label="Wrong"),
        LabelledExample(question="?", responses=("b",), label="Correct", weight=0.5),
    ]
    path = tmp_path / "deep" / "out.jsonl"
    assert write_records(path, records) == 2
    assert [record for _, record in read_records(path, LabelledExample)] == records
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert first == {"question": "Größe?", "responses": ["a\nb"], "label": "Wrong"}


def test_a_failed_write_leaves_the_old_file_and_no_partial(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("old", encoding="utf-8")

    def records() -> Iterator[JudgeRequest]:
        yield JudgeRequest(question="?", responses=("a",))
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write_records(path, records())
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_appears_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with atomic_write(path) as file:
        file.write("half")
        file.flush()
        assert not path.exists()
    assert path.read_text(encoding="utf-8") == "half"


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "out.txt") as file:
        file.write("half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_json_documents(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"ä": [1, None]})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"ä": [1, None]}
    assert "ä" in text
    assert text.endswith("}\n")


def test_relative_pictures_are_relative_to_their_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.jsonl"
    path.parent.mkdir()
    row = {"question": "?", "response": "a", "images": ["images/a.png", "/b.png", "data:x"]}
    path.write_text(json.dumps(row), encoding="utf-8")
    [(_, record)] = read_records(path, JudgeRequest)
    assert record.images == (str(tmp_path / "deep" / "images" / "a.png"), "/b.png", "data:x")


def test_a_pipe_is_not_said_to_be_missing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.jsonl")
    with pytest.raises(CustosError, match="rows.jsonl: is no regular file"):
        list(read_rows(tmp_path / "rows.jsonl"))
