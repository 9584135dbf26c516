"""Workers on a Ray cluster, each with a judge of its own, that grade shards.

Ray Data hands out the names of shards and gets back their records. Rows are read, graded and
written inside a worker, so they never fill the cluster's object store, and a worker has one shard
at a time: it takes the next one when it has committed this one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from cli.shards.files import Shard
from cli.shards.records import ShardRecord, ShardSettings, read_records
from cli.shards.worker import grade_shard, judge_digest
from clients.kept_verdicts import Grader
from judging.errors import CustosError, error_text
from judging.models.devices import num_cores

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


class ShardOutcome(BaseModel):
    """Outcome of a shard: its record, or the reason why there is none."""

    source: str
    record: ShardRecord | None = None
    error: str = ""
    ends_run: bool = False
    """True if no other shard could be graded either."""


class ShardWorker:
    """Worker that loads a judge with its first shard and keeps it.

    Args:
        load: Loads the judge.
        settings: What the verdicts also depend on.
        judge: Digest of the judge of earlier shards; ``None`` if there are none.
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
        """Connect to the cluster for a block; give the number of workers.

        Raises:
            CustosError: If Ray is not installed or does not start in time, or if there is no
                cluster at the address.
        """
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
            yield self._size(ray.cluster_resources())
        finally:
            ray.shutdown()

    def _fault(self, error: str) -> str:
        """Return why there is no cluster to work on, and what to do.

        Args:
            error: Text of Ray's own error, of one or many lines.
        """
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

    def _size(self, resources: Mapping[str, float]) -> int:
        if self.num_workers is not None:
            return self.num_workers
        gpus = self._gpus(resources)
        room = resources.get("GPU", 0) / gpus if gpus else resources.get("CPU", 1)
        return max(1, int(room))

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
        """Grade shards on the connected cluster; yield what became of each, the first one first.

        Args:
            shards: At least one.
            num_workers: Number of workers.
            load: As for :class:`ShardWorker`.
            settings: As there.
            judge: As there.

        Raises:
            CustosError: If the workers cannot run at all.
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
