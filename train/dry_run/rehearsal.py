"""``--dry-run N`` and ``--random-weights`` of the training scripts."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import wraps
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from judging.errors import CustosError, Missing
from judging.files.atomic import atomic_write
from judging.judge import Judge
from train.dry_run.few_rows import keys_of_few_rows
from train.dry_run.parts import PARTS, Part
from train.dry_run.random_checkpoint import random_checkpoint
from train.dry_run.served import serve_once
from train.dry_run.table import as_table
from train.setup.command_line import known_error, parse_arguments
from train.setup.data import read_splits
from train.setup.processes import interrupted_by
from train.setup.recipe import Recipe, parse_recipe, read_values
from train.setup.recipe_files import REWARD_SCRIPT, find_recipe, section_keys
from train.setup.recipe_keys import recipe_model
from train.setup.run_log import LOG_FILE

Main = Callable[..., None]

READY = "ready"
"""File with the keys of the few rows; the first process writes it once the others may read them."""
SECONDS_TO_PREPARE = 1800


def with_rehearsal(script: Path, default: str = "") -> Callable[[Main], Main]:
    """Return a decorator that gives the main function of a training script the two options.

    Args:
        script: The script's path.
        default: Name of the recipe without ``--config``; default the script's name.
    """

    def decorate(main: Main) -> Main:
        @wraps(main)
        def run(argv: Sequence[str] | None = None) -> None:
            arguments = parse_arguments(script, argv, default)
            if arguments.dry_run is None and not arguments.random_weights:
                main(argv)
                return
            recipe = find_recipe(arguments.config)
            keys = list(arguments.overrides)
            if arguments.random_weights:
                keys += _keys_of_random_weights(recipe, keys)
            if arguments.dry_run is None:
                main(["--config", str(recipe), *keys])
            else:
                _Rehearsal(main, script.stem, recipe, keys, arguments.dry_run).run()

        return run

    return decorate


def _keys_of_random_weights(recipe: Path, keys: Sequence[str]) -> list[str]:
    """Make the checkpoint and return the keys that train on it, with a fresh adapter.

    An earlier run's adapter belongs to the published weights.
    """
    values = read_values(recipe, keys)
    if not isinstance(values.get("backbone"), str):
        raise CustosError(f"{recipe}: no backbone, so --random-weights has no shape to follow")
    folder = random_checkpoint(values["backbone"])
    fresh = ["adapter.init=null"] if section_keys(values, "adapter", recipe).get("init") else []
    return [f"backbone={folder}", *fresh]


class _Rehearsal:
    """A dry run of a training script.

    Args:
        main: Main function of the script.
        script: Name of the script in ``train/``.
        recipe: File of the recipe.
        keys: ``key.path=value`` of the user.
        steps: Optimizer steps to take.
    """

    def __init__(
        self, main: Main, script: str, recipe: Path, keys: Sequence[str], steps: int
    ) -> None:
        self.main, self.script, self.recipe = main, script, recipe
        self.keys, self.steps = list(keys), steps
        self.is_first = int(os.environ.get("RANK", "0")) == 0

    def run(self) -> None:
        """Run every part, then print the table of those that ended.

        Raises:
            CustosError: If a part fails; the message names it. If there are several machines.
        """
        _check_one_machine()
        keys: list[str] = []
        works = False
        # The first process ends its service and deletes the folder, even if a launcher stops it.
        signals = (signal.SIGTERM,) if self.is_first else ()
        with interrupted_by(*signals), _shared_folder(self.is_first) as folder:
            PARTS.start(silent=not self.is_first)
            try:
                with _output_to(folder / LOG_FILE, only=self.is_first):
                    keys = self._prepare(folder)
                    self.main(["--config", str(self.recipe), *keys])
                    if self.is_first:
                        self._judge_and_serve(keys)
                works = True
            except Exception as error:
                raise self._failure(error) from error
            finally:
                measured = PARTS.stop()
                if self.is_first and keys:
                    self._print(measured, keys, works=works)

    def _prepare(self, folder: Path) -> list[str]:
        """Return the keys of the short run, whose rows the first process has written."""
        with PARTS.measured("rows"):
            model = recipe_model(self.script)
            keys = [*self.keys, *_short_run(self.steps, folder / "judge")]
            recipe = parse_recipe(model, self.recipe, keys)
            if not isinstance(recipe, Recipe):
                return [*keys, *_few_pictures(recipe)]
            if self.is_first:
                few = keys_of_few_rows(recipe, self.steps, folder)
                with atomic_write(folder / READY) as file:
                    yaml.safe_dump(few, file)
            return [*keys, *_wait_for(folder / READY)]

    def _judge_and_serve(self, keys: Sequence[str]) -> None:
        recipe = parse_recipe(recipe_model(self.script), self.recipe, keys)
        if not isinstance(recipe, Recipe):
            return
        if self.script == REWARD_SCRIPT:  # nothing was calibrated or graded
            with PARTS.measured("judge load"):
                Judge.load(str(recipe.run.output))
            return
        splits = read_splits(recipe.data)
        example = (splits.test or splits.val)[0]
        with PARTS.measured("serving"):
            size = serve_once(recipe.run.output, example)
            assert PARTS.by_name is not None
            PARTS.by_name["serving"].peak = size

    def _failure(self, error: Exception) -> CustosError:
        """Return the error line of a failure; where nobody foresaw it, its trace is kept."""
        part = PARTS.failed or "the script"
        text = known_error(error)
        if text is None:
            handle, name = tempfile.mkstemp(prefix="custos-dry-run-", suffix=".log")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write("".join(traceback.format_exception(error)))
            text = f"{type(error).__name__}: {error}; all of it: {name}"
        kind = Missing if isinstance(error, Missing) else CustosError
        return kind(f"dry run: {part} failed: {text}")

    def _print(self, measured: dict[str, Part], keys: Sequence[str], *, works: bool) -> None:
        lines = as_table(measured, self.recipe, keys)
        if works:
            lines[-1] += f"; {self.script} works with this recipe"
        Console().print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _short_run(steps: int, output: Path) -> list[str]:
    return [
        *(f"optim.max_steps={steps}", f"optim.epochs={steps}", f"run.output={output}"),
        *(f"run.eval_every={steps}", f"run.save_every={steps}", "run.log_every=1"),
    ]


def _few_pictures(recipe: Any) -> list[str]:
    """Return keys for a warm-up on few pictures; several sizes must fill a batch each."""
    given = recipe.pictures
    return [
        f"pictures.train={min(8 * recipe.optim.batch_size, given.train)}",
        f"pictures.held_out={min(16, given.held_out)}",
    ]


def _check_one_machine() -> None:
    """Refuse to start on several machines, which would not find each other's rows.

    Raises:
        CustosError: If the launcher says that this machine has only some of the processes.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if int(os.environ.get("LOCAL_WORLD_SIZE", processes)) < processes:
        raise CustosError(
            "a dry run takes one machine, and this launch has several; launch it on one of them "
            "alone (num_machines: 1)"
        )


