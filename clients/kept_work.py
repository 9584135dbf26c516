"""A file of verdicts while it is filled: kept across runs, by one run at a time."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Protocol

import typer
from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from judging import CustosError, JudgeRequest, Verdict
from judging.fingerprint import picture_sha256
from judging.records import write_records
from judging.tasks import get_task

Read = Callable[[], Iterator[tuple[int, JudgeRequest]]]

RetryFailed = Annotated[
    bool,
    typer.Option("--retry-failed", help="Ask again for what OUT.partial holds as failed."),
]


class Grader(Protocol):
    """What fills a file with verdicts: a judge of ours, or a chat model as a judge."""

    name: str

    def fingerprint(self, request: JudgeRequest) -> str:
        """Digest of everything that could change this request's verdict."""
        ...

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """One verdict per request, in order."""
        ...


class Saved(BaseModel):
    """A line of the partial file: a verdict, and what it is a verdict on."""

    row: int
    key: str
    verdict: Verdict

    @property
    def failed(self) -> bool:
        """Whether the row could not be judged, and may be another time."""
        return self.verdict.status == "judge_error"


def partial_of(out: Path) -> Path:
    """Where the verdicts for a file are kept until it is complete."""
    return out.with_name(f"{out.name}.partial")


@contextmanager
def locked(partial: Path) -> Iterator[None]:
    """Keep other runs from a partial file, until what is made of it is written.

    Raises:
        CustosError: If another run is filling it.
    """
    lock = partial.with_name(f"{partial.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as file:
        try:  # the system lets go of it when the process dies, too
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A run that has just ended takes its lock away; that one holds nobody off.
            is_held = os.path.samestat(os.fstat(file.fileno()), os.stat(lock))
        except (BlockingIOError, FileNotFoundError):
            is_held = False
        if not is_held:
            raise CustosError(f"{partial}: another run is writing it; wait for that one")
        try:
            yield
        finally:
            lock.unlink()


def fill_showing(
    partial: Path, judge: Grader, read: Read, total: int, batch: int, retry_failed: bool
) -> None:
    """``fill`` behind a progress bar on standard error, where it says too what failed.

    Raises:
        CustosError: If there came to be other than ``total`` verdicts.
    """
    num_saved = 0
    with _progress() as progress:
        bar = progress.add_task("grading", total=total)
        for num_saved in fill(partial, judge, read, batch, retry_failed):
            progress.update(bar, completed=num_saved)
    if num_saved != total:
        raise CustosError(
            f"{partial}: {num_saved} verdicts on {total} rows; has the input changed meanwhile?"
        )
    if num_failed := sum(saved.failed for saved in read_saved(partial)):
        typer.echo(f"{num_failed} failed, kept in {partial}; --retry-failed asks again", err=True)


def remove_unless_failed(partial: Path) -> None:
    """Remove a partial file whose verdicts are written, unless some can be asked for again."""
    if partial.exists() and not any(saved.failed for saved in read_saved(partial)):
        partial.unlink()


def fill(partial: Path, judge: Grader, read: Read, batch: int, retry_failed: bool) -> Iterator[int]:
    """Bring a partial file up to one line per request; yield how many it holds as it grows.

    Lines that an earlier run wrote for the same requests and judge are kept, in whole batches, so
    that every batch is made of the same rows as in a run that was never stopped.

    Args:
        partial: The partial file.
        judge: Who grades.
        read: Starts over each time it is called: row numbers and requests.
        batch: Requests graded between two saves.
        retry_failed: First grade again the kept rows that could not be judged, side by side.
    """
    num_saved = keep_matching(partial, judge, read, batch)
    if retry_failed:
        grade_failed(partial, judge, read, batch)
    with partial.open("a", encoding="utf-8") as file:
        yield num_saved
        rest = itertools.islice(read(), num_saved, None)
        while rows := list(itertools.islice(rest, batch)):
            verdicts = judge.grade([request for _, request in rows])
            for (row, request), verdict in zip(rows, verdicts, strict=True):
                saved = Saved(row=row, key=request_key(judge, request), verdict=verdict)
                file.write(saved.model_dump_json(exclude_unset=True) + "\n")
            file.flush()
            os.fsync(file.fileno())
            num_saved += len(rows)
            yield num_saved


def grade_failed(partial: Path, judge: Grader, read: Read, batch: int) -> None:
    """Grade again the rows of a partial file that could not be judged."""
    failed = (
        (number, request)
        for number, (saved, (_, request)) in enumerate(
            zip(read_saved(partial), read(), strict=False)
        )
        if saved.failed
    )
    again: dict[int, Verdict] = {}
    while rows := list(itertools.islice(failed, batch)):
        verdicts = judge.grade([request for _, request in rows])
        again.update(zip((number for number, _ in rows), verdicts, strict=True))
    if again:
        write_records(
            partial,
            (
                saved.model_copy(update={"verdict": again.get(number, saved.verdict)})
                for number, saved in enumerate(read_saved(partial))
            ),
        )


def keep_matching(partial: Path, judge: Grader, read: Read, batch: int) -> int:
    """Cut a partial file after its last whole batch that still holds; return how many lines stay.

    Cut-off or damaged lines, changed rows and another judge's verdicts all end what is kept. The
    last batch of a complete file is whole, however short.
    """
    number = num_kept = end = 0
    with partial.open("ab+") as file:
        file.seek(0)
        for number, (row, request) in enumerate(read(), 1):
            saved = _parse_saved(file.readline())
            if saved is None or (saved.row, saved.key) != (row, request_key(judge, request)):
                break
            if number % batch == 0:
                num_kept, end = number, file.tell()
        else:
            if not file.readline():
                num_kept, end = number, file.tell()
        file.truncate(end)
    return num_kept


def request_key(judge: Grader, request: JudgeRequest) -> str:
    """SHA-256 of a request, its pictures' content and the judge that it was put to."""
    try:
        get_task(request.task).check(request)
        fingerprint = judge.fingerprint(request)
    except CustosError:  # the verdict says the same
        fingerprint = ""
    content = {
        **request.model_dump(),
        "images": [picture_sha256(source) for source in request.images],
        "judge": [judge.name, fingerprint],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def read_saved(partial: Path) -> Iterator[Saved]:
    """Read back a complete partial file."""
    with partial.open("rb") as file:
        for line in file:
            yield Saved.model_validate_json(line)


def _parse_saved(line: bytes) -> Saved | None:
    try:
        return Saved.model_validate_json(line) if line.endswith(b"\n") else None
    except ValidationError:
        return None


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
