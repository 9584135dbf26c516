"""A training run as ``custos train`` and the scripts start it: recipe, files, processes, errors."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import torch
from rich.console import Console
from safetensors import SafetensorError

from data_prep.tables.mapping import TableMapping, read_mapping
from judging import errors
from judging.errors import CustosError, Missing, lacks_memory
from judging.files.atomic import write_text
from judging.files.csv_rows import SPREADSHEETS
from judging.models.devices import has_gpu
from judging.tasks import get_task, task_names
from judging.types import Split, parse_record
from train.loop.checkpoint import checkpoints
from train.methods import method_of
from train.methods.base import Method
from train.rows.held_out import (
    DATA_FOLDER,
    MAPPING_FILE,
    RunTable,
    WrittenData,
    recipe_of_run,
    write_run_data,
)
from train.setup.engines import (
    CPU,
    LAUNCH_FILES,
    asks_for,
    check_engine,
    check_installed,
    check_processes,
    launch_file,
)
from train.setup.recipe import (
    find_recipe,
    parse_recipe,
    read_values,
    recipe_names,
    recipe_of_task,
    section_keys,
)
from train.setup.run_log import COMMAND_VARIABLE, GRADE_VARIABLE, LAUNCH_LOG, RUN_LOG
from train.setup.starting_adapter import with_shape_of_init

HELD_OUT: tuple[Split, ...] = ("val", "cal", "test")
SHOWN = ("error: ", "warning: ", "dry run: ")
"""Beginnings of the lines of ours on standard error; the others are the launcher's."""
STOP_SECONDS = 20
SECONDS_TO_BE_STOPPED = 10


