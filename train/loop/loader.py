"""Batches that are encoded ahead of the model, in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

import torch

from judging.errors import CustosError
from judging.models.devices import num_cores
from train.rows.rows import Batch, Rows
from train.rows.worker_process import begin_worker

AHEAD = 2
"""Batches that each worker encodes ahead."""
MOST_WORKERS = 4

_ROWS: Mapping[str, Rows] = {}
"""In a worker: the rows that it encodes, by split."""


def default_workers(device: torch.device, processes: int) -> int:
    """Return how many workers a training process has: none on a CPU, whose cores the model uses.

    Args:
        device: Device of the model.
        processes: Training processes on this machine.
    """
    if device.type == "cpu":
        return 0
    return max(1, min(MOST_WORKERS, num_cores() // processes - 1))


class Loader:
    """Makes batches of rows in the order asked for, some ahead of their use.

    Workers read the rows and have tokenizer, image processor and configuration, but no weights.
    They start with the first batch and end with this process, even if it is killed.

    Args:
        rows: Rows by split.
        workers: Worker processes; 0 makes every batch when it is due.
        pinned: Put batches into memory that a GPU copies from without waiting.

    Attributes:
        data_wait: Seconds spent waiting for batches, or making them without workers.
    """

    def __init__(self, rows: Mapping[str, Rows], workers: int, *, pinned: bool = False) -> None:
        self.rows, self.workers, self.pinned = rows, workers, pinned
        self.data_wait = 0.0
        self._pool: ProcessPoolExecutor | None = None
        self._receiver = ThreadPoolExecutor(1, "custos-receiver")

    def batches(self, rows: Rows, plan: Iterable[Sequence[int]]) -> Iterator[Batch]:
        """Yield a batch for every list of indices, in order.

        Args:
            rows: Rows of one of the loader's splits; others are encoded without workers.
            plan: Indices of the rows of each batch; read ahead.

        Raises:
            CustosError: If a row cannot be encoded (the message names split and row), or a worker
                was killed.
        """
        if not self.workers or self.rows.get(rows.split) is not rows:
            for indices in plan:
                started = time.perf_counter()
                batch = rows.batch(indices)
                self.data_wait += time.perf_counter() - started
                yield batch.pinned() if self.pinned else batch
            return
        remaining = iter(plan)
        waiting: deque[Future[Batch]] = deque()
        try:
            while True:
                for indices in islice(remaining, self.workers * AHEAD - len(waiting)):
                    waiting.append(self._submit(rows.split, indices))
                if not waiting:
                    return
                started = time.perf_counter()
                batch = self._received(waiting.popleft())
                self.data_wait += time.perf_counter() - started
                yield batch
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """End the workers; the next batch would start new ones."""
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _submit(self, split: str, indices: Sequence[int]) -> Future[Batch]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.workers,
                # A fork would inherit threads, locks and CUDA's state of the training process.
                multiprocessing.get_context("spawn"),
                _begin,
                (self.rows,),
            )
        try:
            made = self._pool.submit(_make, split, list(indices))
        except BrokenProcessPool:
            raise _killed() from None
        return self._receiver.submit(self._receive, made)

    def _receive(self, made: Future[Batch | str]) -> Batch:
        batch = made.result()
        if isinstance(batch, str):
            raise CustosError(batch)
        return batch.pinned() if self.pinned else batch

    @staticmethod
    def _received(future: Future[Batch]) -> Batch:
        try:
            return future.result()
        except BrokenProcessPool:
            raise _killed() from None


def _killed() -> CustosError:
    return CustosError(
        "a process that encodes rows was killed, as happens when memory is full; set "
        "run.workers=0, or give a container more shared memory (docker run --ipc=host)"
    )


def _begin(rows: Mapping[str, Rows]) -> None:
    """Prepare a worker process."""
    global _ROWS
    _ROWS = rows
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    begin_worker()


def _make(split: str, indices: Sequence[int]) -> Batch | str:
    """Return a batch, or why it cannot be made."""
    try:
        return _ROWS[split].batch(indices)
    except CustosError as error:
        return str(error)
