"""``custos grade`` writes beside the user's own columns, and over its own files alone."""

import csv
import datetime
import resource
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.shared.verdicts import cell_text, write_verdicts
from tests.cli.grade.made_up import Run, many
from tests.cli.made_up import read_csv, read_lines, succeed
from tests.serve.made_up import FakeJudge, row


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.parquet"])
def test_a_table_has_the_users_columns_and_the_verdict_beside(
    run: Run, tmp_path: Path, name: str
) -> None:
    rows = [row("=1+1", id="-5", metadata={"a": [1]}), "{", row(id="z", label="Wrong")]
    assert run(rows, "--csv", str(tmp_path / name)).exit_code == 1
    statuses = [verdict["status"] for verdict in read_lines(tmp_path / "out.jsonl")]
    assert statuses == ["scored", "invalid", "scored"]
    columns: list[str]
    if name.endswith("parquet"):
        table = pq.read_table(tmp_path / name)
        columns, cells = table.column_names, table.to_pylist()
        assert (cells[0]["response"], cells[0]["confidence"]) == ("=1+1", pytest.approx(0.898))
    else:
        text = (tmp_path / name).read_bytes().decode("utf-8-sig")
        assert (tmp_path / name).read_bytes().startswith(b"\xef\xbb\xbf")
        lines = csv.reader(text.splitlines(), delimiter="\t" if name.endswith("tsv") else ",")
        columns = next(lines)
        cells = [dict(zip(columns, line, strict=True)) for line in lines]
        assert (cells[0]["response"], float(cells[0]["confidence"])) == ("~'=1+1", 0.898)
    assert columns[:8] == [
        *("question", "references", "response", "id", "metadata"),
        *("label", "status", "custos_label"),
    ]
    assert columns[-2:] == ["p_Wrong", "p_Correct"]
    assert [cell["status"] for cell in cells] == ["scored", "invalid", "scored"]
    assert (cells[0]["id"], cells[0]["references"]) == ("-5", '["Paris"]')
    assert (cells[0]["metadata"], cells[1]["question"] or None) == ('{"a": [1]}', None)
    assert [cell["custos_label"] or None for cell in cells] == ["Wrong", None, "Correct"]


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_needs_review_says_nothing_where_no_risk_was_stated(
    run: Run, tmp_path: Path, name: str
) -> None:
    rows = [row(), "{", row(risk=0.1)]
    for options, expected in (((), [None, True, False]), (("--risk", ".05"), [False, True, False])):
        run(rows, *options, "--csv", str(tmp_path / name))
        if name.endswith("parquet"):
            cells = pq.read_table(tmp_path / name)["needs_review"].to_pylist()
        else:
            texts = [cells["needs_review"] for cells in read_csv(tmp_path / name)]
            cells = [{"": None, "true": True, "false": False}[text] for text in texts]
        assert cells == expected, options
        flags = [line.get("needs_review", False) for line in read_lines(tmp_path / "out.jsonl")]
        assert flags == [False] * 3, "whole verdicts stay as they are"
        (tmp_path / "out.jsonl.partial").unlink()


def test_several_references_without_a_mode_are_named_once(run: Run, tmp_path: Path) -> None:
    several: dict[str, Any] = {"references": ["56", "fifty-six"]}
    rows = [
        row(**several),
        row(**several, label="Wrong"),
        row(),
        row(**several, reference_mode="any"),
    ]
    warning = (
        f"warning: {tmp_path / 'in.jsonl'}: 2 rows have several references and no reference_mode; "
        "'all' was taken (together they are the answer). If each one is enough, add "
        "--reference-mode any\n"
    )
    assert warning in run(rows).stderr
    assert "warning" not in run(rows[:2], "--reference-mode", "any", out="any.jsonl").stderr


