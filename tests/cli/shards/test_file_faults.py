"""A shard while one call on its files fails: the record stands only beside whole verdicts."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from cli.shards.run import grade_shard
from cli.shards.shards import Shard, list_shards, read_records
from tests.cli.shards.made_up import SETTINGS, contents, write_shards
from tests.failing_files import FailingFiles
from tests.serve.made_up import FakeJudge


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