@dataclass(frozen=True)
class TrainingRun:
    """The work of one call of ``custos train``."""

    method: type[Method]
    recipe: Path
    overrides: tuple[str, ...]
    """``key.path=value``, those of options last."""
    output: Path
    files: Mapping[Split, Sequence[RunTable]]
    """Tables that the user gave, by split; empty: the recipe's files."""
    held_out: tuple[Split, ...]
    """Splits to divide off the training file."""
    command: str
    """Command that was typed."""
    task: str | None = None
    """Task that the recipe trains all rows under, whatever task they name."""
    earlier: Path | None = None
    """Run folder of the judge that the run goes on from and is compared with."""

    @classmethod
    def plan(
        cls,
        recipe: str | None,
        keys: Sequence[str],
        files: Mapping[Split, Sequence[str]],
        mapping: TableMapping,
        *,
        earlier: Path | None = None,
        init: str | None,
        out: Path | None,
        seed: int | None,
        command: str,
    ) -> TrainingRun:
        """Decide on recipe, method, files and run folder.

        ``recipe`` is a file, name or task, by default that of the run ``earlier``, which the run
        goes on from; ``init``, ``out`` and ``seed`` replace its own. A table may have a mapping of
        its own (:meth:`RunTable.parse`). Raises ``CustosError`` if these do not go together.
        """
        if earlier is not None:
            recipe, mapping = recipe_of_run(recipe, earlier, mapping, init, out, files)
            init = str(earlier)
        if recipe is None:
            raise CustosError("name a recipe or a task, or the run to go on from with --from RUN")
        name = recipe_of_task(recipe)
        if files and "train" not in files:
            raise CustosError(f"--{next(iter(files))} needs --train; give both")
        if name and not files:
            raise CustosError(f"{recipe}: training for a task needs rows; give --train FILE")
        if not files and mapping != TableMapping():
            raise CustosError("--map and the other options of tables need --train; give both")
        if name and mapping.task not in (None, recipe):
            raise CustosError(
                f"custos train {recipe}: the mapping says task {mapping.task}, and grading with it "
                f"would too; give custos train {mapping.task}, or --task {recipe}"
            )
        near = get_close_matches(recipe, task_names(), n=1, cutoff=0.8)
        if near and not name and not Path(recipe).exists() and recipe not in recipe_names():
            raise CustosError(
                f"{recipe}: no such recipe or task; the nearest is '{near[0]}'; "
                "'custos recipe list' and 'custos tasks' name all"
            )
        path = find_recipe(name or recipe)
        options = {"adapter.init": init, "run.output": out, "run.seed": seed}
        given = [f"{key}={_quoted(str(of))}" for key, of in options.items() if of is not None]
        values = read_values(path, [*keys, *given])
        method, output = method_of(path, values), section_keys(values, "run", path).get("output")
        if not output:
            raise CustosError(f"{path}: no run.output; give --out FOLDER")
        output = Path(str(output))
        no_file = {key.partition("=")[0].removeprefix("data.") for key in keys}
        wanted = HELD_OUT if method.gives_labels else HELD_OUT[:1]
        held_out = tuple(s for s in wanted if s not in files and s not in no_file)
        overrides = [*keys, *given]
        if files:
            of_recipe = section_keys(values, "data", path)
            if mapping == TableMapping():
                known = of_recipe.get("mapping") or {}
                if isinstance(known, str):
                    mapping = read_mapping(Path(known))
                else:
                    mapping = parse_record(TableMapping, known, f"{path}: data.mapping")
            used = [split for split in ("train", *HELD_OUT) if split in (*files, *held_out)]
            data: dict[str, Any] = {
                split: str(output / DATA_FOLDER / f"{split}.jsonl") for split in used
            }
            if "votes" in of_recipe:  # the other keys are about the recipe's own files
                data["votes"] = of_recipe["votes"]
            overrides = [f"data={_quoted(data)}", *overrides, "data.mapping=null"]
        if name and not mapping.task:
            mapping = mapping.model_copy(update={"task": recipe})
        if earlier is not None:
            overrides = ["provenance=null", *overrides]
            if not method.gives_labels:
                raise CustosError(
                    f"{earlier}: judges of rewards give no labels to compare; go on with --init"
                )
            if "test" not in (*files, *held_out):
                raise CustosError(
                    f"--from {earlier}: the judges are compared on test rows; give them with "
                    "--test FILE, or leave data.test out"
                )
        tables = {split: [RunTable.parse(t, mapping) for t in of] for split, of in files.items()}
        return cls(
            method=method,
            recipe=path,
            overrides=tuple(overrides),
            output=output,
            files=tables,
            held_out=held_out,
            command=command,
            task=values.get("task"),
            earlier=earlier,
        )

    def write_data(self, *, allow_dropped: bool = False) -> WrittenData:
        """Check the recipe and the adapter to start from, then write the rows to the run folder."""
        recipe = parse_recipe(self.method.recipe_class, self.recipe, self.overrides)
        with_shape_of_init(recipe)
        writes = self.task is None or get_task(self.task).critique is not None
        return write_run_data(
            self.files,
            self.held_out,
            self.output,
            allow_dropped=allow_dropped,
            seed=recipe.run.seed,
            command=self.command,
            needs_critiques=self.method.learns_text and writes,
            earlier=self.earlier,
        )

    @property
    def grade_command(self) -> str | None:
        """Spell the command that grades the training table; ``None`` without one.

        A judge that gives rewards cannot grade the pairs that it was trained on.
        """
        if not self.files or not self.method.gives_labels:
            return None
        (table, mapping), *_ = self.files["train"]
        suffix = Path(table).suffix
        out = f"verdicts{suffix if suffix in (*SPREADSHEETS, '.parquet') else '.jsonl'}"
        file = self.output / DATA_FOLDER / MAPPING_FILE
        options = [] if mapping == TableMapping() else ["--mapping", str(file)]
        task = ["--task", self.task] if self.task and self.task != mapping.task else []
        command = ["custos", "grade", "--judge", str(self.output), "--in", table]
        return shlex.join([*command, *options, *task, "--out", out])

    def describe_data(self, counts: Mapping[Split, int]) -> str:
        """Say in a line how the rows divide."""
        sizes = ", ".join(f"{number:,} {split}" for split, number in counts.items() if number)
        held_out = f" ({', '.join(self.held_out)} divided off train by question)"
        return f"rows: {sizes}{held_out if self.held_out else ''}, in {self.output / DATA_FOLDER}"

    def start(
        self, processes: int | None, config_file: Path | None, options: Sequence[str] = ()
    ) -> None:
        """Train with the method's script; exit with its status if it fails or is stopped.

        Without a number there is one process for each GPU, or one. A ``config_file`` of
        ``accelerate config``, which may be the name of one that came with custos, may say the
        number too. Raises ``CustosError`` with the first error if one of several processes fails,
        or if PyTorch cannot use the GPUs that are there.
        """
        script = f"train.{self.method.script}"
        arguments = ["--config", str(self.recipe), *options, *self.overrides]
        os.environ[COMMAND_VARIABLE] = self.command
        if self.grade_command is not None:
            os.environ[GRADE_VARIABLE] = self.grade_command
        try:
            if config_file is None:
                count = processes or _num_gpus()
                if count == 1:
                    import_module(script).main(arguments)
                    return
                # On a CPU accelerate launch starts one process, whatever it is asked.
                launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
            else:
                file = launch_file(config_file)
                # The shipped files are for any number of GPUs.
                number = processes or (_num_gpus() if file.parent == LAUNCH_FILES else None)
                launcher = ["accelerate.commands.accelerate_cli", "launch"]
                launcher += ["--config_file", str(file)]
                launcher += ["--num_processes", str(number)] if number else []
            line = [sys.executable, "-m", *launcher, "-m", script, *arguments]
            _run_launcher(line, self.output, self.command)
        finally:
            del os.environ[COMMAND_VARIABLE]
            os.environ.pop(GRADE_VARIABLE, None)


