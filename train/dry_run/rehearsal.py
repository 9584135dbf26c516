"""``--dry-run N`` and ``--random-weights`` of the training scripts."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import torch
import yaml
from rich.console import Console

from judging.errors import CustosError, Missing
from judging.files.atomic import atomic_write
from judging.files.records import write_records
from judging.judge import Judge
from judging.tasks import get_task
from judging.types import LabelledExample
from train.dry_run.random_checkpoint import random_checkpoint
from train.dry_run.served import serve_once
from train.launch.command_line import known_error
from train.launch.processes import interrupted_by
from train.launch.run_plan import RunPlan, plan_run
from train.methods.base import Method
from train.plan.planner import gpu_memory, in_gib
from train.setup.data import read_splits
from train.setup.recipe import Recipe, parse_recipe, read_values
from train.setup.recipe_files import section_keys
from train.setup.replay import ReplaySection
from train.setup.run_log import LOG_FILE
from train.tracking.parts import PARTS, Part

Run = Callable[[Path, Sequence[str]], None]

MOST_HELD_OUT = 16
CRITIQUE_TOKENS = 16
"""Most tokens of a critique that the judge of a dry run writes."""
READY = "ready"
"""File with the keys of the few rows; the first process writes it once the others may read them."""
SECONDS_TO_PREPARE = 1800


def keys_of_random_weights(recipe: Path, keys: Sequence[str]) -> list[str]:
    """Make the checkpoint and return the keys that train on it, with a fresh adapter.

    An earlier run's adapter belongs to the published weights.
    """
    values = read_values(recipe, keys)
    if not isinstance(values.get("backbone"), str):
        raise CustosError(f"{recipe}: no backbone, so --random-weights has no shape to follow")
    folder = random_checkpoint(values["backbone"])
    fresh = ["adapter.init=null"] if section_keys(values, "adapter", recipe).get("init") else []
    return [f"backbone={folder}", *fresh]


class Rehearsal:
    """A dry run of a training script.

    Args:
        train: Trains by a recipe's file and keys.
        method: Method of the recipe.
        recipe: File of the recipe.
        keys: ``key.path=value`` of the user.
        steps: Optimizer steps to take.
    """

    def __init__(
        self, train: Run, method: type[Method], recipe: Path, keys: Sequence[str], steps: int
    ) -> None:
        self.train, self.method, self.recipe = train, method, recipe
        self.keys, self.steps = [f"method={method.name}", *keys], steps
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
                    self.train(self.recipe, keys)
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
            keys = [*self.keys, *_short_run(self.steps, folder / "judge")]
            recipe = parse_recipe(self.method.recipe_class, self.recipe, keys)
            if not isinstance(recipe, Recipe):
                return [*keys, *_few_pictures(recipe)]
            if self.is_first:
                few = keys_of_few_rows(recipe, self.steps, folder)
                with atomic_write(folder / READY) as file:
                    yaml.safe_dump(few, file)
            return [*keys, *_wait_for(folder / READY)]

    def _judge_and_serve(self, keys: Sequence[str]) -> None:
        recipe = parse_recipe(self.method.recipe_class, self.recipe, keys)
        if not isinstance(recipe, Recipe):
            return
        if not self.method.gives_labels:  # nothing was calibrated or graded
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
            lines[-1] += f"; {self.method.script} works with this recipe"
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


def keys_of_few_rows(recipe: Recipe, steps: int, folder: Path) -> list[str]:
    """Write the first rows of each split to a folder and return the keys that name them.

    There are as many training rows as the steps take. The other splits have two steps' rows, at
    most :data:`MOST_HELD_OUT` rows. Rows of every label come first, because losses and calibrations
    need them: so a split has at least one row of each.

    Args:
        recipe: Recipe of the run.
        steps: Optimizer steps.
        folder: Where to write.

    Raises:
        CustosError: If a split cannot be read.
    """
    splits = read_splits(recipe.data)
    held_out = min(MOST_HELD_OUT, 2 * recipe.optim.batch_size)
    rows: dict[str, Sequence[LabelledExample] | None] = {
        "train": of_every_label(splits.train, steps * recipe.optim.batch_size),
        "val": of_every_label(splits.val, held_out),
        "cal": splits.cal and of_every_label(splits.cal, held_out),
        "test": splits.test and of_every_label(splits.test, held_out),
    }
    keys = [f"data.{key}=null" for key in ("mapping", "limit", "val_limit", "exclude_answerer")]
    keys.append("data.allow_overlap=true")
    for name, examples in rows.items():
        if examples:
            write_records(folder / f"{name}.jsonl", map(_short, examples))
            keys.append(f"data.{name}={folder / name}.jsonl")
    if isinstance(getattr(recipe, "replay", None), ReplaySection):
        keys.append(f"replay.val_limit={held_out}")
    return keys


def of_every_label(examples: Iterable[LabelledExample], count: int) -> list[LabelledExample]:
    """Return so many examples, or one of each label if there are more labels.

    The first example of each label comes before the second of any.
    """
    by_label: dict[str, list[LabelledExample]] = {}
    for example in examples:
        by_label.setdefault(example.label, []).append(example)
    in_turn = chain.from_iterable(zip_longest(*by_label.values()))
    return list(islice((example for example in in_turn if example), max(count, len(by_label))))


def _short(example: LabelledExample) -> LabelledExample:
    """Return an example whose critique, if the judge writes one, is short."""
    if get_task(example.task).critique is None:
        return example
    return example.model_copy(update={"critique_tokens": CRITIQUE_TOKENS})


def as_table(measured: Mapping[str, Part], recipe: Path, keys: Sequence[str]) -> list[str]:
    """Return the lines of the table.

    Args:
        measured: Parts of the run.
        recipe: File of the recipe.
        keys: Keys of the dry run.
    """
    plan = _plan(recipe, keys)
    planned = {} if plan is None else {"load": _loaded(plan), "step": plan.total}
    rows = [("part", "times", "seconds", "peak memory", "planned")]
    rows += [
        (
            name,
            str(part.times),
            f"{part.seconds:.1f}",
            in_gib(part.peak),
            in_gib(planned[name]) if name in planned else "",
        )
        for name, part in measured.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    if plan:
        parts = ", ".join(f"{name} {in_gib(size)}" for name, size in plan.parts().items() if size)
        lines.append(f"planned for a step: {parts}")
    of = "of tensors on the GPU" if torch.cuda.is_available() else "of the process"
    lines.append(f"peak memory is that {of}")
    return lines


def _plan(recipe: Path, keys: Sequence[str]) -> RunPlan | None:
    """Return the plan of the dry run's own rows; ``None`` where nothing can be planned."""
    try:
        gpus = torch.cuda.device_count()
        memory = gpu_memory() if gpus else None
        return plan_run(str(recipe), keys, gpus=gpus, memory=memory, rate=None)
    except CustosError:
        return None


def _loaded(plan: RunPlan) -> int:
    return plan.memory.weights + plan.reserve
