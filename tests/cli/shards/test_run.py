"""Which files are shards, how each is graded, and which a run passes over; in this process."""

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import fsspec
import pyarrow.json
import pyarrow.parquet
import pytest
import typer
from typer.testing import CliRunner

from cli import shards as worker
from cli.main import app
from cli.shards import (
    Load,
    RayPool,
    Shard,
    ShardOutcome,
    ShardSettings,
    ShardWorker,
    grade_shard,
    grade_shards,
    list_shards,
    read_records,
)
from cli.shared.verdicts import Summary
from judging.errors import CustosError
from tests.cli.shards.conftest import Plain
from tests.cli.shards.made_up import SETTINGS, contents, write_shards
from tests.failing_files import FailingFiles
from tests.serve.made_up import FakeJudge


class PoolHere(RayPool):
    """One worker, without a cluster."""

    @contextmanager
    def connected(self) -> Iterator[int]:
        yield 1

    def grade(
        self,
        shards: Sequence[Shard],
        num_workers: int,
        worker: tuple[Load, ShardSettings, str | None],
    ) -> Iterator[ShardOutcome]:
        here = ShardWorker(*worker)
        for shard in shards:
            [text] = here({"shard": [shard.model_dump_json()]})["outcome"]
            yield ShardOutcome.model_validate_json(text)


@pytest.fixture
def judge() -> FakeJudge:
    return FakeJudge()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_shards(tmp_path / "in", 3, 5)
    return tmp_path


def run(
    folder: Path,
    judge: FakeJudge,
    settings: ShardSettings = SETTINGS,
    *,
    retry_failed: bool = False,
    allow_failed: bool = False,
    ending: str = "jsonl",
) -> None:
    files = f"{folder}/in/*.jsonl", f"{folder}/out/*.{ending}"
    pool = PoolHere("local")
    grade_shards(*files, pool, lambda: judge, settings, 0, retry_failed, allow_failed)


def graded(judge: FakeJudge) -> set[str]:
    """Names of the shards that a judge was given rows of since the last call."""
    shards = {row.partition("-")[0] for batch in judge.batches for row in batch}
    judge.batches.clear()
    return shards


def add_shard(folder: Path) -> None:
    text = (folder / "in" / "s2.jsonl").read_text().replace("s2-", "s3-")
    (folder / "in" / "s3.jsonl").write_text(text)


def test_only_new_and_changed_shards_are_graded(folder: Path, judge: FakeJudge) -> None:
    run(folder, judge)
    assert graded(judge) == {"s0", "s1", "s2"}
    first = contents(folder / "out")
    with (folder / "in" / "s1.jsonl").open("a") as file:
        file.write("\n")
    add_shard(folder)
    run(folder, judge)
    assert graded(judge) == {"s1", "s3"}
    assert contents(folder / "out").items() >= first.items()
    run(folder, judge)
    assert graded(judge) == set()


def test_failed_rows(folder: Path, judge: FakeJudge, capsys: pytest.CaptureFixture[str]) -> None:
    with (folder / "in" / "s1.jsonl").open("a") as file:
        file.write("{\n")
    with pytest.raises(typer.Exit):
        run(folder, judge)
    told = capsys.readouterr()
    assert "16 rows graded (15 scored, 1 invalid): " in told.out
    assert (
        f"error: 1 rows in 1 shards have no verdict; the first: {folder}/in/s1.jsonl: row 6: "
        in told.err
    )
    graded(judge)
    run(folder, judge, allow_failed=True)
    assert graded(judge) == set()
    run(folder, judge, retry_failed=True, allow_failed=True)
    assert graded(judge) == {"s1"}


def test_a_shard_that_cannot_be_read_does_not_keep_others(
    folder: Path, judge: FakeJudge, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "in" / "s1.jsonl").rename(folder / "in" / "s1.parquet")
    files = f"{folder}/in/*", f"{folder}/out/*.jsonl"
    with pytest.raises(typer.Exit):
        grade_shards(*files, PoolHere("local"), lambda: judge, SETTINGS, 0, False, False)
    assert graded(judge) == {"s0", "s2"}
    told = capsys.readouterr()
    assert f"error: 1 of 3 shards are not graded; the first: {folder}/in/s1.parquet: " in told.err


