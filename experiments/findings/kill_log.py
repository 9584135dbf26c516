"""The effect of ``kill -9`` at random moments on training, ``custos grade``, ``bench respond``.

python -m experiments kill_log --kills 30 --out runs/kill_log.json

Each work runs twice without a disturbance. Files that differ between these two (those with times)
are left out; all others must be equal in a run that was killed again and again. A fifth of the
kills are aimed at the start of a process, the others at its work: they wait until it has done
something more. Then, each from a copy of a run that was killed in its work: a disk that is full
(the system refuses larger files), a file of what was done that is cut in half, and another input.
Each must end in one line that says what to do, or in the same files.

Processes are forked from one that has imported the libraries, which would take most of the time.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from experiments.findings.kill_works import (
    GRADE,
    RESPOND,
    SCREEN,
    TRAIN,
    Work,
    answering,
    change_data,
    prepare,
    run_work,
    works,
)
from judging.errors import CustosError
from judging.files.records import write_json

FORKS = multiprocessing.get_context("forkserver")
ASKING = ("cli.main", "cli.bench.respond", "benchmarks.framework.responses", "clients.jobs")
JUDGING = (
    *("train.hieval_stage1", "cli.grade", "judging.judge", "peft", "matplotlib.pyplot"),
    *("transformers.models.qwen2_5_vl.modeling_qwen2_5_vl", "evaluation.report.plots"),
    *("transformers.models.qwen3_vl.modeling_qwen3_vl", "sklearn.linear_model", "scipy.stats"),
)
"""Modules that are imported once, for works that run a model."""
SIZES = {TRAIN: 400, GRADE: 2000, RESPOND: 600}
"""Rows or items of each work."""
IN_START = 0.2
"""Share of the kills that are aimed at the start of a process."""
ATTEMPTS = 20
"""Most processes that are started for each kill that is asked for; some end before their kill."""
LONGEST = 900.0
"""Seconds after which a process hangs."""
SAME, OTHER = "same files", "other files, without a word"
OF_CHANGED = "files of a run on the changed data"


@dataclass
class Outcome:
    """The kills of one work, and the files that they changed."""

    kills: int = 0
    """As many as were asked for, or more until one fell into the work."""
    in_start: int = 0
    """Kills before the process had done anything."""
    runs: int = 0
    """Runs that came to an end; a new one begins if a run ends before the last kill."""
    compared: int = 0
    """Files that were equal to those of the run without a disturbance."""
    left_out: list[str] = field(default_factory=list)
    """Files that differ between two runs without a disturbance."""
    leftovers: list[str] = field(default_factory=list)
    """Files that only the killed run has."""
    full_disk: str = ""
    cut_file: str = ""
    changed_data: str = ""


@dataclass(frozen=True)
class Reference:
    """A work without a disturbance."""

    files: dict[str, str]
    """Hash of every file that is equal in every such run, by name."""
    left_out: set[str]
    start: float
    """Seconds of processor time until something was done."""
    seconds: float
    """Those of the whole run."""


def main(argv: Sequence[str] | None = None) -> None:
    """Kill each work, compare what it made, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m experiments kill_log", description=__doc__)
    parser.add_argument("--kills", type=int, default=30, help="for each work (default 30)")
    parser.add_argument("--backbone", default="embedded", help="to train (default embedded)")
    parser.add_argument("--share", type=float, default=1.0, help="of the rows (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default 0)")
    parser.add_argument("--work", choices=[*SIZES], help="only this one (default all)")
    parser.add_argument("--out", type=Path, help="write what came of it to this JSON file")
    arguments = parser.parse_args(argv)
    FORKS.set_forkserver_preload([*ASKING, *(JUDGING if arguments.work != RESPOND else ())])
    with tempfile.TemporaryDirectory(prefix="custos-kill-log-") as name, answering() as url:
        folder = Path(name)
        outcomes = {}
        for work in works(Path("..", "..", TRAIN, "made", "run"), url).values():
            is_wanted = arguments.work in (None, work.name)
            if not is_wanted and (work.name != TRAIN or arguments.work != GRADE):
                continue  # the judge that grades comes from training
            size = max(8, int(SIZES[work.name] * arguments.share))
            log = KillLog(work, folder / work.name, size, arguments.backbone, arguments.seed)
            reference = log.undisturbed()
            if is_wanted:
                outcomes[work.name] = log.outcome(reference, arguments.kills)
    if arguments.out:
        write_json(arguments.out, {name: asdict(outcome) for name, outcome in outcomes.items()})
    Console().print(_table(outcomes))


