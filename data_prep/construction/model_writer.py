"""Records that a model writes: ask for each of them, read the replies, write what can be used.

A reply in the wrong form can be asked for once more: the model then sees its reply and what is
wrong with it. A folder holds ``answers.jsonl`` (all replies, from which a later run continues), the
files of a construction, ``rejects.jsonl`` (requests without a usable reply, with the reason) and,
last, ``manifest.json``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from clients.chat import Prices, Reply
from clients.connection import ModelServer
from clients.jobs import JobResult, OnProgress, Reject, run_job
from clients.messages import ChatItem, Decoding
from data_prep.construction.steps.base import Step, StepRow
from data_prep.errors import UnusableText
from data_prep.splits.manifest import check_replaceable, write_with_manifest
from judging.errors import CustosError, FieldError
from judging.files.records import read_records, write_records
from judging.fingerprint import file_sha256
from judging.messages import Message

ANSWERS, REJECTS = "answers.jsonl", "rejects.jsonl"

T = TypeVar("T")


@dataclass(frozen=True)
class Request(Generic[T]):
    """A request for one record, with the function that makes the record from the reply."""

    item: ChatItem
    read: Callable[[Reply], T]
    """Raises ``UnusableText`` if no record can be made from a reply."""


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """Records made from a model's replies, and the requests that brought none."""

    job: JobResult
    results: dict[str, T | Reject]
    """Item id to its record or, if there is none, the reason; in the order of the requests."""

    @property
    def records(self) -> list[T]:
        """Return the records that the model wrote, in the order of the requests."""
        return [result for result in self.results.values() if not isinstance(result, Reject)]

    @property
    def rejects(self) -> list[Reject]:
        """Return the requests that brought none, in their order."""
        return [result for result in self.results.values() if isinstance(result, Reject)]


@dataclass(frozen=True)
class ModelWriter:
    """A model that writes records, and the folder that they go to."""

    server: ModelServer
    decoding: Decoding
    prices: Prices | None
    """Prices of the model's tokens, if known."""
    out: Path
    """Folder to write to; made if it is missing."""
    source: Mapping[str, Any]
    """Description, for the manifest, of what the records are made from."""
    command: str
    """Command line that can repeat this."""
    on_progress: OnProgress | None = None
    """Called as requests are done, to show a progress bar."""

    def ask(self, requests: Sequence[Request[T]], *, mend: bool = False) -> Outcome[T]:
        """Send the requests that have no reply in the folder yet, and read all replies.

        Args:
            requests: What to ask for.
            mend: Ask once more for a reply in the wrong form (``UnusableText.mendable``).

        Raises:
            CustosError: As ``run_job``.
        """
        job = run_job(
            [request.item for request in requests],
            self.server,
            self.decoding,
            answers=self.out / ANSWERS,
            rejects=self.out / REJECTS,
            on_progress=self.on_progress,
        )
        results: dict[str, T | Reject] = {reject.id: reject for reject in job.rejects}
        mended: dict[str, Request[T]] = {}
        for request in requests:
            name = request.item.id
            if name not in job.replies:
                continue
            try:
                results[name] = request.read(job.replies[name])
            except UnusableText as error:
                results[name] = Reject(id=name, reason=error.reason, detail=str(error))
                if mend and error.mendable:
                    mended[name] = _mended(request, job.replies[name], error)
        if mended:
            second = self.ask(list(mended.values()))
            job = _joined(job, second.job)
            for name, request in mended.items():
                result = second.results[request.item.id]
                if isinstance(result, Reject):
                    result = result.model_copy(update={"id": name})
                results[name] = result
        return Outcome(job, {request.item.id: results[request.item.id] for request in requests})

    def write(
        self,
        outcome: Outcome[T],
        files: Mapping[str, Iterable[BaseModel | Mapping[str, Any]]],
        counts: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Write files, rejects and the manifest to the folder.

        Args:
            outcome: Result of :meth:`ask`.
            files: Name of each JSONL file to its rows.
            counts: Numbers of the records, for the manifest.

        Returns:
            The manifest.
        """
        with write_with_manifest(self.out, source=self.source, command=self.command) as manifest:
            written = {**files, REJECTS: outcome.rejects}
            for name, rows in written.items():
                write_records(self.out / name, rows)
            rejected = Counter(reject.reason for reject in outcome.rejects)
            manifest.update(
                model=self.server.model,
                decoding=self.decoding.model_dump(exclude_none=True),
                outputs={name: file_sha256(self.out / name) for name in written},
                **counts,
                rejected=dict(sorted(rejected.items())),
                **outcome.job.account(self.prices),
            )
        return manifest


def _mended(request: Request[T], reply: Reply, error: UnusableText) -> Request[T]:
    """Return the request once more, with the reply and what is wrong with it."""
    turns = (
        Message(role="assistant", text=reply.text or "(an empty reply)"),
        Message(
            role="user",
            text=f"This reply cannot be read: {error}. Reply once more, in the form that was asked "
            "for and with nothing else.",
        ),
    )
    item = request.item
    again = ChatItem(id=f"{item.id} (again)", messages=(*item.messages, *turns))
    return replace(request, item=again)


def _joined(first: JobResult, second: JobResult) -> JobResult:
    """Return two jobs as one, so that all replies are counted and paid for once."""
    return JobResult(
        {**first.replies, **second.replies},
        [*first.rejects, *second.rejects],
        first.num_reused + second.num_reused,
    )


ROWS = "rows.jsonl"

R = TypeVar("R", bound=StepRow)


def load_rows(path: Path, row_type: type[R], bad_rows: list[str] | None = None) -> list[R]:
    """Read the rows that go into a step.

    Args:
        path: File of rows; pictures are relative to it.
        row_type: What the step needs of a row.
        bad_rows: List that errors of rows are added to; ``None`` raises the first error.

    Raises:
        CustosError: If the file cannot be read, an id occurs twice, no row is left or, when
            ``bad_rows`` is ``None``, a row does not fit.
    """
    rows: dict[str, R] = {}
    for number, row in read_records(path, row_type, bad_rows):
        if row.id in rows:
            raise FieldError("id", f"'{row.id}' occurs twice", f"{path} row {number}")
        rows[row.id] = row
    if not rows:
        raise CustosError(f"{path}: there are no rows that can be used")
    return list(rows.values())


def run_step(step: Step[Any, Any], rows: Sequence[StepRow], writer: ModelWriter) -> dict[str, Any]:
    """Ask a model about every row that has no reply yet, and write what comes of the rows.

    The folder gets ``rows.jsonl``, in the order of the rows that went in, and ``rejects.jsonl``. A
    reply in the wrong form is asked for once more.

    Returns:
        The manifest.

    Raises:
        CustosError: As ``run_job``, or if ``rows.jsonl`` lies there without a manifest.
    """
    check_replaceable(writer.out, [ROWS])
    requests = [Request(step.item(row), partial(step.read, row)) for row in rows]
    outcome = writer.ask(requests, mend=True)
    made = [row for written in outcome.records for row in written]
    counts = {"step": step.name, "counts": {"in": len(rows), "out": len(made)}}
    return writer.write(outcome, {ROWS: made}, counts)
