"""Rows, YAML and hashes of questions: what breaks a decoder is an error by file and number."""

import base64
import json
import os
import re
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from benchmarks.framework.files import read_file
from cli.shared.tables import read_requests
from data_prep.sources.conversations import load_conversations
from data_prep.sources.hieval import load_hieval
from data_prep.splits.manifest import load_generic
from data_prep.tables.cells import as_list, as_metadata
from data_prep.tables.reader import BadRow, parse_table
from judging.errors import CustosError
from judging.files.opening import load_yaml, nearest_file
from judging.files.questions import (
    HASHES_FILE,
    count_trained_on,
    question_hash,
    write_question_hashes,
)
from judging.files.records import read_records, read_rows, write_records
from judging.types import JudgeRequest, LabelledExample, Verdict
from tests.tiny import save_picture

GOOD = {"question": "?", "response": "a"}


def _lines(path: Path, *rows: object) -> Path:
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_three_kinds_of_file_read_alike(tmp_path: Path) -> None:
    rows = [{"question": "1?", "responses": ["ä"]}, {"question": "2?", "responses": ["b"]}]
    jsonl = _lines(tmp_path / "a.jsonl", *rows)
    array = tmp_path / "a.json"
    array.write_text(json.dumps(rows), encoding="utf-8-sig")  # as programs of Windows do
    parquet = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), parquet)
    expected = [(1, JudgeRequest(question="1?", responses=("ä",))),
                (2, JudgeRequest(question="2?", responses=("b",)))]  # fmt: skip
    for path in (jsonl, array, parquet):
        assert list(read_records(path, JudgeRequest)) == expected


def test_the_first_bad_row_is_named_or_all_are_collected(tmp_path: Path) -> None:
    rows = ["oops", GOOD, {"question": 3, "response": "a"}, "", "   ", GOOD]
    path = _lines(tmp_path / "a.jsonl", *rows)
    with pytest.raises(CustosError, match=r"a\.jsonl row 1: not valid JSON"):
        list(read_records(path, JudgeRequest))
    bad: list[str] = []
    assert [number for number, _ in read_records(path, JudgeRequest, bad)] == [2, 6]
    assert len(bad) == 2
    assert "row 1: not valid JSON" in bad[0]
    assert "row 3: field 'question'" in bad[1]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_pointers_of_git_lfs(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 123\n")
    with pytest.raises(CustosError, match=rf"a\.{kind}: this is a pointer of Git LFS"):
        list(read_rows(path))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("none.jsonl", None, "no such file"),
        ("a.ods", "a,b", r"unknown kind of file.*\.jsonl.*as \.xlsx or CSV"),
        ("a.CSV", "a,b", "unknown kind of file.*; rename it to 'a.csv'$"),
        ("a.ndjson", "a,b", "unknown kind of file.*; rename it to 'a.jsonl'$"),
        ("a.jsonl.gz", "a,b", "unknown kind of file.*; unpack it first$"),
        ("a.json", '{"a": 1}\n{"a": 2}\n', r".*one object a line must end in \.jsonl$"),
        ("a.json", "{}", ".*expected a JSON array of rows, .*got dict"),
        ("a.json", '{"a": [{}], "b": [{}]}', ".*'a', 'b'"),
        ("a.json", "[", "not valid JSON"),
        ("pipe.jsonl", os.mkfifo, "is no regular file"),
    ],
)
def test_unreadable_files(tmp_path: Path, name: str, content: Any, reason: str) -> None:
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif content:
        content(path)
    with pytest.raises(CustosError, match=f"{name}: {reason}"):
        list(read_rows(path))


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


