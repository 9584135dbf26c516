"""The cache while its file fails at any call: never a wrong verdict, never half of a write."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judging import JudgeRequest, Verdict
from serve.queue.service import Service
from serve.queue.verdict_cache import CACHE_ERRORS, VerdictCache
from tests.serve.made_up import FakeJudge, row

FAULTS = ("database or disk is full", "disk I/O error", "database is locked")


class Failing(sqlite3.Connection):
    """A connection of which one statement fails, counted over all connections."""

    left: int | None = None
    """Statements until then; ``None``: none fails."""
    num_statements = 0
    fault = FAULTS[0]

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        Failing.num_statements += 1
        if Failing.left is not None:
            Failing.left -= 1
            if Failing.left < 0:
                Failing.left = None
                raise sqlite3.OperationalError(Failing.fault)
        return super().execute(*arguments)


@pytest.fixture(autouse=True)
def _failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: connect(*args, factory=Failing, **options)
    )
    Failing.left = None
    yield
    Failing.left = None


def verdict(text: str) -> Verdict:
    return Verdict(status="scored", label="Correct", message=text)


def pair(number: int) -> dict[bytes, Verdict]:
    """Two verdicts that are written together."""
    return {f"{number}{side}".encode(): verdict(f"{number}{side}") for side in "ab"}


def statements_of_a_put(folder: Path) -> int:
    cache = VerdictCache(folder, 1_000_000)
    before = Failing.num_statements
    cache.put(pair(0), pair(0))
    cache.close()
    return Failing.num_statements - before


@pytest.mark.parametrize("fault", FAULTS)
def test_a_write_that_fails_anywhere_leaves_all_or_nothing(tmp_path: Path, fault: str) -> None:
    num_statements = statements_of_a_put(tmp_path / "clean")
    assert num_statements >= 6
    Failing.fault = fault
    for failing in range(num_statements):
        cache = VerdictCache(tmp_path / str(failing), 1_000_000)
        cache.put(pair(1))
        Failing.left = failing
        with pytest.raises(CACHE_ERRORS):
            cache.put(pair(2), pair(1))
        assert cache.get([*pair(1), *pair(2), b"3a"]) == pair(1)
        cache.put(pair(3))  # it goes on
        cache.close()
        again = VerdictCache(tmp_path / str(failing), 1_000_000)
        assert again.get([*pair(1), *pair(2), *pair(3)]) == pair(1) | pair(3)
        again.close()


def test_a_disk_that_is_really_full_keeps_what_was_there(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path, 100_000_000)
    cache.put(pair(1))
    # SQLite then answers as on a full disk, in the middle of a transaction.
    pages = cache._writer.execute("PRAGMA page_count").fetchone()[0]
    cache._writer.execute(f"PRAGMA max_page_count = {pages + 5}")
    large = {str(number).encode(): verdict("x" * 3000) for number in range(50)}
    with pytest.raises(sqlite3.OperationalError, match="full"):
        cache.put(large)
    assert cache.get([*pair(1), *large]) == pair(1)
    cache.close()


def test_a_service_answers_whichever_call_of_its_cache_fails(tmp_path: Path) -> None:
    """Each of the first 25 statements in turn; every answer is that of the judge."""
    requests = [JudgeRequest.model_validate(row(text)) for text in ("Paris", "Rome", "Paris")]

    async def labels(cache: VerdictCache) -> list[str | None]:
        service = Service({"a": FakeJudge()}, cache=cache)
        try:
            verdicts = [(await service.grade([request], ["a"]))[0] for request in requests]
        finally:
            await asyncio.to_thread(service.close)
        return [verdict.label for verdict in verdicts]

    for failing in range(25):
        cache = VerdictCache(tmp_path / str(failing), 1_000_000)
        Failing.left = failing
        assert asyncio.run(labels(cache)) == ["Correct", "Wrong", "Correct"]
        Failing.left = None
