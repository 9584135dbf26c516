"""Shards with made-up rows, and a judge that writes down what it grades and can be made to die."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil

from cli.shards import ShardSettings
from data_prep.tables.mapping import TableMapping
from judging.types import JudgeRequest, Verdict
from tests.cli.made_up import write_lines
from tests.serve.made_up import FakeJudge, row

SETTINGS = ShardSettings(mapping=TableMapping(), risk=None, batch=4)


class LoggingJudge(FakeJudge):
    """Writes the ids of the rows that it grades to a log, and dies at some.

    It dies at each row that says "die always", and once at a row that says "die".

    Args:
        folder: Where the log lies.
        pause_s: Seconds for each row.
    """

    def __init__(self, folder: Path, pause_s: float = 0.0) -> None:
        super().__init__(pause_s=pause_s)
        self._folder = folder

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        for verdict in super().grade(requests, **options):
            with (self._folder / "graded.log").open("a") as log:
                log.write(f"{verdict.id}\n")
            yield verdict

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        died = self._folder / "died"
        if "die always" in request.response or ("die" in request.response and not died.exists()):
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().verdict_on(request, confidence)


class MeasuredJudge(FakeJudge):
    """Keeps nothing of what it grades; writes time, CPU time and memory of its process to a log.

    Args:
        folder: Where the log lies.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._log = folder / "measured.log"

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        verdicts = [self.verdict_on(request, 0.9) for request in requests]
        size = psutil.Process().memory_info().rss / 2**20
        with self._log.open("a") as log:
            log.write(f"{time.time():.1f} {time.process_time():.2f} {size:.1f}\n")
        yield from verdicts


def times_graded(folder: Path) -> Counter[str]:
    """How often each row was graded, by its id."""
    return Counter((folder / "graded.log").read_text().split())


def write_shards(folder: Path, num_shards: int, num_rows: int) -> None:
    """Write shards whose rows have ids such as ``s2-r3``."""
    folder.mkdir(exist_ok=True)
    for shard in range(num_shards):
        rows = [
            row("Paris" if number % 3 else "Rome", id=f"s{shard}-r{number}")
            for number in range(num_rows)
        ]
        write_lines(folder / f"s{shard}.jsonl", rows)


def contents(folder: Path) -> dict[str, bytes]:
    """The files in a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def wait_for_files(pattern: Path, count: int, seconds: float = 60) -> None:
    """Wait until so many files match, or fail."""
    end = time.monotonic() + seconds
    while len(list(pattern.parent.glob(pattern.name))) < count:
        assert time.monotonic() < end, f"{pattern}: fewer than {count} files after {seconds} s"
        time.sleep(0.05)