GOOD_ROW = b'{"question": "?", "references": ["a"], "response": "a", "label": "Correct"}\n'
HOSTILE = {
    "200,000 brackets": (b"[" * 200_000, "nested too deeply"),
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
    path.write_bytes(GOOD_ROW + line + b"\n" + GOOD_ROW)
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
    path.write_bytes(hostile[0].read_bytes().removeprefix(GOOD_ROW))
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


def test_two_columns_of_one_name_in_a_parquet_file_are_refused(tmp_path: Path) -> None:
    """Refuse them as in CSV files: the first was lost."""
    columns = [pa.array(["x"]), pa.array(["y"])]
    pq.write_table(pa.Table.from_arrays(columns, ["a", "a"]), tmp_path / "rows.parquet")
    with pytest.raises(CustosError, match="rows.parquet: 2 columns have the name 'a'"):
        list(read_rows(tmp_path / "rows.parquet"))


@pytest.mark.parametrize("row", [b'{"id": "%b", "question": ""}', b'{"id": "1", "%b": 1}'])
def test_very_long_ids_and_names_are_one_bad_row(tmp_path: Path, row: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(row % (b"x" * 100_000))
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


@pytest.mark.parametrize("field", ["confidence", "score", "weight"])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_labelled_rows_hold_finite_numbers(tmp_path: Path, field: str, number: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD_ROW.replace(b"}", f', "{field}": {number}}}'.encode()))
    with pytest.raises(CustosError, match=f"rows.jsonl row 1: field '{field}'"):
        list(read_records(path, LabelledExample))


@pytest.mark.parametrize("number", ["1e999", "-2.5E+400", "[0, 1e310]"])
def test_a_number_that_no_float_holds_names_its_row_and_field(tmp_path: Path, number: str) -> None:
    """Refuse it: it was kept as infinity, and written as ``null``."""
    rows = ['{"a": 1.7e308, "b": 1e-999}', f'{{"a": 1, "b": {{"c": {number}}}}}']
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    (tmp_path / "rows.json").write_text(f"[{', '.join(rows)}]")
    [(_, first), (_, second)] = read_rows(tmp_path / "rows.jsonl")
    assert first == {"a": 1.7e308, "b": 0.0}
    assert re.search("row 2: field 'b': .*too large", str(second))
    with pytest.raises(CustosError, match="row 2: field 'b': .*too large"):
        list(read_rows(tmp_path / "rows.json"))


@pytest.mark.parametrize("text", ["a: 1\na: 2", "a: {b: 1, 'b': 2}", "x: &x {b: 1, b: 2}\ny: *x"])
def test_a_key_twice_in_one_mapping_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="the key '[ab]' occurs twice"):
        load_yaml(text)


def test_one_key_in_several_mappings_and_merged_ones_are_read() -> None:
    text = "x: &x {a: 1, b: 2}\ny: {<<: *x, a: 3}\nz: [{a: 1}, {a: 2}, *x]"
    assert load_yaml(text) == yaml.safe_load(text)
    assert load_yaml("") is None
    assert load_yaml("a: yes\n1: 2", yaml.BaseLoader) == {"a": "yes", "1": "2"}


def test_nested_aliases_cost_no_time() -> None:
    """A document of a few lines stands for more parts than can be visited."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert len(load_yaml("\n".join(lines))) == 30


@pytest.mark.parametrize(
    "text", ["a: " + "[" * 5_000 + "]" * 5_000, "a: " + "9" * 5000, "a: 2024-13-45", "a: !!int ''"]
)
def test_whatever_cannot_be_read_is_an_error_of_yaml(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)


def ask(question: str, **fields: Any) -> JudgeRequest:
    return JudgeRequest(question=question, responses=("x",), **fields)


def test_spelling_does_not_matter_and_what_is_shown_does(tmp_path: Path) -> None:
    picture = save_picture(tmp_path / "a.png", 40, 40)
    content = base64.b64encode(Path(picture).read_bytes()).decode()
    same = {
        question_hash(ask("Who wrote the Iliad?", images=(picture,))),
        question_hash(ask("who wrote Iliad", images=(f"data:image/png;base64,{content}",))),
    }
    assert len(same) == 1
    others = {
        question_hash(ask("Who wrote the Iliad?")),
        question_hash(ask("Who wrote the Iliad?", choices=("Homer",))),
        question_hash(ask("Who wrote the Aeneid?", images=(picture,))),
    }
    assert len(others | same) == 4


def test_pictures_in_requests_are_not_kept() -> None:
    megabyte = "A" * 2**20
    question_hash(ask("Which?"))  # what a first call loads is no picture
    tracemalloc.start()
    for number in range(20):
        question_hash(ask("Which?", images=(f"data:image/png;base64,{number:04d}{megabyte}",)))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 5 * 2**20


def test_a_judge_knows_its_questions_and_those_of_its_start(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    assert count_trained_on(first, [ask("Why?")]) is None, "it does not say"
    write_question_hashes(first, [ask("Why?"), ask("why"), ask("Who?")])
    assert (first / HASHES_FILE).stat().st_size == 16
    write_question_hashes(second, [ask("When?")], first)
    assert count_trained_on(second, [ask("WHY"), ask("Why?"), ask("When?"), ask("Where?")]) == 3
    assert count_trained_on(first, [ask("When?")]) == 0


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("pair.csv", "pairs.csv"), ("pairs.jsonl", "pairs.csv"), ("typo.csv", ""), ("x.csv", "")],
)
def test_only_a_name_that_is_alike_is_near(tmp_path: Path, name: str, nearest: str) -> None:
    for file in ("pairs.csv", "y.csv", "notes.txt"):
        (tmp_path / file).touch()
    text = nearest_file(tmp_path / name, (".csv", ".jsonl"))
    assert text == (f"; the nearest is '{tmp_path / nearest}'" if nearest else "")
    assert nearest_file(tmp_path / "none" / name, (".csv",)) == ""
    (tmp_path / "link.csv").symlink_to("nowhere.csv")
    assert "'nowhere.csv'" in nearest_file(tmp_path / "link.csv", (".csv",))
    assert nearest_file(tmp_path / "links.csv", (".csv",)) == "", "no link to nothing is near"