def _quoted(value: Any) -> str:
    """Write a value as YAML, which does not read the pairs that JSON makes of 😀 and the like."""
    return json.dumps(value, ensure_ascii=False)


def stop_message(folder: Path, command: str) -> str:
    """Say in a line where a stopped run goes on."""
    steps = [step for step, _ in checkpoints(folder)]
    where = f"step {steps[-1]}; the same command goes on from there" if steps else ""
    return f"stopped at {where or 'no checkpoint yet; the same command starts again'}: {command}"


def _run_launcher(arguments: Sequence[str], folder: Path, command: str) -> None:
    errors: list[str] = []
    others: deque[str] = deque(maxlen=10_000)
    process = subprocess.Popen(
        arguments,
        stderr=subprocess.PIPE,
        env={"OMP_NUM_THREADS": "1", **os.environ},  # the processes share the CPU's cores
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C comes to us alone
    )
    assert process.stderr is not None
    try:
        with interrupted_by(signal.SIGTERM, signal.SIGHUP):
            for line in process.stderr:
                if line.startswith("error: "):
                    errors.append(line)
                elif line.startswith(SHOWN):
                    sys.stderr.write(line)
                else:
                    others.append(line)
            status = process.wait()
    except KeyboardInterrupt:
        # The launcher stops its processes; a second Ctrl-C changes nothing.
        previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        signal.signal(signal.SIGINT, previous)
        sys.stderr.write(f"\n{stop_message(folder, command)}\n")
        sys.exit(130)
    if errors:
        raise CustosError(errors[0].removeprefix("error: ").strip())
    if not status:
        return
    write_text(log := folder / LAUNCH_LOG, "".join(others))
    if any("Signal 9 (SIGKILL)" in line or "exitcode: -9" in line for line in others):
        reason = (
            "a process was killed, as happens when memory is full; "
            "lower optim.token_budget or --processes"
        )
    else:
        of_python = [line.strip() for line in others if "Error: " in line]
        reason = f"training failed: {of_python[0] if of_python else 'a process ended'}"
    raise CustosError(f"{reason}; all that the processes said: {log}")


