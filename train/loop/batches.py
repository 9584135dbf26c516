"""The rows of every optimizer step, cut into forward passes and encoded ahead of the model."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from itertools import accumulate, chain, islice
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from judging.errors import CustosError
from judging.models.devices import num_cores
from judging.progress import grouped
from train.rows.rows import Batch, Rows
from train.setup.recipe import OptimSection

MEGA_BATCH = 32
"""Steps of a mega-batch, within which rows are sorted by length: little padding, much mixing."""
EPOCHS_KEPT = 2
"""Epochs whose steps are remembered: two, as rows are read ahead beyond the end of an epoch."""

MicroBatch = list[int]
"""Indices of rows that share a forward pass."""


class StepPlan:
    """The micro-batches of every optimizer step of a run.

    The rows of a step depend on seed and epoch alone. They are the same on every process, after a
    resume, and for any number of processes and any ``token_budget``: these only decide how a step
    is cut. Rows of a step have one rubric and similar lengths; a step has fewer rows where a rubric
    or a mega-batch ends. With replay (of the last ``replayed`` rows) every step has new and
    replayed rows in proportion to their numbers; the rows of each kind mostly have one rubric and
    similar lengths.
    """

    def __init__(
        self,
        rows: Rows,
        optim: OptimSection,
        seed: int,
        processes: int = 1,
        replayed: int = 0,
    ) -> None:
        self.rows, self.optim, self.seed, self.processes = rows, optim, seed, processes
        self.costs, self.num_new = RowCosts.of(rows), len(rows) - replayed
        # Epochs of whole questions may differ in steps, as mega-batches end where a question does.
        different = range(optim.epochs if optim.whole_questions else 1)
        counts = [len(self._steps(epoch)) for epoch in different]
        self._epoch_ends = list(accumulate(counts * (optim.epochs // len(counts))))
        self.total_steps = min(self._epoch_ends[-1], optim.max_steps or 10**12)
        self._kept_steps = lru_cache(EPOCHS_KEPT)(self._steps)

    def micro_batches(self, step: int) -> list[MicroBatch]:
        """Cut a step, counted from 0 over all epochs, into its micro-batches.

        Process ``i`` of ``n`` takes every ``n``-th from the ``i``-th.
        """
        epoch = bisect_right(self._epoch_ends, step)
        steps = self._kept_steps(epoch)
        rows = steps[step - self._epoch_ends[epoch]]  # counted from the epoch's end
        return self.costs.cut_step(rows, self.processes, self.optim.token_budget)

    def _steps(self, epoch: int) -> list[list[int]]:
        """Choose the rows of every step of an epoch, those of one rubric together."""
        size, rng = self.optim.batch_size, random.Random(f"{self.seed}/{epoch}")
        shuffled = rng.sample(range(len(self.rows)), len(self.rows))
        new = self._ordered([row for row in shuffled if row < self.num_new])
        replayed = self._ordered([row for row in shuffled if row >= self.num_new])
        if replayed:
            return _mixed_steps(list(chain(*new)), list(chain(*replayed)), size, rng)
        steps = [mega[i : i + size] for mega in new for i in range(0, len(mega), size)]
        rng.shuffle(steps)
        return steps

    def _ordered(self, rows: Sequence[int]) -> list[list[int]]:
        """Order rows into mega-batches of one rubric, sorted by length."""
        index, whole_questions = self.rows.facts, self.optim.whole_questions
        rubrics, texts = index.rubric.tolist(), index.shared_text.tolist()
        lengths: list[int] = index.length.tolist()
        groups: dict[int, dict[int, list[int]]] = {}
        for row in rows:
            group = texts[row] if whole_questions else row
            groups.setdefault(rubrics[row], {}).setdefault(group, []).append(row)
        ordered = []
        for questions in groups.values():
            for mega in _mega_batches([*questions.values()], MEGA_BATCH * self.optim.batch_size):
                mega.sort(key=lambda rows: sum(lengths[row] for row in rows) / len(rows))
                ordered.append(list(chain(*mega)))
        return ordered


def _mixed_steps(
    new: Sequence[int], replayed: Sequence[int], size: int, rng: random.Random
) -> list[list[int]]:
    """Deal the rows of two kinds to as few steps as hold them, each kind in proportion.

    Neighbours of a kind stay together; each kind goes to the steps in a random order of its own.
    """
    total = len(new) + len(replayed)
    count = -(-total // size)
    ends = [total * step // count for step in range(count + 1)]
    ends_new = [end * len(new) // total for end in ends]
    ends_replayed = [end - of_new for end, of_new in zip(ends, ends_new, strict=True)]
    steps: list[list[int]] = [[] for _ in range(count)]
    for rows, bounds in ((new, ends_new), (replayed, ends_replayed)):
        remaining = iter(rows)
        for step in rng.sample(range(count), count):
            steps[step] += islice(remaining, bounds[step + 1] - bounds[step])
    return steps


class RowCosts(NamedTuple):
    """What decides how rows are cut into forward passes: arrays ``[rows]``."""

    widths: NDArray[np.int64]
    """Tokens of every row's longest prompt."""
    copies: NDArray[np.int64]
    """Rows of a tensor that every row takes."""
    rubrics: NDArray[np.int32]
    """Number of every row's rubric."""

    @classmethod
    def of(cls, rows: Rows) -> RowCosts:
        """Count the costs of measured rows."""
        return cls(rows.widths(), rows.facts.copies, rows.facts.rubric)

    def of_pass(self, rows: MicroBatch) -> int:
        """Count the tokens of a forward pass, padding included."""
        return int(self.widths[rows].max() * self.copies[rows].sum())

    def cut(self, rows: Sequence[int], token_budget: int) -> list[MicroBatch]:
        """Cut rows, in their order, into as few micro-batches as a budget of tokens allows.

        Neighbours of different rubrics are cut apart. A row that has more tokens than the budget is
        a micro-batch of its own.
        """
        parts: list[MicroBatch] = []
        width = height = 0
        for row in rows:
            width, height = max(width, int(self.widths[row])), height + int(self.copies[row])
            is_alike = parts and self.rubrics[row] == self.rubrics[parts[-1][0]]
            if not is_alike or width * height > token_budget:
                parts.append([])
                width, height = int(self.widths[row]), int(self.copies[row])
            parts[-1].append(row)
        return parts

    def cut_step(self, rows: Sequence[int], processes: int, token_budget: int) -> list[MicroBatch]:
        """Cut the rows of a step into micro-batches of similar cost, as many for each process.

        If there are too few rows, some processes get one micro-batch less, or none. Process ``i``
        of ``n`` takes every ``n``-th from the ``i``-th. The costliest come first, so a lack of
        memory shows at once. None takes more than a process's share of rows of the longest would.

        Rows are indices, in order of length within a rubric; the budget counts padding.
        """
        longest = max(self.of_pass([row]) for row in rows)
        # Where kinds are cut apart, a round of one part each could give most rows to one process.
        parts = self.cut(rows, min(token_budget, -(-len(rows) // processes) * longest))
        count = min(len(rows), processes * -(-len(parts) // processes))  # up to whole rounds
        if processes > 1:
            low, high = 1, max(token_budget, longest)
            while low < high:  # find the least budget that gives at most ``count`` parts
                middle = (low + high) // 2
                if len(self.cut(rows, middle)) <= count:
                    high = middle
                else:
                    low = middle + 1
            parts = self.cut(rows, low)
        parts.sort(key=self.of_pass, reverse=True)
        while processes > 1 and len(parts) < count:  # else a process would be idle
            part = parts.pop(next(i for i, part in enumerate(parts) if len(part) > 1))
            parts += [part[: len(part) // 2], part[len(part) // 2 :]]
            parts.sort(key=self.of_pass, reverse=True)
        if processes > 1:
            # In every second full round, the process with the costliest of the round before gets
            # the cheapest.
            for start in range(processes, count - processes + 1, 2 * processes):
                parts[start : start + processes] = parts[start : start + processes][::-1]
        return parts


def scoring_batches(rows: Rows, token_budget: int) -> list[MicroBatch]:
    """Plan batches that score every row once; each has rows of one rubric and like length.

    Rows with the same question are neighbours, because a batch reads a question only once.
    """
    costs, batches = RowCosts.of(rows), list[MicroBatch]()
    for indices in rows.by_rubric().values():
        questions = grouped(indices, rows.facts.shared_text.__getitem__)
        longest = sorted(questions.values(), key=lambda alike: -int(costs.widths[alike].max()))
        batches += costs.cut(list(chain(*longest)), token_budget)
    return batches


def _mega_batches(questions: list[list[int]], size: int) -> Iterator[list[list[int]]]:
    """Yield consecutive questions, at least ``size`` rows at a time except for the last."""
    mega: list[list[int]] = []
    count = 0
    for rows in questions:
        mega.append(rows)
        count += len(rows)
        if count >= size:
            yield mega
            mega, count = [], 0
    if mega:
        yield mega


AHEAD = 2
"""Batches that each worker encodes ahead."""
MOST_WORKERS = 4
START = "spawn"
"""How workers start: forks would inherit threads, locks and CUDA's state of the training."""

KILLED = (
    "a process that encodes rows was killed, as happens when memory is full; set run.workers=0, or "
    "give a container more shared memory (docker run --ipc=host)"
)

_ROWS: Mapping[str, Rows] = {}
"""In a worker: the rows that it encodes, by split."""


def default_workers(device: torch.device, processes: int) -> int:
    """Choose how many workers each of a machine's training processes has.

    It has none on a CPU, whose cores the model uses.
    """
    if device.type == "cpu":
        return 0
    return max(1, min(MOST_WORKERS, num_cores() // processes - 1))


class Loader:
    """Maker of batches of rows in the order asked for, some ahead of their use.

    Workers read the rows and have tokenizer, image processor and configuration, but no weights.
    They start with the first batch and end with this process, even if it is killed. Without workers
    every batch is made when it is due. A GPU copies from pinned batches without a wait.

    Attributes:
        data_wait: Seconds spent waiting for batches, or making them without workers.
    """

    def __init__(self, rows: Mapping[str, Rows], workers: int, *, pinned: bool = False) -> None:
        self.rows, self.workers, self.pinned = rows, workers, pinned
        self.data_wait = 0.0
        self._pool: ProcessPoolExecutor | None = None
        self._receiver = ThreadPoolExecutor(1, "custos-receiver")

    def batches(self, rows: Rows, plan: Iterable[Sequence[int]]) -> Iterator[Batch]:
        """Yield a batch for every list of indices, in order."""
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
                try:
                    batch = waiting.popleft().result()
                except BrokenProcessPool:
                    raise CustosError(KILLED) from None
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
                multiprocessing.get_context(START),
                _begin,
                (self.rows,),
            )
        try:
            made = self._pool.submit(_make, split, list(indices))
        except BrokenProcessPool:
            raise CustosError(KILLED) from None

        def received() -> Batch:
            batch = made.result()
            if isinstance(batch, str):
                raise CustosError(batch)
            return batch.pinned() if self.pinned else batch

        return self._receiver.submit(received)


def _begin(rows: Mapping[str, Rows]) -> None:
    """Prepare a worker process."""
    global _ROWS
    _ROWS = rows
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    begin_worker()


def _make(split: str, indices: Sequence[int]) -> Batch | str:
    """Make a batch, or say why it cannot be made."""
    try:
        return _ROWS[split].batch(indices)
    except CustosError as error:
        return str(error)


def begin_worker() -> None:
    """Leave Ctrl-C to the training process, and end when it has ended, even if it was killed.

    This is the initializer of a pool of processes.
    """

    def end_with_parent() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()
