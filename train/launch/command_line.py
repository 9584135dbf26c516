"""The command line of a training script: its recipe, and how errors end it."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from rich.console import Console
from safetensors import SafetensorError

from judging import errors
from judging.errors import Missing, lacks_memory
from train.launch.front import stop_message
from train.setup.engines import check_engine, check_installed, check_processes
from train.setup.recipe import parse_recipe, read_values
from train.setup.run_log import COMMAND_VARIABLE, RUN_LOG

if TYPE_CHECKING:
    from train.methods.base import Method

SECONDS_TO_BE_STOPPED = 10
DRY_RUN_HELP = (
    "take N optimizer steps on the first rows, then validate, save, load, calibrate, grade and "
    "serve, all in a temporary folder, and print the seconds and the memory of each part"
)
RANDOM_WEIGHTS_HELP = (
    "train on random weights in the shape of the recipe's backbone, where its own cannot be had, "
    "and from a fresh adapter; the judge knows nothing"
)


def load_recipe(
    method: type[Method],
    path: Path,
    keys: Sequence[str],
    values: Mapping[str, Any] | None = None,
) -> Any:
    """Validate the recipe of a run, which this process must be able to train.

    ``values`` are what :func:`read_values` returned for file and keys, if they have been read.
    Raises ``CustosError`` if the launcher's engine is not supported, or a package that the recipe
    needs is not installed; ``FieldError`` if a key is unknown, missing or out of range.
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
    parser.add_argument("--dry-run", metavar="N", type=_positive, help=DRY_RUN_HELP)
    parser.add_argument("--random-weights", action="store_true", help=RANDOM_WEIGHTS_HELP)
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
    if isinstance(error, SafetensorError):  # a full disk, a damaged file
        return f"{RUN_LOG.folder or 'run folder'}: {error}"
    return errors.known_error(error)


def _end(line: str, status: int) -> NoReturn:
    Console(stderr=True).print(line, markup=False, highlight=False, soft_wrap=True)
    if torch.distributed.is_initialized():
        sys.stdout.flush()
        os._exit(status)  # the other processes wait for this one
    sys.exit(status)