class KillLog:
    """A work in a folder of its own.

    Args:
        work: The work.
        folder: Folder to make.
        size: Rows that there are.
        backbone: Backbone that is trained.
        seed: Decides the moments.
    """

    def __init__(self, work: Work, folder: Path, size: int, backbone: str, seed: int) -> None:
        self.work, self.folder, self.size, self.backbone = work, folder, size, backbone
        self.here = folder / "here"  # all runs are in one folder: some files hold its name
        self.moments = random.Random(f"{seed}/{work.name}")

    def undisturbed(self) -> Reference:
        """Run the work twice without a disturbance; what it made stays in the folder ``made``."""
        first, begun, seconds = self._timed()
        shutil.copytree(self.here, self.folder / "made")
        second, _, _ = self._timed()
        left_out = {name for name in {*first, *second} if first.get(name) != second.get(name)}
        if self.work.output not in first or self.work.output in left_out:
            raise CustosError(f"{self.work.name}: two runs give another {self.work.output}")
        files = {name: content for name, content in first.items() if name not in left_out}
        return Reference(files, left_out, begun, seconds)

    def outcome(self, reference: Reference, kills: int) -> Outcome:
        """Kill the work so often, then let it end; compare its files with the reference's.

        Raises:
            CustosError: If files differ, or if the work ends before it can be killed.
        """
        outcome = Outcome(left_out=sorted(reference.left_out))
        work, copy = self.work, self.folder / "copy"
        self._begin_anew()
        step = min(1.0, 2 / kills) * (reference.seconds - reference.start)
        for _ in range(ATTEMPTS * kills):
            if outcome.kills >= kills and copy.exists():
                break
            if not self._kill(reference.start, step, outcome):
                self._compare(reference, outcome)
                self._begin_anew()
            elif not copy.exists() and self._done()[1]:
                shutil.copytree(self.here, copy)
        else:
            raise CustosError(f"{work.name}: ends before it can be killed; give it more rows")
        self._finish()
        self._compare(reference, outcome)
        outcome.full_disk = self._disturbed(reference, lambda _: None, work.written)
        outcome.cut_file = self._disturbed(reference, lambda f: _cut(work.progress(f)[-1]))
        outcome.changed_data = self._disturbed(reference, lambda f: change_data(work, f))
        if outcome.changed_data == OTHER:
            outcome.changed_data = self._compare_with_changed_data(reference)
        return outcome

    def _compare_with_changed_data(self, reference: Reference) -> str:
        """Compare the files with those of a run that had the changed data from its start."""
        files = hashes(self.here)
        self._begin_anew()
        change_data(self.work, self.here)
        self._finish()
        made = hashes(self.here)
        wanted = {name: made[name] for name in reference.files}
        return OF_CHANGED if _are_equal(files, wanted) else OTHER

    def _timed(self) -> tuple[dict[str, str], float, float]:
        """Return the files of a run, its seconds until it had done something, and all of them."""
        begun = spent = 0.0
        self._begin_anew()
        process = self._process()
        for spent in self._seconds(process):
            if not begun and self.work.progress(self.here):
                begun = spent
        if process.exitcode:
            raise CustosError(f"{self.work.name}: {_last_line(self.here)}")
        return hashes(self.here), begun, spent

    def _begin_anew(self) -> None:
        shutil.rmtree(self.here, ignore_errors=True)
        prepare(self.work.name, self.here, self.size, self.backbone)

    def _kill(self, start: float, step: float, outcome: Outcome) -> bool:
        """Start the work and kill it at a random moment; return whether it was still running.

        Args:
            start: Processor seconds of a start; a kill in the start falls into these.
            step: Those after the first thing that the process has done; other kills fall into them.
            outcome: Counts the kill.
        """
        is_in_start = self.moments.random() < IN_START
        after = self.moments.uniform(0, start if is_in_start else step)
        before, has_worked = self._done(), False
        process = self._process()
        for spent in self._seconds(process):
            if not has_worked and self._done() > before:
                has_worked = True
                after += 0 if is_in_start else spent
            if spent >= after and (has_worked or is_in_start):
                process.kill()  # SIGKILL
                process.join(LONGEST)
        if process.exitcode not in (0, -signal.SIGKILL):
            raise CustosError(f"{self.work.name}: {_last_line(self.here)}")
        if process.exitcode == 0:
            return False
        outcome.kills += 1
        outcome.in_start += not has_worked
        return True

    def _done(self) -> tuple[str, int]:
        """Return the newest file of what was done, and its size; the work makes both grow."""
        with suppress(FileNotFoundError):  # the work deletes old files meanwhile
            files = self.work.progress(self.here)
            if files:
                return str(files[-1]), files[-1].stat().st_size
        return "", 0

    def _finish(self, most_bytes: int | None = None) -> int | None:
        """Let the work end; return its exit status.

        Args:
            most_bytes: Largest file that it may write.
        """
        process = self._process(most_bytes)
        for _ in self._seconds(process):
            pass
        return process.exitcode

    def _seconds(self, process: BaseProcess) -> Iterator[float]:
        """Yield the processor time of a process until it has ended.

        Work done grows with it, however busy the machine is.
        """
        started = time.perf_counter()
        while process.is_alive():
            try:
                times = psutil.Process(process.pid).cpu_times()
            except psutil.NoSuchProcess:  # it ended just now
                continue
            yield times.user + times.system
            if time.perf_counter() - started > LONGEST:
                process.kill()
                raise CustosError(f"{self.work.name}: hangs")
            process.join(0.01)

    def _process(self, most_bytes: int | None = None) -> BaseProcess:
        (self.here / SCREEN).unlink(missing_ok=True)
        process = FORKS.Process(target=run_work, args=(self.work, self.here, most_bytes))
        process.start()
        return process

    def _compare(self, reference: Reference, outcome: Outcome) -> None:
        files, wanted = hashes(self.here), reference.files
        differing = [name for name in wanted if files.get(name) != wanted[name]]
        if differing:
            raise CustosError(f"{self.work.name}: another {', '.join(differing)} after kills")
        outcome.runs += 1
        outcome.compared = len(wanted)
        more = files.keys() - wanted.keys() - reference.left_out
        outcome.leftovers = sorted({*outcome.leftovers, *more})

    def _disturbed(
        self, reference: Reference, disturb: Callable[[Path], None], most_bytes: int | None = None
    ) -> str:
        """Disturb a copy of a killed run and go on; return its error line, or ``SAME``."""
        shutil.rmtree(self.here)
        shutil.copytree(self.folder / "copy", self.here)
        disturb(self.here)
        status = self._finish(most_bytes)
        if not status:
            return SAME if _are_equal(hashes(self.here), reference.files) else OTHER
        line = _last_line(self.here)
        if most_bytes is not None:  # there is space again
            self._finish()
            self._compare(reference, Outcome())
        return line


def hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in a folder, by its name there."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != SCREEN
    }


def _are_equal(files: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(files.get(name) == content for name, content in wanted.items())


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _last_line(folder: Path) -> str:
    """Return the error line of a process, or how it ended if it printed more than that."""
    text = (folder / SCREEN).read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.startswith("error: ")]
    if len(lines) == 1 and "Traceback" not in text:
        return lines[0]
    return f"no error line: {' '.join(text.split())[-300:]}"


def _table(outcomes: dict[str, Outcome]) -> Table:
    table = Table("", *outcomes)
    table.add_row("kills", *(str(o.kills) for o in outcomes.values()))
    table.add_row("of them in the start", *(str(o.in_start) for o in outcomes.values()))
    table.add_row("runs that ended", *(str(o.runs) for o in outcomes.values()))
    table.add_row("equal files", *(str(o.compared) for o in outcomes.values()))
    table.add_row("left out", *(", ".join(o.left_out) for o in outcomes.values()))
    table.add_row("files too many", *(", ".join(o.leftovers) or "-" for o in outcomes.values()))
    table.add_row("disk full", *(o.full_disk for o in outcomes.values()))
    table.add_row("file cut in half", *(o.cut_file for o in outcomes.values()))
    table.add_row("changed data", *(o.changed_data for o in outcomes.values()))
    return table
