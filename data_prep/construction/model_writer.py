"""Records that a model writes: ask for each of them, read the replies, write what can be used.

A folder holds ``answers.jsonl`` (all replies, from which a later run continues), the files of a
construction, ``rejects.jsonl`` (requests without a usable reply, with the reason) and, last,
``manifest.json``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from clients.chat import Prices, Reply
from clients.connection import ModelServer
from clients.jobs import JobResult, OnProgress, Reject, run_job
from clients.messages import ChatItem, Decoding
from data_prep.errors import UnusableText
from data_prep.splits.manifest import write_with_manifest
from judging.files.atomic import atomic_write
from judging.fingerprint import file_sha256

ANSWERS, REJECTS = "answers.jsonl", "rejects.jsonl"

T = TypeVar("T")


@dataclass(frozen=True)
class Request(Generic[T]):
    """A request for one record, with the function that makes the record from the reply."""

    item: ChatItem
    read: Callable[[Reply], T]
    """Raises ``UnusableText`` if no record can be made from a reply."""


@dataclass
class Outcome(Generic[T]):
    """The records that a model wrote, and the requests that brought none."""

    job: JobResult
    records: list[T] = field(default_factory=list)
    """In the order of the requests."""
    rejects: list[Reject] = field(default_factory=list)
    """In the order of the requests."""


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

    def ask(self, requests: Sequence[Request[T]]) -> Outcome[T]:
        """Send the requests that have no reply in the folder yet, and read all replies.

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
        outcome: Outcome[T] = Outcome(job)
        failed = {reject.id: reject for reject in job.rejects}
        for request in requests:
            name = request.item.id
            if name in failed:
                outcome.rejects.append(failed[name])
                continue
            try:
                outcome.records.append(request.read(job.replies[name]))
            except UnusableText as error:
                reject = Reject(id=name, reason=error.reason, detail=str(error))
                outcome.rejects.append(reject)
        return outcome

    def write(
        self,
        outcome: Outcome[T],
        files: Mapping[str, Iterable[BaseModel | str]],
        counts: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Write files, rejects and the manifest to the folder.

        Args:
            outcome: Result of :meth:`ask`.
            files: Name of each JSONL file to its rows; a row is a record or a line of JSON.
            counts: Numbers of the records, for the manifest.

        Returns:
            The manifest.
        """
        with write_with_manifest(self.out, source=self.source, command=self.command) as manifest:
            written = {**files, REJECTS: outcome.rejects}
            for name, rows in written.items():
                _write_rows(self.out / name, rows)
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


def _write_rows(path: Path, rows: Iterable[BaseModel | str]) -> None:
    with atomic_write(path) as file:
        for row in rows:
            line = row if isinstance(row, str) else row.model_dump_json(exclude_unset=True)
            file.write(f"{line}\n")
