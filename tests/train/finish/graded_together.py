"""Run by ``torchrun``: a judge grades and is calibrated on every process.

``torchrun ... -m tests.train.finish.graded_together RUN OUT ROWS [FAILING_RANK]``; the first
process writes the verdicts. Only the first one sees RUN, as on machines without a shared disk.
"""

import sys
from functools import partial
from pathlib import Path

from accelerate import Accelerator

from evaluation.report.evaluate import grade_examples
from judging.errors import CustosError
from judging.files.records import write_json
from judging.types import Verdict
from tests.train.made_up import example
from train.finish.grading import KeptChunk, KeptGrades, Processes, calibrate
from train.launch import front


def run(folder: Path, out: Path, count: int, failing: int | None = None) -> None:
    """Grade rows of which some share a question, and fit a calibration on them."""
    accelerator = Accelerator(cpu=True)
    processes = Processes.of(accelerator)
    rows = [example(i) for i in range(count)]
    judge = processes.load_judge(
        folder if processes.is_first else out / "nowhere" / folder.name, accelerator.device
    )
    if processes.rank == failing:
        raise CustosError("a row cannot be scored")
    kept = KeptGrades(out, processes)
    grade = partial(grade_examples, judge)
    verdicts = kept.grade("grading", judge, rows, grade, KeptChunk[Verdict])
    found = {
        "ids": [verdict.id for verdict in verdicts],
        "probabilities": [verdict.probabilities for verdict in verdicts],
        "fitted": calibrate(judge, rows, kept) is not None,
    }
    kept.delete()
    if processes.is_first:
        write_json(out / "verdicts.json", found)


if __name__ == "__main__":
    front.SECONDS_TO_BE_STOPPED = 1
    with front.command_line():
        run(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), *map(int, sys.argv[4:]))
