"""What the processes of a finished run have graded, kept until the run has its judge and report.

A run that is stopped while it grades goes on with the window of rows that it was stopped in.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from judging.batches import in_batches
from judging.files.kept_work import KeptFile, KeptLine, Origin
from judging.fingerprint import digest, picture_sha256
from judging.judge import Judge
from judging.progress import progress_over
from judging.scoring.ask_model import WINDOW
from judging.types import LabelledExample
from train.finish.processes import Processes

FOLDER = "graded"
"""Folder in the run folder; it is deleted when the run is finished."""

ResultT = TypeVar("ResultT")


class KeptWindow(KeptLine, Generic[ResultT]):
    """A line of a kept file: the results of a window of rows."""

    number: int
    """Number of the window among those of its process."""
    results: list[ResultT]

    @property
    def origin(self) -> Origin:
        """Return the window's number, and the key of the judge and its rows."""
        return self.number, self.key


@dataclass(frozen=True)
class KeptGrades:
    """Grading by all processes of a run, each of which keeps its results in a file of its own."""

    run_folder: Path
    """Folder of the run; machines need not share it."""
    processes: Processes

    def grade(
        self,
        part: str,
        judge: Judge,
        rows: Sequence[LabelledExample],
        grade: Callable[[Sequence[LabelledExample]], list[ResultT]],
        line_type: type[KeptWindow[ResultT]],
    ) -> list[ResultT]:
        """Grade rows on all processes; the first one shows how far it is with its share.

        Args:
            part: What is graded: the name of the kept file, and of the progress bar.
            judge: Judge that grades them.
            rows: Rows to grade.
            grade: Returns one result per row of a window.
            line_type: Type of the file's lines, with that of a result.

        Returns:
            One result per row, on every process.
        """
        processes = self.processes
        mine = processes.share(rows)
        file = KeptFile(self._path(part), line_type)
        results = _graded(file, judge, [rows[index] for index in mine], grade)
        if processes.is_first and mine:
            results = progress_over(results, part, len(mine))
        return processes.gather(mine, list(results))

    def is_begun(self, part: str) -> bool:
        """Return whether an earlier run of this process has graded some of a part."""
        return self._path(part).exists()

    def delete(self) -> None:
        """Delete the kept files, once all processes have called this."""
        self.processes.gather([self.processes.rank], [None])
        shutil.rmtree(self.run_folder / FOLDER, ignore_errors=True)

    def _path(self, part: str) -> Path:
        name = f"{part.replace(' ', '-')}-{self.processes.rank}-of-{self.processes.count}.jsonl"
        return self.run_folder / FOLDER / name


def _graded(
    file: KeptFile[KeptWindow[ResultT]],
    judge: Judge,
    rows: Sequence[LabelledExample],
    grade: Callable[[Sequence[LabelledExample]], list[ResultT]],
) -> Iterator[ResultT]:
    """Yield the results of rows: those in the file, and new ones, which are added to it.

    A window is kept whole: the last digits of a result depend on the other rows of its window.
    """
    windows = list(in_batches(rows, WINDOW))
    origins = [(number, _key(judge, window)) for number, window in enumerate(windows)]
    kept = {line.number: line.results for line in file.matching(origins)}
    file.path.parent.mkdir(parents=True, exist_ok=True)
    for (number, key), window in zip(origins, windows, strict=True):
        if number not in kept:
            kept[number] = grade(window)
            file.append([KeptWindow(key=key, number=number, results=kept[number])])
        yield from kept[number]


def _key(judge: Judge, rows: Sequence[LabelledExample]) -> str:
    """Return a digest of a judge, of rows and of the content of their pictures."""
    return digest(
        {
            "judge": judge.describe(),
            "rows": [row.model_dump(mode="json") for row in rows],
            "pictures": [picture_sha256(source) for row in rows for source in row.images],
        }
    )
