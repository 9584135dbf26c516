"""Many files graded by workers on a Ray cluster, each with a judge of its own.

Ray Data hands out the names of shards and gets back their records. Rows are read, graded and
written inside a worker, so they never fill the cluster's object store, and a worker has one shard
at a time: it takes the next one when it has committed this one.
"""

from __future__ import annotations

import functools
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any

import typer
from pydantic import BaseModel
from rich.progress import TextColumn

from cli.shards.shards import (
    RECORDS,
    Shard,
    ShardRecord,
    ShardSettings,
    delete,
    fetch,
    list_shards,
    read_records,
    total,
    version_of,
    whole_file,
)
from cli.shared.outputs import claim
from cli.shared.tables import read_requests
from cli.shared.verdicts import Summary, fail_unless_allowed, holds_verdicts, write_verdicts
from clients.kept_verdicts import Grader, fill_verdicts, partial_file
from data_prep.tables.source import open_table
from judging.errors import CustosError, error_text
from judging.files.kept_work import locked
from judging.files.records import write_json
from judging.fingerprint import digest
from judging.models.devices import num_cores
from judging.progress import ProgressBar
from judging.tasks import get_task, task_names
from judging.types import JudgeRequest

LOCAL = "local"
"""Address that starts a cluster of this machine alone."""
OBJECT_STORE = 128 * 2**20
"""Bytes of the object store of a local cluster; only names and records go through it."""
TIMED_OUT = "timed out during startup"
"""Words of Ray's error on a machine that is too busy."""
TRIES = 3
"""Workers that may die on one shard, such as for want of memory, before it is given up."""

Load = Callable[[], Grader]
"""Loads a judge; sent to the workers."""


def grade_shards(
    source: str,
    out: str,
    pool: RayPool,
    load: Load,
    settings: ShardSettings,
    price: float,
    retry_failed: bool,
    allow_failed: bool,
) -> None:
    """Grade all shards of a table that are not done.

    ``source`` and ``out`` are patterns. ``load`` loads the judge, on a worker, whose price for an
    hour is 0 if unknown. ``retry_failed`` grades shards again that have failed rows;
    ``allow_failed`` exits with status 0 even if something failed. Raises ``CustosError`` if the
    patterns do not go together, the cluster cannot be used, or earlier shards were graded in
    another way.
    """
    shards = list_shards(source, out)
    records: dict[str, ShardRecord] = {}
    errors: dict[str, str] = {}

    def add(name: str, record: ShardRecord) -> None:
        first = next(iter(records.values()), record)
        if (record.judge, record.settings) != (first.judge, settings.key):
            raise CustosError(
                f"{name} is graded by another judge or under other options than the other shards, "
                f"or a package has another version there: name another --out than '{out}', or "
                f"delete the records of such shards in {RECORDS} beside it"
            )
        records[name] = record

    # In a bucket there are no locks, and each look at an output would cost a request.
    is_local = "://" not in shards[0].record
    with locked(Path(shards[0].record).parent / "run") if is_local else nullcontext():
        for name, record in read_records(shards).items():
            add(name, record)
        for shard in shards if retry_failed else ():
            if shard.source in records and records[shard.source].num_failed:
                delete(shard.record)  # so that it is not done any more
                del records[shard.source]
        left = [shard for shard in shards if shard.source not in records]
        for shard in left if is_local else ():
            claim(Path(shard.out), holds_verdicts)
        if not left:
            typer.echo(f"all {len(shards)} shards were done before: no judge was asked", err=True)
        else:
            num_done = len(records)
            judge = next((record.judge for record in records.values()), None)
            with pool.connected() as num_workers:
                started = monotonic()

                def effort() -> str:
                    """Sum up the rows of this run, their rate, and what they cost."""
                    seconds = monotonic() - started
                    num_rows = sum(each.num_rows for each in list(records.values())[num_done:])
                    hours = num_workers * seconds / 3600
                    cost = f", cost {hours * price:.2f}" if price else ""
                    rate = f"{num_rows / seconds:,.0f} rows/s"
                    return f"{num_rows:,} rows, {rate}, {hours:.2f} worker hours{cost}"

                with ProgressBar(TextColumn("{task.fields[effort]}")) as progress:
                    done = len(records)
                    bar = progress.add_task("shards", total=len(shards), completed=done, effort="")
                    for outcome in pool.grade(left, num_workers, load, settings, judge):
                        if outcome.ends_run:
                            raise CustosError(outcome.error)
                        if outcome.record is None:
                            errors[outcome.source] = outcome.error
                        else:
                            add(outcome.source, outcome.record)
                        progress.update(bar, completed=len(records), effort=effort())
                    typer.echo(effort(), err=True)
    total(records.values()).show(out)
    failures = []
    if missing := [shard.source for shard in shards if shard.source not in records]:
        first = errors.get(missing[0], f"{missing[0]}: every worker that had it died")
        failures.append(
            f"{len(missing)} of {len(shards)} shards are not graded; the first: {first}; give the "
            "same command again: it grades only these"
        )
    if failed := {name: record for name, record in records.items() if record.num_failed}:
        name, record = min(failed.items())
        num_failed = sum(record.num_failed for record in failed.values())
        failures.append(
            f"{num_failed} rows in {len(failed)} shards have no verdict; the first: {name}: "
            f"{record.failure}; --retry-failed grades these shards again"
        )
    fail_unless_allowed(failures, allow_failed)


