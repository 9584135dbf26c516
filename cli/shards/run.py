"""A run over the shards of a table: what is left to do, how far it is, how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from time import monotonic

import typer
from rich.progress import TextColumn

from cli.shards.files import RECORDS, Shard, delete, list_shards
from cli.shards.ray_pool import Load, RayPool
from cli.shards.records import ShardRecord, ShardSettings, read_records, total
from cli.shared.verdicts.own_files import check_own_verdicts
from judging.errors import CustosError
from judging.files.kept_work import locked
from judging.progress import ProgressBar


class ShardRun:
    """State of a run.

    Args:
        out: Pattern of the outputs, for messages.
        settings: What all verdicts depend on.
        price: Price of a worker for an hour; 0 if it is not known.
    """

    def __init__(self, out: str, settings: ShardSettings, price: float) -> None:
        self.out = out
        self.settings = settings
        self.price = price
        self.records: dict[str, ShardRecord] = {}
        self.errors: dict[str, str] = {}
        self.judge: str | None = None
        self.num_workers = 0
        self._num_rows = 0
        self._started = monotonic()

    def begin(self, num_workers: int) -> None:
        """Count rows and time from now on."""
        self.num_workers, self._num_rows, self._started = num_workers, 0, monotonic()

    def add(self, source: str, record: ShardRecord) -> None:
        """Add a shard that is done.

        Raises:
            CustosError: If it is not graded as the others are.
        """
        self.judge = self.judge or record.judge
        if (record.judge, record.settings) != (self.judge, self.settings.key):
            raise CustosError(
                f"{source} is graded by another judge or under other options than the other "
                f"shards, or a package has another version there: name another --out than "
                f"'{self.out}', or delete the records of such shards in {RECORDS} beside it"
            )
        self.records[source] = record
        self._num_rows += record.num_rows

    def rate(self) -> str:
        """Return how many rows were graded a second."""
        return f"{self._num_rows / (monotonic() - self._started):,.0f} rows/s"

    def effort(self) -> str:
        """Return the rows of this run, their rate, and what they cost."""
        hours = self.num_workers * (monotonic() - self._started) / 3600
        cost = f", cost {hours * self.price:.2f}" if self.price else ""
        return f"{self._num_rows:,} rows, {self.rate()}, {hours:.2f} worker hours{cost}"

    def finish(self, shards: Sequence[Shard], allow_failed: bool) -> None:
        """Print what was graded; exit with status 1 if rows or shards failed, unless allowed."""
        summary = total(self.records.values())
        counts = ", ".join(f"{count} {status}" for status, count in summary.statuses.most_common())
        typer.echo(f"{summary.statuses.total()} rows graded ({counts or 'none'}): {self.out}")
        for line in summary.judge_lines():
            typer.echo(line)
        failures = list(self._failures(shards))
        for failure in failures:
            typer.echo(failure if allow_failed else f"error: {failure}", err=True)
        if failures and not allow_failed:
            raise typer.Exit(1)

    def _failures(self, shards: Sequence[Shard]) -> Iterator[str]:
        missing = [shard.source for shard in shards if shard.source not in self.records]
        if missing:
            first = self.errors.get(missing[0], f"{missing[0]}: every worker that had it died")
            yield (
                f"{len(missing)} of {len(shards)} shards are not graded; the first: {first}; give "
                "the same command again: it grades only these"
            )
        failed = {source: record for source, record in self.records.items() if record.num_failed}
        if failed:
            source, record = min(failed.items())
            num_failed = sum(record.num_failed for record in failed.values())
            yield (
                f"{num_failed} rows in {len(failed)} shards have no verdict; the first: {source}: "
                f"{record.failure}; --retry-failed grades these shards again"
            )


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

    Args:
        source: Pattern of the shards.
        out: Pattern of their outputs.
        pool: Workers that are wanted.
        load: Loads the judge, on a worker.
        settings: What the verdicts also depend on.
        price: Price of a worker for an hour; 0 if it is not known.
        retry_failed: Grade shards again that have failed rows.
        allow_failed: Exit with status 0 even if something failed.

    Raises:
        CustosError: If the patterns do not go together, the cluster cannot be used, or earlier
            shards were graded in another way.
    """
    shards = list_shards(source, out)
    run = ShardRun(out, settings, price)
    with _alone(shards[0]):
        for name, record in read_records(shards).items():
            run.add(name, record)
        if retry_failed:
            _forget_failed(run, shards)
        left = [shard for shard in shards if shard.source not in run.records]
        for shard in left:
            if "://" not in shard.out:  # in a bucket, each look would cost a request
                check_own_verdicts("--out", Path(shard.out))
        if left:
            _grade(run, left, len(shards), pool, load)
        else:
            typer.echo(f"all {len(shards)} shards were done before: no judge was asked", err=True)
    run.finish(shards, allow_failed)


def _alone(shard: Shard) -> AbstractContextManager[None]:
    """Return a lock on the records of a run; in a bucket there are none."""
    return nullcontext() if "://" in shard.record else locked(Path(shard.record).parent / "run")


def _forget_failed(run: ShardRun, shards: Iterable[Shard]) -> None:
    """Delete the records of shards with failed rows, so that they are not done any more."""
    for shard in shards:
        if shard.source in run.records and run.records[shard.source].num_failed:
            delete(shard.record)
            del run.records[shard.source]


def _grade(
    run: ShardRun, left: Sequence[Shard], num_shards: int, pool: RayPool, load: Load
) -> None:
    with pool.connected() as num_workers, _shown(run, num_shards) as show:
        run.begin(num_workers)
        for outcome in pool.grade(left, num_workers, load, run.settings, run.judge):
            if outcome.ends_run:
                raise CustosError(outcome.error)
            if outcome.record is None:
                run.errors[outcome.source] = outcome.error
            else:
                run.add(outcome.source, outcome.record)
            show()
        typer.echo(run.effort(), err=True)


@contextmanager
def _shown(run: ShardRun, num_shards: int) -> Iterator[Callable[[], None]]:
    """Show how many shards are done and what they took; give a function to call after each."""
    with ProgressBar(TextColumn("{task.fields[effort]}")) as progress:
        bar = progress.add_task("shards", total=num_shards, completed=len(run.records), effort="")
        yield lambda: progress.update(bar, completed=len(run.records), effort=run.effort())
