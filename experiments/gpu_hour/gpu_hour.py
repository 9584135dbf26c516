"""The first hour on a GPU, in six steps of at most nine minutes: tests, speed, memory, kernels.

python -m experiments gpu_hour 4 --out gpu_hour/h100.json

Without a number all six are taken in order. Every part of a step runs in a process of its own, and
its figures are in the file as soon as they are there. A step whose time ends goes on, when it is
called again, with the parts that have not ended; ``--again`` takes all of them anew. ``--rehearse``
takes the same steps on the CPU, on models of two layers.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from experiments.gpu_hour import grading, machine, training
from experiments.gpu_hour.figures import (
    LARGE,
    NOT_FINISHED,
    REAL,
    SMALL,
    Book,
    Figure,
    Hour,
    Machine,
)
from judging.errors import CustosError
from judging.files.kept_work import locked
from train.launch.front import interrupted_by

Measure = Callable[[Hour], Iterator[Figure]]
STEPS = range(1, 7)
MINUTES = 9.0
LEAST_SECONDS = 15.0
"""Time below which no further part is begun."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program; exit with 1 if a part did not end or a figure misses its target."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", nargs="?", type=int, choices=STEPS, help="default: all in order")
    parser.add_argument("--out", type=Path, help="default: gpu_hour/DEVICE.json")
    parser.add_argument("--again", action="store_true", help="also take parts that have ended")
    parser.add_argument("--rehearse", action="store_true", help="all in small, on the CPU")
    parser.add_argument(
        "--real",
        action="append",
        metavar="PATH",
        help="folder or name of a model with trained weights, as often as there are such; default: "
        + ", ".join(REAL),
    )
    parser.add_argument("--minutes", type=float, default=MINUTES, help="most of a step; default 9")
    parser.add_argument("--folder", type=Path, default=Path("runs/gpu_hour"), help="for runs, rows")
    parser.add_argument("--only", metavar="PART", help="one part, in this process")
    arguments = parser.parse_args(argv)
    if arguments.rehearse:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    here = Machine.here(rehearsal=arguments.rehearse)
    out = arguments.out or Path("gpu_hour") / f"{here.slug}.json"
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    real = tuple(arguments.real or (() if arguments.rehearse else REAL))
    steps = [arguments.step] if arguments.step else list(STEPS)
    if arguments.only:
        measure_part(Hour(Book(out, here), folder, real), steps[0], arguments.only)
        return
    # Two at once would lose figures of each other, and measure each other's load.
    with locked(out), locked(folder):
        if not run_steps(Hour(Book(out, here), folder, real), steps, arguments):
            sys.exit(1)


def run_steps(hour: Hour, steps: Sequence[int], arguments: argparse.Namespace) -> bool:
    """Measure steps and print their figures; return as :func:`show`."""
    out, folder = hour.book.path, hour.folder
    options = [*("--out", str(out)), *("--folder", str(folder))]
    options += [word for name in hour.real for word in ("--real", name)]
    options += ["--rehearse"] if arguments.rehearse else []
    try:
        for step in steps:
            run_step(hour, step, 60 * arguments.minutes, options, again=arguments.again)
    except KeyboardInterrupt:
        sys.exit(130)
    return show(Hour(Book(out, hour.book.machine), folder, hour.real), steps)


def parts(hour: Hour) -> dict[int, dict[str, Measure]]:
    """Return the parts of every step, by name, in the order in which they are measured."""
    steps: dict[int, dict[str, Measure]] = {step: {} for step in STEPS}
    steps[1] = {"machine": machine.machine, "attention": machine.new_shapes}
    for step in (2, 3):
        for file in machine.files_of_tests(step):
            steps[step][file] = partial(machine.run_tests, file=file)
    steps[4]["weights of 4B"] = partial(training.make_weights, shape=LARGE)
    for part in training.CHECKPOINTING:
        steps[4][part] = partial(training.train, part=part)
        steps[4][f"TRL, {part}"] = partial(training.trl, part=part)
    steps[5]["weights of 3B"] = partial(training.make_weights, shape=SMALL)
    for model in (grading.RANDOM, *hour.real):
        for way in grading.WAYS:
            steps[5][f"{way}: {model}"] = partial(grading.graded, way=way, model=model)
    steps[6] = {
        "critiques": grading.critiques,
        "pictures": grading.pictures,
        "4 bits, killed": training.quantised,
    }
    return steps


def run_step(hour: Hour, step: int, seconds: float, options: Sequence[str], *, again: bool) -> None:
    """Measure the parts of a step that have not ended, each in a process of its own.

    After so many seconds of all together the part that is running is killed.
    """
    until = time.monotonic() + seconds
    names = [name for name in parts(hour)[step] if again or [step, name] not in hour.book.done]
    for number, name in enumerate(names):
        began = time.monotonic()
        if number and until - began < LEAST_SECONDS:
            say(f"step {step}: no time for {', '.join(names[number:])}; run it again")
            return
        say(f"step {step}: {name}")
        command = [sys.executable, "-m", "experiments", "gpu_hour", str(step), "--only", name]
        command += options
        if reason := run_within(command, until - began):
            book = Book(hour.book.path, hour.book.machine)  # with the part's figures
            book.done = [key for key in book.done if key != [step, name]]
            book.add(step, name, Figure(NOT_FINISHED, reason), began)
            say(f"step {step}: {name}: {reason}")
            if name == "machine":
                raise CustosError(reason.removeprefix("error: "))


def run_within(command: Sequence[str], seconds: float) -> str | None:
    """Run a process with all that it starts, and end both; return why it did not end well."""
    process = subprocess.Popen(
        command, start_new_session=True, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    ended = True
    try:
        with interrupted_by(signal.SIGTERM):
            errors = process.communicate(timeout=max(1.0, seconds))[1]
    except subprocess.TimeoutExpired:
        ended = False
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if not ended:
        errors = process.communicate()[1]
    sys.stderr.write(errors)
    if not ended:
        return f"killed after {seconds:.0f} s, when the step's time ended"
    lines = [line for line in errors.splitlines() if line.strip()]
    return [f"status {process.returncode}", *lines][-1] if process.returncode else None


def measure_part(hour: Hour, step: int, name: str) -> None:
    """Measure a part in this process; each figure is written as soon as it is there."""
    measure = parts(hour)[step].get(name)
    if measure is None:
        raise CustosError(f"step {step} has no part '{name}': {', '.join(parts(hour)[step])}")
    hour.book.clear(step, name)
    began = time.monotonic()
    for figure in measure(hour):
        hour.book.add(step, name, figure, began)
    hour.book.done.append([step, name])
    hour.book.write()


def show(hour: Hour, steps: Sequence[int]) -> bool:
    """Print the figures of steps; return whether all parts ended and no target is missed."""
    columns = ("step", "part", "measurement", "value", "target", "")
    table = Table(*columns, title=hour.book.machine.device)
    figures = [figure for step in steps for figure in hour.book.figures if figure["step"] == step]
    for figure in figures:
        value = figure["value"]
        number = value if isinstance(value, str) else f"{value:,.4g} {figure['unit']}"
        mark = {None: "", True: "ok", False: "missed"}[figure["ok"]]
        cells = (figure["part"], figure["measurement"], number, figure["target"], mark)
        table.add_row(str(figure["step"]), *map(escape, cells))
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    ended = hour.book.done
    left = [f"{s}: {name}" for s in steps for name in parts(hour)[s] if [s, name] not in ended]
    say(f"figures: {hour.book.path}")
    if left:
        say(f"not finished: {'; '.join(left)}")
    return not left and all(figure["ok"] is not False for figure in figures)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
