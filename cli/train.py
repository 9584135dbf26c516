"""``custos train``: from labelled rows to a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.command_line import command_line
from judging.errors import CustosError, error_text
from judging.types import Split


def train(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE|TASK",
            help="A recipe's file, its name in 'custos recipe list', or the name of a task in "
            "'custos tasks'; a task has a recipe that goes on from a shipped judge.",
        ),
    ],
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Set keys of the recipe, such as optim.lr=1e-4 ('custos recipe keys' has all). "
            "Default: those in the recipe.",
        ),
    ] = None,
    train_file: Annotated[
        Path | None,
        typer.Option(
            "--train",
            metavar="FILE",
            help="Train on the labelled rows of this file. Default: the files in the recipe.",
        ),
    ] = None,
    val: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Choose the best step on these. Default: part of train."),
    ] = None,
    cal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Calibrate confidences on these. Default: part of train."
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Report on these. Default: part of train."),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(help="Start from this shipped judge or run folder. Default: the recipe's."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder to write. Default: the recipe's run.output.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the run and of the division. Default: the recipe's.")
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Train in so many processes. Default: one for each GPU, or one."),
    ] = None,
    config_file: Annotated[
        Path | None,
        typer.Option(
            help="Start the processes as this file of 'accelerate config' says. Default: none."
        ),
    ] = None,
) -> None:
    """Train a judge on labelled rows, calibrate it, and measure it on rows it has not seen.

    One file is enough: it is divided by question into rows to train on, to choose the best step
    with, to calibrate with and to test on, in OUT/data. If the run is stopped, the same command
    goes on from its last checkpoint.

    Example: custos train hieval-qs --train labelled.jsonl --out runs/mine

    Example: custos train my.yaml --train a.jsonl --test b.jsonl optim.epochs=5

    Example: custos train hieval_stage1 --train rows.parquet --processes 4
    """
    from train.setup.front import TrainingRun
    from train.setup.processes import stop_message

    run = None
    files: dict[Split, Path | None] = {"train": train_file, "val": val, "cal": cal, "test": test}
    try:
        run = TrainingRun.plan(
            recipe,
            keys or [],
            {split: path for split, path in files.items() if path},
            init=init,
            out=out,
            seed=seed,
            command=command_line(),
        )
        if run.files:
            typer.echo(run.write_data())
        run.start(processes, config_file)
    except KeyboardInterrupt:
        typer.echo(f"\n{stop_message(run.output, run.command) if run else 'stopped'}", err=True)
        raise typer.Exit(130) from None
    except (CustosError, OSError) as error:
        typer.echo(f"error: {' '.join(error_text(error).split())}", err=True)
        raise typer.Exit(1) from None