class ShardOutcome(BaseModel):
    """Outcome of a shard: its record, or the reason why there is none."""

    source: str
    record: ShardRecord | None = None
    error: str = ""
    ends_run: bool = False
    """True if no other shard could be graded either."""


class ShardWorker:
    """Worker that loads a judge with its first shard and keeps it.

    ``judge`` is the digest of the judge of earlier shards; ``None`` if there are none.
    """

    def __init__(self, load: Load, settings: ShardSettings, judge: str | None) -> None:
        self._load = load
        self._settings = settings
        self._expected = judge

    @cached_property
    def _judge(self) -> tuple[Grader, str]:
        grader = self._load()
        judge = judge_digest(grader)
        if self._expected not in (None, judge):
            raise CustosError(
                "the judge or the version of a package is not that of the shards that are done; "
                "name another --out"
            )
        return grader, judge

    def __call__(self, batch: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Grade the shard of a batch, unless an earlier try has committed it."""
        [text] = batch["shard"]
        return {"outcome": [self._grade(Shard.model_validate_json(text)).model_dump_json()]}

    def _grade(self, shard: Shard) -> ShardOutcome:
        try:
            grader, judge = self._judge
        except CustosError as error:
            return ShardOutcome(source=shard.source, error=str(error), ends_run=True)
        try:
            record = read_records([shard]).get(shard.source)
            record = record or grade_shard(shard, grader, judge, self._settings)
        except (CustosError, OSError) as error:
            return ShardOutcome(source=shard.source, error=error_text(error))
        return ShardOutcome(source=shard.source, record=record)


@dataclass(frozen=True)
class RayPool:
    """Workers that are wanted on a cluster.

    Attributes:
        address: Address of the cluster, or ``local``.
        num_workers: Number of workers; ``None``: as many as the cluster has room for.
        gpus: GPUs of each; ``None``: one, where the cluster has GPUs.
    """

    address: str
    num_workers: int | None = None
    gpus: float | None = None

    @contextmanager
    def connected(self) -> Iterator[int]:
        """Connect to the cluster for a block; give the number of workers."""
        try:
            import ray
            from ray.data import DataContext
        except ImportError:
            raise CustosError("--ray: Ray is not installed; pip install 'ray[data]'") from None
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        options: dict[str, Any] = {}
        if self.address == LOCAL:
            options = {
                "num_cpus": self.num_workers or num_cores(),
                "object_store_memory": OBJECT_STORE,
                "include_dashboard": False,
            }
        try:
            ray.init(self.address, logging_level=logging.ERROR, log_to_driver=False, **options)
        except Exception as error:  # noqa: BLE001  Ray has no class of its own for this
            raise CustosError(f"--ray {self.address}: {self._fault(str(error))}") from None
        try:
            context = DataContext.get_current()
            context.enable_progress_bars = False
            context.max_errored_blocks = -1  # Other shards are graded all the same.
            context.execution_no_progress_timeout_s = -1  # Shards may take hours.
            resources = ray.cluster_resources()
            gpus = self._gpus(resources)
            room = resources.get("GPU", 0) / gpus if gpus else resources.get("CPU", 1)
            yield max(1, int(room)) if self.num_workers is None else self.num_workers
        finally:
            ray.shutdown()

    def _fault(self, error: str) -> str:
        """Say why there is no cluster to work on, and what to do."""
        if TIMED_OUT in error:
            return (
                "Ray did not start within 30 s; the machine is too busy: give the same command "
                "again"
            )
        reason = error.strip().partition("\n")[0]
        if self.address == LOCAL:
            return f"Ray does not start: {reason}"
        return (
            "no Ray cluster answers there; start one with 'ray start --head', or correct the "
            f"address: {reason}"
        )

    def _gpus(self, resources: Mapping[str, float]) -> float:
        return min(1, resources.get("GPU", 0)) if self.gpus is None else self.gpus

    def grade(
        self,
        shards: Sequence[Shard],
        num_workers: int,
        load: Load,
        settings: ShardSettings,
        judge: str | None,
    ) -> Iterator[ShardOutcome]:
        """Grade at least one shard on the connected cluster; yield outcomes, the first one first.

        ``load``, ``settings`` and ``judge`` are those of :class:`ShardWorker`.
        """
        import ray
        from ray.data import ActorPoolStrategy
        from ray.exceptions import RayError

        gpus = self._gpus(ray.cluster_resources())
        rows = [{"shard": shard.model_dump_json()} for shard in shards]
        outcomes = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            ShardWorker,
            fn_constructor_args=(load, settings, judge),
            batch_size=1,
            compute=ActorPoolStrategy(
                size=min(num_workers, len(shards)), max_tasks_in_flight_per_actor=1
            ),
            max_restarts=-1,
            max_task_retries=TRIES - 1,
            **({"num_gpus": gpus} if gpus else {"num_cpus": 1}),
        )
        try:
            for row in outcomes.iter_rows():
                yield ShardOutcome.model_validate_json(row["outcome"])
        except RayError as error:
            raise CustosError(f"--ray {self.address}: {str(error).splitlines()[-1]}") from None


def grade_shard(shard: Shard, grader: Grader, judge: str, settings: ShardSettings) -> ShardRecord:
    """Grade a shard; write its verdicts, and then its record.

    A worker that dies leaves no part of either. The verdicts are those of ``custos grade`` on this
    file: the same code reads, grades and writes them, in the same batches. ``judge`` is the digest
    of the grader, for the record. Raises ``CustosError`` if the shard cannot be read, or has
    changed since it was listed; ``OSError`` if a file cannot be read or written.
    """
    started = monotonic()
    with tempfile.TemporaryDirectory(prefix="custos-") as name:
        folder = Path(name)
        source = fetch(shard.source, folder / "in")
        table = open_table(source, settings.mapping.text_format)
        rows = functools.partial(read_requests, table, settings.mapping, settings.risk)
        kept = partial_file(folder / "verdicts")
        for _ in fill_verdicts(kept, grader, rows, batch=settings.batch):
            pass
        if version_of(shard.source) != shard.version:
            raise CustosError(f"{shard.source}: the file has changed while it was graded")
        with whole_file(shard.out, folder / "out") as out:
            write_verdicts(out, table, kept)
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
    """Hash what could change a judge's verdicts under any task."""
    fingerprints = {}
    for name in task_names():
        request = JudgeRequest.model_validate(get_task(name).example_row())
        try:
            fingerprints[name] = grader.fingerprint(request)
        except CustosError:  # the judge does not take the task
            continue
    return digest(fingerprints)
