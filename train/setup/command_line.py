"""The command line of a training script: its recipe, and how errors end it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from rich.console import Console

from judging.errors import CustosError, Missing
from train.setup.recipe import R, parse_recipe
from train.setup.recipe_files import find_recipe
from train.setup.run_log import RUN_LOG


def load_recipe(
    kind: type[R], script: Path, argv: Sequence[str] | None = None, default: str = ""
) -> R:
    """Read a recipe from the command line of a training script.

    Args:
        kind: Recipe model of the script.
        script: The script's path.
        argv: Arguments; default those of the process.
        default: Name of the recipe without ``--config``; default the script's name.

    Raises:
        CustosError: If there is no such recipe.
        FieldError: If a key is unknown, missing or out of range.
    """
    launch = f"accelerate launch train/{script.name}"
    parser = argparse.ArgumentParser(
        prog=launch,
        description=f"Train with a recipe. Example: {launch} "
        "--config embedded/demo optim.lr=1e-4 run.output=runs/try",
    )
    parser.add_argument(
        "--config",
        metavar="RECIPE",
        default=default or script.stem,
        help="a file, or the name of a recipe that came with custos (custos recipe list); "
        "default %(default)s",
    )
    parser.add_argument("overrides", nargs="*", metavar="key.path=value")
    arguments = parser.parse_args(argv)
    return parse_recipe(kind, find_recipe(arguments.config), arguments.overrides)


def launch_command(script: Path, argv: Sequence[str] | None) -> str:
    """Return the command that was typed, for the report."""
    arguments = " ".join(sys.argv[1:] if argv is None else argv)
    return f"accelerate launch train/{script.name} {arguments}".rstrip()


@contextmanager
def command_line(instead: str = "") -> Iterator[None]:
    """End on a known error with one line and exit status 2; keep library notices off the screen.

    Args:
        instead: Commands to run where the recipe's backbone or data cannot be had.
    """
    try:
        with RUN_LOG.collecting():
            yield
    except CustosError as error:
        advice = f"; without it: {instead}" if instead and isinstance(error, Missing) else ""
        Console(stderr=True).print(f"error: {error}{advice}", markup=False, soft_wrap=True)
        sys.exit(2)
    if torch.distributed.is_initialized():
        # Gloo's threads may abort an interpreter that ends; the launcher then stops the process
        # that still writes the report.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
