"""Many files graded by workers on a Ray cluster, each with a judge of its own.

Shards are files of a table, on a disk that all workers see or in a bucket. Ray Data hands out their
names and gets back their records. Rows are read, graded and written inside a worker, so they never
fill the cluster's object store, and a worker has one shard at a time: it takes the next one when it
has committed this one.
"""

from __future__ import annotations

import functools
import logging
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import Any

import typer
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from pydantic import BaseModel, ValidationError
from rich.progress import TextColumn

from cli.shared.outputs import claim
from cli.shared.tables import read_requests, with_only_task
from cli.shared.verdicts import (
    OUT_SUFFIXES,
    JudgeTally,
    Summary,
    fail_unless_allowed,
    holds_verdicts,
    write_verdicts,
)
from clients.kept_verdicts import Grader, fill_verdicts, judge_digest, partial_file
from data_prep.tables.mapping import TableMapping
from data_prep.tables.source import open_table
from judging.errors import CustosError, error_text
from judging.files.kept_work import locked
from judging.files.records import ROW_SUFFIXES, write_json
from judging.fingerprint import digest
from judging.models.devices import num_cores
from judging.progress import ProgressBar
from judging.types import FAILURES

LOCAL = "local"
"""Address that starts a cluster of this machine alone."""
TRIES = 3
"""Workers that may die on one shard, such as for want of memory, before it is given up."""

RECORDS = "_graded"
"""Folder of the records, beside the verdicts; readers of tables skip names that begin so."""
VERSION_FIELDS = ("size", "mtime", "ETag", "etag", "generation")
"""What file systems tell of a file that changes with its content."""

Load = Callable[[], Grader]
"""Loads a judge; sent to the workers."""


class Shard(BaseModel, frozen=True):
    """One file of a table, and the files that are made of it; each a path or a URL."""

    source: str
    version: str
    """Digest of the source's size and time or, in a bucket, of its ETag."""
    out: str
    record: str


def list_shards(source: str, out: str) -> list[Shard]:
    """List the shards that a pattern matches, in the order of their names.

    ``source`` is a path or URL with ``*``, such as ``answers/*.parquet``; the last part of ``out``
    has one ``*``, which stands for a shard's name.
    """
    system, path = _open(out)
    folder, name = PurePosixPath(path).parent, PurePosixPath(path).name
    if name.count("*") != 1 or "*" in str(folder) or Path(name).suffix not in OUT_SUFFIXES:
        raise CustosError(
            f"--out '{out}': with --ray, name a file for each shard, such as 'verdicts/*.jsonl'; "
            f"the ending is one of {', '.join(OUT_SUFFIXES)}"
        )
    shards = []
    for url, version in _versions(source).items():
        shard = PurePosixPath(url)
        if shard.suffix not in ROW_SUFFIXES:
            raise CustosError(f"{url}: expected one of {', '.join(ROW_SUFFIXES)}")
        out_name = name.replace("*", shard.stem)
        verdicts = _url(system, folder / out_name)
        record = _url(system, folder / RECORDS / f"{out_name}.json")
        shards.append(Shard(source=url, version=version, out=verdicts, record=record))
    if not shards:
        raise CustosError(f"--in '{source}': no file has such a name")
    [(verdicts, count)] = Counter(shard.out for shard in shards).most_common(1)
    if count > 1:
        raise CustosError(f"--in '{source}': {count} shards would be written to {verdicts}")
    # Outputs among the shards would be shards themselves when the same command goes on.
    pattern = _url(*_open(source))
    if any(PurePosixPath(shard.out).match(pattern) for shard in shards) or (
        {shard.source for shard in shards} & _versions(out).keys()
    ):
        raise CustosError(f"--out '{out}': these are the files of --in; name another folder")
    return shards


def _open(url: str) -> tuple[Any, str]:
    """Find the file system of a path or URL, and the path in it."""
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:  # s3fs, gcsfs and others are packages of their own
        raise CustosError(f"{url}: {error}") from None
    return system, path


