"""A shard is graded as a file is, whole or not at all, on a disk and in a bucket."""

from __future__ import annotations

import os
from pathlib import Path

import fsspec
import pyarrow.json
import pyarrow.parquet
import pytest

from cli.shards import run as worker
from cli.shards.run import grade_shard, judge_digest
from cli.shards.shards import list_shards, read_records, total
from judging.errors import CustosError
from judging.types import JudgeRequest
from tests.cli.shards.conftest import Plain
from tests.cli.shards.made_up import SETTINGS, contents, write_shards
from tests.serve.made_up import FakeJudge


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