def test_a_spreadsheet_keeps_its_cells_and_parquet_its_types(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "sheet.csv"
    source.write_text(
        'no,empty,q,gold,answer\n-1,,"What, then?",Paris,Paris\n,,x,Paris,"a\nb"\n\n2,,x,Paris\n'
    )
    maps = ["--map", "question=q", "--map", "references=gold", "--map", "response=answer"]
    files = ["--in", source, "--out", tmp_path / "graded.csv"]
    succeed("grade", "--judge", "fake", *files, *maps)
    with (tmp_path / "graded.csv").open(encoding="utf-8-sig", newline="") as file:
        header, *lines = csv.reader(file)
    assert header[:6] == ["no", "empty", "q", "gold", "answer", "status"]
    assert [line[:6] for line in lines] == [
        ["-1", "", "What, then?", "Paris", "Paris", "scored"],
        ["", "", "x", "Paris", "a\nb", "scored"],
        ["2", "", "x", "Paris", "", "scored"],
    ]
    day = datetime.date(2026, 1, 2)
    table = pa.table({"day": [day], "none": pa.array([None], pa.int32())} | column_of(row()))
    pq.write_table(table, tmp_path / "in.parquet")
    files = ["--in", tmp_path / "in.parquet", "--out", tmp_path / "graded.parquet"]
    succeed("grade", "--judge", "fake", *files, "--map", "question=question")
    graded = pq.read_table(tmp_path / "graded.parquet")
    assert graded.schema.types[:3] == table.schema.types[:3]
    assert graded.to_pylist()[0]["day"] == day


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_long_numbers_beside_fractions_keep_their_digits(
    run: Run, tmp_path: Path, name: str
) -> None:
    """A column of floats holds no 2**53 + 1."""
    numbers = [2**53 + 1, 0.5, 7]
    rows = [row(number=number, whole=2**53 + 1) for number in numbers]
    options = ("--map", "metadata.number=number", "--out", str(tmp_path / name))
    assert run(rows, *options).exit_code == 0
    if name == "out.csv":
        cells: list[Any] = read_csv(tmp_path / name)
    else:
        cells = pq.read_table(tmp_path / name).to_pylist()
    assert [(cell["number"], int(cell["whole"])) for cell in cells] == [
        (str(number), 2**53 + 1) for number in numbers
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_file_is_written_with_the_delimiter_of_the_source(
    run: Run, tmp_path: Path, delimiter: str
) -> None:
    source, out = tmp_path / "sheet.csv", tmp_path / "graded.csv"
    cells = [("question", "references", "response"), ("Which, then?", "Paris", "a;b")]
    with source.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(cells)
    succeed("grade", "--judge", "fake", "--in", source, "--out", out)
    with out.open(encoding="utf-8-sig", newline="") as file:
        header, line = csv.reader(file, delimiter=delimiter)
    assert [tuple(header[:3]), tuple(line[:3])] == cells


def column_of(fields: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: [value] for name, value in fields.items()}


def test_a_full_disk_under_a_parquet_file_is_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow, which writes it, has words of its own for the error."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def on_a_full_disk(*arguments: Any) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, limits[1]))
        try:
            write_verdicts(*arguments)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    monkeypatch.setattr("cli.grade.write_verdicts", on_a_full_disk)
    done = run(many(20), "--out", str(tmp_path / "out.parquet"))
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == f"error: {tmp_path / 'out.parquet'}: File too large"
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "out.parquet.partial"}


def test_a_row_and_an_option_agree_or_the_row_is_refused(run: Run, tmp_path: Path) -> None:
    rows = [row(judge="fake"), row(task="hieval-ea"), row(task="hieval-qs"), row()]
    assert run(rows, "--task", "hieval-qs").exit_code == 1
    verdicts = read_lines(tmp_path / "out.jsonl")
    assert [v["status"] for v in verdicts] == ["invalid", "invalid", "scored", "scored"]
    assert [v["message"] for v in verdicts[:2]] == [
        "field 'judge': rows of files name no judge; name it with --judge",
        "field 'task': the row has 'hieval-ea', --task is 'hieval-qs'",
    ]


@pytest.mark.parametrize(
    ("options", "label"), [((), "Wrong"), (("--reasoning", "keep"), "Correct")]
)
def test_thoughts_are_graded_if_that_is_wanted(
    run: Run, tmp_path: Path, options: tuple[str, ...], label: str
) -> None:
    rows = [row("<think>Paris?</think>Rome"), row("<think>Rome?</think>Paris")]
    assert run(rows, *options, "--csv", str(tmp_path / "out.csv")).exit_code == 0
    verdicts = read_lines(tmp_path / "out.jsonl")
    assert [verdict["label"] for verdict in verdicts] == [label, "Correct"]
    written = [cells["response"] for cells in read_csv(tmp_path / "out.csv")]
    assert written == [each["response"] for each in rows], "the raw text stays"


@pytest.mark.parametrize("option", ["--out", "--csv"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", b"question,references,response\nWhy?,so,no\n"),
        ("x.csv", b"not a table\n\x00\xff"),
        ("x.tsv", b"status\tnotes\nopen\tmine\n"),
        ("x.jsonl", b'{"id": "1", "status": "open"}\n'),
        ("x.jsonl", b"notes"),
        ("x.parquet", b"notes"),
        ("x.parquet", None),
    ],
)
def test_another_file_is_left_alone(
    run: Run, judge: FakeJudge, tmp_path: Path, option: str, name: str, content: bytes | None
) -> None:
    path = tmp_path / name
    if content is None:
        pq.write_table(pa.table({"status": ["open"]}), path)
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    if option == "--csv" and name.endswith(".jsonl"):
        pytest.skip("--csv takes no JSONL")
    result = run([row()], out=name) if option == "--out" else run([row()], "--csv", str(path))
    assert (result.exit_code, path.read_bytes(), judge.batches) == (2, before, [])
    assert result.stderr == (
        f"error: {option} '{path}': exists and is no earlier output of this command; "
        "name a new file\n"
    )
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.tsv", "out.parquet"])
def test_verdicts_and_empty_files_are_replaced(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert run([row(status="mine"), row()], "--map", "question=question", out=name).exit_code == 0
    before = (tmp_path / name).read_bytes()
    assert run([row()], "--map", "question=question", out=name).exit_code == 0
    assert (tmp_path / name).read_bytes() != before


def test_a_day_is_the_same_text_in_a_table_as_in_a_request() -> None:
    """Store days as pandas does: as times at midnight."""
    assert cell_text(datetime.datetime(2026, 1, 2)) == "2026-01-02"
    assert cell_text([datetime.datetime(2026, 1, 2)]) == '["2026-01-02"]'
    assert cell_text(datetime.datetime(2026, 1, 2, 3)) == "2026-01-02 03:00:00"
