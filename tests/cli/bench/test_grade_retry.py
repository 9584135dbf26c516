"""Grading a benchmark after failures: what was paid for is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.bench.made_up import charthal_responses, fail_on, read, run, write
from tests.clients.fake_server import FakeServer


@pytest.fixture
def grade(fake: FakeServer, tmp_path: Path) -> list[str | Path]:
    source = write(tmp_path / "in.json", charthal_responses("one", "two", "three"))
    judge = ("--judge", fake.url, "--model", "m", "--responses", source)
    return ["grade", "charthal", *judge, "--out", tmp_path / "out.json"]


def test_grading_asks_again_only_for_what_failed(
    fake: FakeServer, grade: list[str | Path], tmp_path: Path
) -> None:
    out, partial = tmp_path / "out.json", tmp_path / "out.json.partial"
    fail_on("two", fake)
    done = run(*grade)
    assert (done.exit_code, len(fake.seen)) == (0, 3)
    assert f"1 failed, kept in {partial}; --retry-failed grades them again\n" in done.stderr
    first = read(out)
    fail_on("nothing", fake)
    assert run(*grade).exit_code == 0
    assert (fake.seen, read(out)) == ([], first)
    done = run(*grade, "--retry-failed")
    assert done.exit_code == 0
    assert ["two" in seen.text for seen in fake.seen] == [True]
    assert [row["score"] for row in read(out).values()] == [1, 1, 1]
    assert not partial.exists()


def test_grading_without_a_single_verdict_fails(
    fake: FakeServer, grade: list[str | Path], tmp_path: Path
) -> None:
    fail_on("Who won?", fake)
    done = run(*grade)
    assert done.exit_code == 1
    assert done.stderr.endswith(f"error: {tmp_path / 'in.json'}: no row got a verdict\n")
    assert (tmp_path / "out.json.partial").exists()


def test_grading_does_not_overwrite_the_items(grade: list[str | Path], tmp_path: Path) -> None:
    items = write(tmp_path / "items.json", charthal_responses("one"))
    done = run(*grade, "--items", items, "--out", items)
    assert done.exit_code == 2
    assert f"--out '{items}': that is another file of this command" in done.stderr
    assert read(items) == charthal_responses("one")
