"""Which files are shards, and what is made of them."""

import os
from pathlib import Path

import pytest

from cli.shards.shards import list_shards
from judging.errors import CustosError
from tests.cli.shards.made_up import write_shards


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