def _url(system: Any, path: PurePosixPath | str) -> str:
    plain = str(path)
    return plain if isinstance(system, LocalFileSystem) else str(system.unstrip_protocol(plain))


def _versions(pattern: str) -> dict[str, str]:
    """Read the version of every file that a pattern matches, in the order of their names."""
    system, path = _open(pattern)
    return {
        _url(system, name): _version(info)
        for name, info in sorted(system.glob(path, detail=True).items())
        if info["type"] == "file"
    }


def _version(info: Mapping[str, Any]) -> str:
    return digest({name: str(info[name]) for name in VERSION_FIELDS if name in info})


def version_of(url: str) -> str:
    """Read the version of a file as it is now."""
    system, path = url_to_fs(url)
    system.invalidate_cache()
    return _version(system.info(path))


def fetch(url: str, folder: Path) -> Path:
    """Bring a file to this machine: itself, or a copy in a folder."""
    system, path = url_to_fs(url)
    if isinstance(system, LocalFileSystem):
        return Path(path)
    folder.mkdir(exist_ok=True)
    copy = folder / PurePosixPath(path).name
    system.get_file(path, str(copy))
    return copy


@contextmanager
def whole_file(url: str, folder: Path) -> Iterator[Path]:
    """Yield the file to write for a path or URL, which is never seen in parts.

    On a disk this is left to the writer, which has to be one of custos's own. For a bucket the file
    is written to ``folder``, and the object appears when all of it is there.
    """
    system, path = url_to_fs(url)
    if isinstance(system, LocalFileSystem):
        yield Path(path)
        return
    folder.mkdir(exist_ok=True)
    local = folder / PurePosixPath(path).name
    yield local
    system.put_file(str(local), path)


class ShardSettings(BaseModel, frozen=True):
    """Settings that the verdicts on a shard depend on, beside its rows and the judge."""

    mapping: TableMapping
    tasks: tuple[str, ...] = ()
    """Tasks of the judge; if it has one, rows that name none are of it."""
    risk: float | None
    batch: int

    @property
    def key(self) -> str:
        """Hash the settings; the tasks follow from the judge."""
        return digest(self.model_dump(mode="json", exclude={"tasks"}))


class ShardRecord(BaseModel, frozen=True):
    """Record of a graded shard: its version, digests of settings and judge, and counts."""

    version: str
    settings: str
    judge: str
    seconds: float
    statuses: Counter[str]
    tallies: list[tuple[str, str, JudgeTally]]
    """Name of a judge, rubric, and what was counted."""
    failure: str | None
    """First row without a verdict, with the reason; ``None`` if all rows have one."""

    @property
    def num_failed(self) -> int:
        """Count the rows that have no verdict."""
        return sum(self.statuses[status] for status in FAILURES)


