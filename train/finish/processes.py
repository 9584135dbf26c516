"""The processes of a run, which grade the rows of its end together."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
from accelerate import Accelerator

from judging.fingerprint import file_sha256
from judging.judge import CALIBRATION_FILE, Judge
from judging.judge.card import CARD_FILE
from judging.models.adapters import ADAPTER_CONFIG, ADAPTER_FILE
from judging.tasks import get_task
from judging.types import LabelledExample

LONGEST_WAIT = timedelta(days=2)
"""How long a process waits for the slowest; collectives of a GPU give up after ten minutes."""
TOGETHER = 8
"""Most rows of one question that stay on one process, which reads the question once."""
PICTURE_CHARACTERS = 4000
"""Characters of text that take a judge about as long as a picture of one megapixel."""
JUDGE_FILES = (ADAPTER_FILE, ADAPTER_CONFIG, CARD_FILE)

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Processes:
    """The processes of a run; this one is ``rank`` of ``count``."""

    rank: int = 0
    count: int = 1
    group: Any = None
    """Group of all processes that talks over the network and waits long; ``None`` for one."""

    @classmethod
    def of(cls, accelerator: Accelerator) -> Processes:
        """Return the processes of an accelerator; all of them must call this."""
        if accelerator.num_processes == 1:
            return cls()
        group = torch.distributed.new_group(backend="gloo", timeout=LONGEST_WAIT)
        return cls(accelerator.process_index, accelerator.num_processes, group)

    @property
    def is_first(self) -> bool:
        """Return whether this process writes files and shows progress."""
        return self.rank == 0

    def share(self, examples: Sequence[LabelledExample]) -> list[int]:
        """Return the indices of the rows of this process; shares take about equally long."""
        return share_rows(examples, self.count)[self.rank]

    def gather(self, indices: Sequence[int], results: Sequence[ResultT]) -> list[ResultT]:
        """Return the results of all processes in the order of the rows, on every process.

        Args:
            indices: Rows of this process, as :meth:`share` gives them.
            results: One result per row of this process.
        """
        pairs = dict(zip(indices, results, strict=True))
        if self.count > 1:
            shares: list[Any] = [None] * self.count
            torch.distributed.all_gather_object(shares, pairs, group=self.group)
            pairs = {index: result for share in shares for index, result in share.items()}
        return [pairs[index] for index in sorted(pairs)]

    def load_judge(self, folder: Path, device: torch.device) -> Judge:
        """Load the judge that the first process has written, on every process.

        Machines need not share a disk: a process that lacks the files gets them sent.

        Args:
            folder: Run folder.
            device: Device of this process.
        """
        names = (*JUDGE_FILES, CALIBRATION_FILE)
        hashes = {name: file_sha256(folder / name) for name in names if (folder / name).is_file()}
        of_all = self.gather([self.rank], [hashes])
        if all(hashes_of_one == of_all[0] for hashes_of_one in of_all):
            return Judge.load(str(folder), device=str(device))
        mine = [{name: (folder / name).read_bytes() for name in of_all[0]} if self.is_first else {}]
        torch.distributed.broadcast_object_list(mine, src=0, group=self.group)
        with tempfile.TemporaryDirectory() as scratch:
            received = Path(scratch) / folder.name
            received.mkdir()
            for name, content in mine[0].items():
                (received / name).write_bytes(content)
            judge = Judge.load(str(received), device=str(device))
        judge.folder = folder
        return judge


def share_rows(examples: Sequence[LabelledExample], count: int) -> list[list[int]]:
    """Share rows among processes, long ones first, always to the process that has least to do.

    Rows of one question stay together, ``TOGETHER`` at a time.

    Args:
        examples: Rows to grade.
        count: Number of processes.

    Returns:
        Indices of the rows of each process; no rows if there are too few.
    """
    by_question: dict[str, list[int]] = {}
    for index, example in enumerate(examples):
        by_question.setdefault(example.question, []).append(index)
    units = [
        indices[start : start + TOGETHER]
        for indices in by_question.values()
        for start in range(0, len(indices), TOGETHER)
    ]
    costs = [sum(_cost(examples[index]) for index in unit) for unit in units]
    shares: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    for number in sorted(range(len(units)), key=lambda number: -costs[number]):
        rank = loads.index(min(loads))
        shares[rank] += units[number]
        loads[rank] += costs[number]
    return shares


def _cost(example: LabelledExample) -> int:
    """Return about how many characters a judge reads and writes for a row."""
    texts = (example.question, *example.choices, *example.references, *example.responses)
    pictures = get_task(example.task).pictures(example)
    written = 4 * example.critique_tokens if example.mode == "critique" else 0
    return 1 + sum(map(len, texts)) + PICTURE_CHARACTERS * len(pictures) + written
