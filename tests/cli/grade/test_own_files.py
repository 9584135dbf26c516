"""``custos grade`` replaces files of verdicts, and no other file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.grade.test_verdicts import Run, judge, run
from tests.serve.made_up import FakeJudge, row

__all__ = ["judge", "run"]


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
