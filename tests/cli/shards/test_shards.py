"""Which files are shards; one is graded as a file is, whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import fsspec
import pyarrow.json
import pyarrow.parquet
import pytest

from cli.shards import run as worker
from cli.shards.run import grade_shard, judge_digest
from cli.shards.shards import Shard, list_shards, read_records, total
from judging.errors import CustosError
from judging.types import JudgeRequest
from tests.cli.shards.conftest import Plain
from tests.cli.shards.made_up import SETTINGS, contents, write_shards
from tests.failing_files import FailingFiles
from tests.serve.made_up import FakeJudge


def test_every_shard_has_an_output_of_its_name(tmp_path: Path) -> None:
    write_shards(tmp_path / "in", 3, 1)
    shards = list_shards(f"{tmp_path}/in/*.jsonl", f"{tmp_path}/out/graded-*.parquet")
    assert [shard.source for shard in shards] == [f"{tmp_path}/in/s{n}.jsonl" for n in range(3)]
    assert shards[1].out == f"{tmp_path}/out/graded-s1.parquet"
    assert shards[1].record == f"{tmp_path}/out/_graded/graded-s1.parquet.json"


def test_paths_are_absolute_and_the_content_makes_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_shards(tmp_path / "in", 2, 1)
    first = list_shards("in/*.jsonl", "out/*.jsonl")
    assert first[0].source == f"{tmp_path}/in/s0.jsonl"
    assert first[0].out == f"{tmp_path}/out/s0.jsonl"
    os.chmod("in/s0.jsonl", 0o600)
    assert list_shards("in/*.jsonl", "out/*.jsonl") == first
    os.utime("in/s1.jsonl", (1, 1))
    again = list_shards("in/*.jsonl", "out/*.jsonl")
    assert (again[0] == first[0], again[1] == first[1]) == (True, False)


@pytest.mark.parametrize(
    ("source", "out", "message"),
    [
        ("in/*.jsonl", "out/x.jsonl", "name a file for each shard"),
        ("in/*.jsonl", "*/*.jsonl", "name a file for each shard"),
        ("in/*.jsonl", "out/*.txt", "the ending is one of .jsonl, .csv"),
        ("in/*.parquet", "out/*.jsonl", "no file has such a name"),
        ("in/*", "out/*.jsonl", "notes.txt: expected one of .jsonl"),
        ("in/*.jsonl", "in/*.jsonl", "these are the files of --in"),
        ("nowhere://in/*.jsonl", "out/*.jsonl", "Protocol not known: nowhere"),
    ],
)
def test_patterns_that_do_not_go_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, out: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_shards(tmp_path / "in", 1, 1)
    (tmp_path / "in" / "notes.txt").touch()
    with pytest.raises(CustosError, match=message):
        list_shards(source, out)


def test_two_shards_of_one_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_shards(tmp_path / name, 1, 1)
    with pytest.raises(CustosError, match="2 shards would be written to .*/s0.jsonl"):
        list_shards(f"{tmp_path}/[ab]/*.jsonl", f"{tmp_path}/out/*.jsonl")


@pytest.mark.parametrize("out", ["jsonl", "csv"])
@pytest.mark.parametrize("source", ["jsonl", "parquet"])
def test_the_verdicts_are_those_of_plain_grading(
    tmp_path: Path,
    plain: Plain,
    capsys: pytest.CaptureFixture[str],
    source: str,
    out: str,
) -> None:
    write_shards(tmp_path, 1, 10)
    table = pyarrow.json.read_json(tmp_path / "s0.jsonl")
    pyarrow.parquet.write_table(table, tmp_path / "s0.parquet")
    [shard] = list_shards(f"{tmp_path}/s0.{source}", f"{tmp_path}/out/*.{out}")
    record = grade_shard(shard, FakeJudge(), "digest", SETTINGS)
    graded = (tmp_path / "out" / f"s0.{out}").read_bytes()
    assert graded == plain(tmp_path / f"s0.{source}", f".{out}")
    assert (record.statuses, record.failure) == ({"scored": 10}, None)
    assert read_records([shard]) == {shard.source: record}
    total([record, record]).show("out")
    told = capsys.readouterr().out.splitlines()
    assert told[1:] == ["fake graded 20 under hieval-qs/plain/all: 12 Correct, 8 Wrong"]


def test_a_bucket(tmp_path: Path, plain: Plain) -> None:
    write_shards(tmp_path / "in", 2, 10)
    bucket = fsspec.filesystem("memory")
    try:
        bucket.put(f"{tmp_path}/in/*.jsonl", "/rows/")
        shards = list_shards("memory://rows/*.jsonl", "memory://verdicts/*.jsonl")
        assert [shard.source for shard in shards] == [f"memory:///rows/s{n}.jsonl" for n in (0, 1)]
        record = grade_shard(shards[1], FakeJudge(), "digest", SETTINGS)
        assert read_records(shards) == {shards[1].source: record}
        graded = bucket.cat_file("/verdicts/s1.jsonl")
        assert graded == plain(tmp_path / "in" / "s1.jsonl", ".jsonl")
        bucket.pipe("/rows/s1.jsonl", b"changed")
        assert read_records(list_shards("memory://rows/*.jsonl", "memory://verdicts/*.jsonl")) == {}
    finally:
        bucket.rm("/rows", recursive=True)
        bucket.rm("/verdicts", recursive=True)


def test_a_row_without_a_verdict_is_in_the_record(tmp_path: Path) -> None:
    write_shards(tmp_path, 1, 2)
    with (tmp_path / "s0.jsonl").open("a") as file:
        file.write("{\n")
    [shard] = list_shards(f"{tmp_path}/s0.jsonl", f"{tmp_path}/out/*.jsonl")
    record = grade_shard(shard, FakeJudge(), "digest", SETTINGS)
    assert (record.num_rows, record.num_failed) == (3, 1)
    assert (record.failure or "").startswith("row 3: not valid JSON")


def test_a_shard_that_changes_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path / "in", 1, 10)
    [shard] = list_shards(f"{tmp_path}/in/*.jsonl", f"{tmp_path}/out/*.jsonl")
    os.utime(shard.source, (1, 1))
    with pytest.raises(CustosError, match="has changed while it was graded"):
        grade_shard(shard, FakeJudge(), "digest", SETTINGS)
    assert not (tmp_path / "out").exists()


def test_a_worker_that_dies_between_verdicts_and_record_has_not_done_the_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path / "in", 1, 10)
    [shard] = list_shards(f"{tmp_path}/in/*.jsonl", f"{tmp_path}/out/*.jsonl")

    def die(path: Path, value: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(worker, "write_json", die)
        grade_shard(shard, FakeJudge(), "digest", SETTINGS)
    assert read_records([shard]) == {}
    first = contents(tmp_path / "out")
    grade_shard(shard, FakeJudge(), "digest", SETTINGS)
    assert contents(tmp_path / "out") == first
    (tmp_path / "out" / "s0.jsonl").unlink()
    assert read_records([shard]) == {}, "a record without verdicts counts for nothing"


def test_the_digest_of_a_judge_changes_with_its_fingerprints() -> None:
    class Particular(FakeJudge):
        def fingerprint(self, request: JudgeRequest) -> str:
            if request.task != "hieval-qs":
                raise CustosError("this judge does not take the task")
            return super().fingerprint(request)

    digests = {judge_digest(judge) for judge in (FakeJudge(), FakeJudge("other"), Particular())}
    assert len(digests) == 3
    assert judge_digest(FakeJudge()) in digests


def shard_in(folder: Path) -> Shard:
    write_shards(folder, 1, 10)
    [shard] = list_shards(f"{folder}/*.jsonl", f"{folder}/out/*.jsonl")
    return shard


def test_whichever_call_fails_a_shard_is_done_or_graded_again(tmp_path: Path) -> None:
    calls = FailingFiles(tmp_path / "clean")
    shard = shard_in(tmp_path / "clean")
    with calls.failing():
        grade_shard(shard, FakeJudge(), "digest", SETTINGS)
    whole = contents(tmp_path / "clean" / "out")
    for number, call in enumerate(calls.calls):
        folder = tmp_path / str(number)
        shard = shard_in(folder)
        failing = FailingFiles(folder, number, errno.ENOSPC)
        with failing.failing(), pytest.raises(OSError, match="No space left on device") as caught:
            grade_shard(shard, FakeJudge(), "digest", SETTINGS)
        assert str(caught.value.filename).startswith(str(folder)), call
        is_done = bool(read_records([shard]))
        assert contents(folder / "out") == whole if is_done else not list(folder.glob("out/.*"))
        if not is_done:
            grade_shard(shard, FakeJudge(), "digest", SETTINGS)
        assert contents(folder / "out") == whole, call
        assert len(read_records([shard])) == 1, call
        assert len(contents(folder / "out" / "_graded")) == 1, call
    assert sum(call.startswith("replace") for call in calls.calls) == 2, calls.calls