def test_another_judge_or_other_options_are_refused(folder: Path, judge: FakeJudge) -> None:
    run(folder, judge)
    first = contents(folder / "out")
    add_shard(folder)
    with pytest.raises(CustosError, match="under other options"):
        run(folder, judge, SETTINGS.model_copy(update={"batch": 2}))
    with pytest.raises(CustosError, match="is not that of the shards that are done"):
        run(folder, FakeJudge("other"))
    assert contents(folder / "out") == first


def test_machines_with_different_judges_are_refused(folder: Path) -> None:
    judges = iter([FakeJudge(), FakeJudge("other")])

    class TwoMachines(PoolHere):
        def grade(self, shards: Sequence[Shard], *arguments: object) -> Iterator[ShardOutcome]:
            for shard in shards[:2]:
                yield from super().grade([shard], 1, (lambda: next(judges), SETTINGS, None))

    files = f"{folder}/in/*.jsonl", f"{folder}/out/*.jsonl"
    with pytest.raises(CustosError, match="s1.jsonl is graded by another judge"):
        grade_shards(*files, TwoMachines("local"), FakeJudge, SETTINGS, 0, False, False)


def test_ray_that_is_not_installed_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = on_ray(folder, "auto")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "Ray is not installed" in done.stderr


def on_ray(folder: Path, address: str, *more: str) -> Any:
    files = ["--in", f"{folder}/in/*.jsonl", "--out", f"{folder}/out-*.jsonl"]
    return CliRunner().invoke(app, ["grade", "--judge", "fake", "--ray", address, *files, *more])


def test_a_table_beside_is_refused(folder: Path) -> None:
    done = on_ray(folder, "local", "--csv", f"{folder}/graded.csv")
    assert done.exit_code == 2
    assert "choose the form of the output by the ending of --out" in done.stderr


def test_a_file_that_holds_no_verdicts_is_left_alone(folder: Path, judge: FakeJudge) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "s1.jsonl").write_text("mine")
    with pytest.raises(CustosError, match="s1.jsonl': exists and is no earlier output"):
        run(folder, judge)
    assert graded(judge) == set()


def test_the_records_of_one_output_are_not_those_of_another(folder: Path, judge: FakeJudge) -> None:
    """Files of verdicts by an earlier judge are not taken for those of a later one."""
    run(folder, FakeJudge("earlier"))
    run(folder, judge, ending="csv")
    add_shard(folder)
    with pytest.raises(CustosError, match="is not that of the shards that are done"):
        run(folder, judge)


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
        ("in/*.jsonl", "in/*-graded.jsonl", "these are the files of --in"),
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
    tmp_path: Path, plain: Plain, capsys: pytest.CaptureFixture[str], source: str, out: str
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
    counts = Summary(())
    for each in (record, record):
        counts.add(each.statuses, each.tallies)
    counts.show("out")
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
    assert (record.statuses.total(), record.num_failed) == (3, 1)
    assert (record.failure or "").startswith("row 3: not valid JSON")


def shard_in(folder: Path) -> Shard:
    write_shards(folder, 1, 10)
    [shard] = list_shards(f"{folder}/*.jsonl", f"{folder}/out/*.jsonl")
    return shard


def test_a_shard_that_changes_leaves_nothing(tmp_path: Path) -> None:
    shard = shard_in(tmp_path)
    os.utime(shard.source, (1, 1))
    with pytest.raises(CustosError, match="has changed while it was graded"):
        grade_shard(shard, FakeJudge(), "digest", SETTINGS)
    assert not (tmp_path / "out").exists()


def test_a_worker_that_dies_between_verdicts_and_record_has_not_done_the_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = shard_in(tmp_path)

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


@pytest.mark.parametrize(
    ("address", "raised", "message"),
    [
        ("local", Exception("The current node timed out during startup."), "too busy"),
        ("local", ValueError("no room\nmore"), "Ray does not start: no room"),
        ("10.0.0.1:6379", RuntimeError("No GCS.\nCheck it."), "correct the address: No GCS."),
    ],
)
def test_a_cluster_that_is_not_there_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, address: str, raised: Exception, message: str
) -> None:
    """Ray, which stands in here, raises what it raises in such a case."""

    def init(*_: object, **__: object) -> None:
        raise raised

    stand_in, data = ModuleType("ray"), ModuleType("ray.data")
    vars(stand_in).update(init=init, data=data)
    vars(data).update(DataContext=object)
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    monkeypatch.setitem(sys.modules, "ray.data", data)
    done = on_ray(folder, address)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"error: --ray {address}: ") and message in done.stderr
