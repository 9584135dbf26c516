"""The work of a worker: it grades a shard as ``custos grade`` grades a file, and commits it."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from time import monotonic

from cli.shards.files import Shard, fetch, version_of, whole_file
from cli.shards.records import ShardRecord, ShardSettings
from cli.shared.request_rows import read_requests
from cli.shared.verdicts.files import write_verdicts
from cli.shared.verdicts.summary import Summary
from clients.kept_verdicts import Grader, fill_verdicts, partial_file
from data_prep.tables.source import open_table
from judging.errors import CustosError
from judging.files.records import write_json
from judging.fingerprint import digest
from judging.tasks import get_task, task_names
from judging.types import JudgeRequest


def grade_shard(shard: Shard, grader: Grader, judge: str, settings: ShardSettings) -> ShardRecord:
    """Grade a shard; write its verdicts, and then its record.

    A worker that dies leaves no part of either. The verdicts are those of ``custos grade`` on this
    file: the same code reads, grades and writes them, in the same batches.

    Args:
        shard: What to grade.
        grader: Grades the rows.
        judge: Digest of the grader, for the record.
        settings: What the verdicts also depend on.

    Raises:
        CustosError: If the shard cannot be read, or has changed since it was listed.
        OSError: If a file cannot be read or written.
    """
    started = monotonic()
    with tempfile.TemporaryDirectory(prefix="custos-") as name:
        folder = Path(name)
        source = fetch(shard.source, folder / "in")
        rows = functools.partial(read_requests, source, settings.mapping, settings.risk)
        kept = partial_file(folder / "verdicts")
        for _ in fill_verdicts(kept, grader, rows, batch=settings.batch):
            pass
        if version_of(shard.source) != shard.version:
            raise CustosError(f"{shard.source}: the file has changed while it was graded")
        with whole_file(shard.out, folder / "out") as out:
            write_verdicts(out, open_table(source, settings.mapping.text_format), kept)
        summary = Summary(kept.lines())
        first = summary.first_failure
        record = ShardRecord(
            version=shard.version,
            settings=settings.key,
            judge=judge,
            seconds=monotonic() - started,
            statuses=summary.statuses,
            tallies=[(*names, tally) for names, tally in summary.tallies.items()],
            failure=first and f"row {first.row}: {first.verdict.message or 'no message'}",
        )
        with whole_file(shard.record, folder / "record") as path:
            write_json(path, record.model_dump(mode="json"))
    return record


def judge_digest(grader: Grader) -> str:
    """Return a digest of what could change a judge's verdicts under any task."""
    fingerprints = {}
    for name in task_names():
        request = JudgeRequest.model_validate(get_task(name).example_row())
        try:
            fingerprints[name] = grader.fingerprint(request)
        except CustosError:  # the judge does not take the task
            continue
    return digest(fingerprints)