@contextmanager
def _shared_folder(is_first: bool) -> Iterator[Path]:
    """Make a folder that all processes of a machine find, and delete it afterwards."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        with tempfile.TemporaryDirectory(prefix="custos-dry-run-") as name:
            yield Path(name)
        return
    launch = f"{os.environ.get('MASTER_PORT', '')}-{os.getppid()}"
    folder = Path(tempfile.gettempdir()) / f"custos-dry-run-{os.getuid()}-{launch}"
    if is_first:
        folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        if is_first:
            shutil.rmtree(folder, ignore_errors=True)


def _wait_for(ready: Path) -> list[str]:
    """Return the keys that the first process has written."""
    until = time.monotonic() + SECONDS_TO_PREPARE
    while time.monotonic() < until:
        if ready.is_file():
            return [str(key) for key in yaml.safe_load(ready.read_text(encoding="utf-8"))]
        time.sleep(0.1)
    raise CustosError("the first process wrote no rows")


@contextmanager
def _output_to(log: Path, *, only: bool) -> Iterator[None]:
    """Keep what a run prints off the screen: it is of a judge that will be deleted."""
    if not only:
        yield
        return
    with (
        log.open("w", encoding="utf-8") as file,
        redirect_stdout(file),
        redirect_stderr(file),
    ):
        yield