def read_records(shards: Sequence[Shard]) -> dict[str, ShardRecord]:
    """Read the records of those shards that are done and have not changed since, by source."""
    if not shards:
        return {}
    system, _ = url_to_fs(shards[0].record)
    # In a bucket many are read at once; those that do not exist are left out.
    contents = system.cat([url_to_fs(shard.record)[1] for shard in shards], on_error="omit")
    records = {}
    for shard in shards:
        with suppress(ValidationError):  # there is none, or it is damaged
            content = contents.get(url_to_fs(shard.record)[1], b"")
            record = ShardRecord.model_validate_json(content)
            if record.version == shard.version and system.exists(url_to_fs(shard.out)[1]):
                records[shard.source] = record
    return records


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
    hour is 0 if unknown.
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
                system, path = url_to_fs(shard.record)
                system.rm_file(path)  # so that it is not done any more
                del records[shard.source]
        left = [shard for shard in shards if shard.source not in records]
        for shard in left if is_local else ():
            claim(Path(shard.out), holds_verdicts)
        if not left:
            typer.echo(f"all {len(shards)} shards were done before: no judge was asked", err=True)
        else:
            done = len(records)
            judge = next((record.judge for record in records.values()), None)
            with pool.connected() as num_workers:
                started = monotonic()

                def effort() -> str:
                    """Sum up the rows of this run, their rate, and what they cost."""
                    seconds = monotonic() - started
                    num_rows = sum(each.statuses.total() for each in [*records.values()][done:])
                    hours = num_workers * seconds / 3600
                    cost = f", cost {hours * price:.2f}" if price else ""
                    rate = f"{num_rows / seconds:,.0f} rows/s"
                    return f"{num_rows:,} rows, {rate}, {hours:.2f} worker hours{cost}"

                with ProgressBar(TextColumn("{task.fields[effort]}")) as progress:
                    bar = progress.add_task("shards", total=len(shards), completed=done, effort="")
                    for outcome in pool.grade(left, num_workers, (load, settings, judge)):
                        if outcome.ends_run:
                            raise CustosError(outcome.error)
                        if outcome.record is None:
                            errors[outcome.source] = outcome.error
                        else:
                            add(outcome.source, outcome.record)
                        progress.update(bar, completed=len(records), effort=effort())
                    typer.echo(effort(), err=True)
    counts = Summary(())
    for record in records.values():
        counts.add(record.statuses, record.tallies)
    counts.show(out)
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


@dataclass
class ShardWorker:
    """Worker that loads a judge with its first shard and keeps it.

    ``judge`` is the digest of the judge of earlier shards; ``None`` if there are none.
    """

    load: Load
    settings: ShardSettings
    judge: str | None

    @cached_property
    def _loaded(self) -> tuple[Grader, str]:
        grader = self.load()
        judge = judge_digest(grader)
        if self.judge not in (None, judge):
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
            grader, judge = self._loaded
        except CustosError as error:
            return ShardOutcome(source=shard.source, error=str(error), ends_run=True)
        try:
            known = read_records([shard]).get(shard.source)
            record = known or grade_shard(shard, grader, judge, self.settings)
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
        if self.address == LOCAL:  # only names and records go through the store
            options = {"num_cpus": self.num_workers or num_cores(), "include_dashboard": False}
            options |= {"object_store_memory": 128 * 2**20}
        try:
            ray.init(self.address, logging_level=logging.ERROR, log_to_driver=False, **options)
        except Exception as error:  # noqa: BLE001  Ray has no class of its own for this
            reason = str(error).strip().partition("\n")[0]
            fault = (
                "no Ray cluster answers there; start one with 'ray start --head', or correct the "
                f"address: {reason}"
            )
            if "timed out during startup" in reason:
                fault = (
                    "Ray did not start within 30 s; the machine is too busy: give the same command "
                    "again"
                )
            elif self.address == LOCAL:
                fault = f"Ray does not start: {reason}"
            raise CustosError(f"--ray {self.address}: {fault}") from None
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

    def _gpus(self, resources: Mapping[str, float]) -> float:
        return min(1, resources.get("GPU", 0)) if self.gpus is None else self.gpus

    def grade(
        self,
        shards: Sequence[Shard],
        num_workers: int,
        worker: tuple[Load, ShardSettings, str | None],
    ) -> Iterator[ShardOutcome]:
        """Grade shards on the connected cluster; ``worker`` are those of :class:`ShardWorker`."""
        import ray
        from ray.data import ActorPoolStrategy
        from ray.exceptions import RayError

        gpus = self._gpus(ray.cluster_resources())
        rows = [{"shard": shard.model_dump_json()} for shard in shards]
        outcomes = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            ShardWorker,
            fn_constructor_args=worker,
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
    of the grader, for the record.
    """
    started = monotonic()
    with tempfile.TemporaryDirectory(prefix="custos-") as name:
        folder = Path(name)
        source = fetch(shard.source, folder / "in")
        table = open_table(source, settings.mapping.text_format)
        mapping = with_only_task(settings.mapping, table, settings.tasks)
        rows = functools.partial(read_requests, table, mapping, settings.risk)
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