@contextmanager
def interrupted_by(*signals: signal.Signals) -> Iterator[None]:
    """Take signals for Ctrl-C while the block runs, so that no process is left behind."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in signals}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _num_gpus() -> int:
    """Count the GPUs, 1 if there is none or the CPU is asked for."""
    return 1 if asks_for(CPU, os.environ) or not has_gpu() else torch.cuda.device_count()


def load_recipe(
    method: type[Method],
    path: Path,
    keys: Sequence[str],
    values: Mapping[str, Any] | None = None,
) -> Any:
    """Validate the recipe of a run, which this process must be able to train.

    ``values`` are what :func:`read_values` returned for file and keys, if they have been read.
    Raises ``CustosError`` if the launcher's engine is not supported, or a package that the recipe
    needs is not installed.
    """
    check_engine(os.environ)
    values = {**(values or read_values(path, keys)), "method": method.name}
    recipe = parse_recipe(method.recipe_class, path, keys, values)
    check_installed(recipe)
    check_processes(recipe, os.environ)
    return recipe


def parse_arguments(
    script: str, argv: Sequence[str] | None = None, default: str | None = None
) -> argparse.Namespace:
    """Parse the arguments of a training script: config, overrides, dry_run, random_weights.

    Without ``default``, the name of a recipe, ``--config`` must be given.
    """
    launch = f"accelerate launch train/{script}.py"
    parser = argparse.ArgumentParser(
        prog=launch,
        description=f"Train with a recipe. Example: {launch} "
        "--config embedded/demo optim.lr=1e-4 run.output=runs/try. Try it out first: "
        f"{launch} --dry-run 2",
    )
    parser.add_argument(
        "--config",
        metavar="RECIPE",
        default=default,
        required=default is None,
        help="a file, or the name of a recipe that came with custos (custos recipe list)"
        + ("; default %(default)s" if default else ""),
    )
    parser.add_argument(
        "--dry-run",
        metavar="N",
        type=_positive,
        help="take N optimizer steps on the first rows, then validate, save, load, calibrate, "
        "grade and serve, all in a temporary folder, and print the seconds and the memory of each "
        "part",
    )
    parser.add_argument(
        "--random-weights",
        action="store_true",
        help="train on random weights in the shape of the recipe's backbone, where its own cannot "
        "be had, and from a fresh adapter; the judge knows nothing",
    )
    parser.add_argument("overrides", nargs="*", metavar="key.path=value")
    return parser.parse_intermixed_args(argv)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: give the number of steps, 1 or more")
    return int(text)


def launch_command(script: str, argv: Sequence[str] | None) -> str:
    """Repeat the command that was typed, ready to be typed again."""
    arguments = shlex.join(sys.argv[1:] if argv is None else argv)
    launched = f"accelerate launch train/{script}.py {arguments}".rstrip()
    return os.environ.get(COMMAND_VARIABLE, launched)


@contextmanager
def command_line(instead: str = "") -> Iterator[None]:
    """End on a known error with one line and exit status 2; keep library notices off the screen.

    ``instead`` are commands to run where the recipe's backbone or data cannot be had.
    """
    try:
        with RUN_LOG.collecting():
            yield
    except KeyboardInterrupt:
        command = launch_command(Path(sys.argv[0]).stem, None)
        _end(f"\n{stop_message(RUN_LOG.folder, command) if RUN_LOG.folder else 'stopped'}", 130)
    except Exception as error:
        text = known_error(error)
        if text is None:
            raise
        advice = f"; without it: {instead}" if instead and isinstance(error, Missing) else ""
        if os.environ.get("RANK", "0") != "0":
            # Most mistakes meet every process: the first one reports it, and the others are stopped
            # before they do.
            time.sleep(SECONDS_TO_BE_STOPPED)
        _end(f"error: {' '.join(f'{text}{advice}'.split())}", 2)
    if torch.distributed.is_initialized():
        # Gloo's threads may abort an interpreter that ends; the launcher then stops the process
        # that still writes the report.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def known_error(error: Exception) -> str | None:
    """Word an error that the user can mend; ``None`` for any other error."""
    if lacks_memory(error):
        return (
            "out of memory; lower optim.token_budget (DPO and GRPO: critiques.micro_batch) and, if "
            "that is not enough, set run.gradient_checkpointing=true"
        )
    if isinstance(error, SafetensorError):  # a damaged file
        return f"{RUN_LOG.folder or 'run folder'}: {error}"
    return errors.known_error(error)


def _end(line: str, status: int) -> NoReturn:
    Console(stderr=True).print(line, markup=False, highlight=False, soft_wrap=True)
    if torch.distributed.is_initialized():
        sys.stdout.flush()
        os._exit(status)  # the other processes wait for this one
    sys.exit(status)
