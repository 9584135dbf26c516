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

from clients.chat import JobResult, OnProgress, Prices, Reject, Reply, run_job
from clients.connection import ModelServer
from clients.messages import ChatItem, Decoding
from data_prep.construction.steps.base import Step, StepRow
from data_prep.errors import UnusableText
from data_prep.splits.manifest import check_replaceable, write_with_manifest
from judging.errors import CustosError, FieldError
from judging.files.records import read_records, write_records
from judging.fingerprint import file_sha256
from judging.types import Message

ANSWERS, ROWS, REJECTS = "answers.jsonl", "rows.jsonl", "rejects.jsonl"

R = TypeVar("R", bound=StepRow)
T = TypeVar("T")


@dataclass(frozen=True)
class Request(Generic[T]):
    """A request for one record, with the function that makes the record from the reply."""

    item: ChatItem
    read: Callable[[Reply], T]
    """Raises ``UnusableText`` if no record can be made from a reply."""

    def again(self, reply: Reply, error: UnusableText) -> Request[T]:
        """Add the reply and what is wrong with it to the request."""
        turns = (
            Message(role="assistant", text=reply.text or "(an empty reply)"),
            Message(
                role="user",
                text=f"This reply cannot be read: {error}. Reply once more, in the form that was "
                "asked for and with nothing else.",
            ),
        )
        name = f"{self.item.id} (again)"
        return replace(self, item=ChatItem(id=name, messages=(*self.item.messages, *turns)))


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """Records made from a model's replies, and the requests that brought none, each in order."""

    job: JobResult
    records: list[T]
    rejects: list[Reject]


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

        Where ``mend``, ask once more for a reply in the wrong form (``UnusableText.mendable``).
        Raise ``CustosError`` as ``run_job``.
        """
        job, results = self._ask(requests)
        mended = {
            request.item.id: request.again(job.replies[request.item.id], error)
            for request in requests
            if isinstance(error := results[request.item.id], UnusableText) and error.mendable
        }
        if mend and mended:
            second, again = self._ask(list(mended.values()))
            # All replies are counted and paid for once.
            job = JobResult(
                {**job.replies, **second.replies},
                [*job.rejects, *second.rejects],
                job.num_reused + second.num_reused,
            )
            results |= {name: again[request.item.id] for name, request in mended.items()}
        records: list[T] = []
        rejects: list[Reject] = []
        for name in (request.item.id for request in requests):
            result = results[name]
            if isinstance(result, UnusableText):
                rejects.append(Reject(id=name, reason=result.reason, detail=str(result)))
            elif isinstance(result, Reject):
                rejects.append(result.model_copy(update={"id": name}))
            else:
                records.append(result)
        return Outcome(job, records, rejects)

    def _ask(
        self, requests: Sequence[Request[T]]
    ) -> tuple[JobResult, dict[str, T | Reject | UnusableText]]:
        """Get the replies and, by item id, each record or why there is none."""
        job = run_job(
            [request.item for request in requests],
            self.server,
            self.decoding,
            answers=self.out / ANSWERS,
            rejects=self.out / REJECTS,
            on_progress=self.on_progress,
        )
        results: dict[str, T | Reject | UnusableText] = {each.id: each for each in job.rejects}
        for request in requests:
            if request.item.id in job.replies:
                try:
                    results[request.item.id] = request.read(job.replies[request.item.id])
                except UnusableText as error:
                    results[request.item.id] = error
        return job, results

    def write(
        self,
        outcome: Outcome[T],
        files: Mapping[str, Iterable[BaseModel | Mapping[str, Any]]],
        counts: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Write JSONL files by name, rejects and a manifest with ``counts``; return the last."""
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


def load_rows(path: Path, row_type: type[R], bad_rows: list[str] | None = None) -> list[R]:
    """Read the rows that go into a step; pictures are relative to the file.

    Errors are those of :func:`read_records`; ``CustosError`` is also raised if an id occurs twice
    or no row is left.
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
    reply in the wrong form is asked for once more. Return the manifest.
    """
    check_replaceable(writer.out, [ROWS])
    requests = [Request(step.item(row), partial(step.read, row)) for row in rows]
    outcome = writer.ask(requests, mend=True)
    made = [row for written in outcome.records for row in written]
    counts = {"step": step.name, "counts": {"in": len(rows), "out": len(made)}}
    return writer.write(outcome, {ROWS: made}, counts)
