"""``custos train``: from labelled rows to a judge."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.bad_rows import show_skipped
from cli.shared.command_line import command_line
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import TABLE_FORMATS, AllowDropped, TableOptions
from cli.shared.options.recipe import Keys
from cli.shared.output_folders import output_folder
from judging.types import Split

RecipeOrTask = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE|TASK",
        help="A recipe's file, its name in 'custos recipe list', or the name of a task in "
        "'custos tasks'; for a task, the recipe goes on from a shipped judge.",
    ),
]
TrainTable = Annotated[
    str | None,
    typer.Option(
        "--train",
        metavar="TABLE",
        help=f"Train on this {TABLE_FORMATS}. Default: the files in the recipe.",
    ),
]
ValTable = Annotated[
    str | None,
    typer.Option(metavar="TABLE", help="Choose the best step here. Default: a part of train."),
]
CalTable = Annotated[
    str | None,
    typer.Option(metavar="TABLE", help="Calibrate confidences. Default: a part of train."),
]
TestTable = Annotated[
    str | None,
    typer.Option(metavar="TABLE", help="Measure the judge here. Default: a part of train."),
]
Init = Annotated[
    str | None,
    typer.Option(help="Start from this shipped judge or run folder. Default: the recipe's."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        callback=output_folder,
        help="Write the run to this folder. Default: the recipe's run.output.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="Seed of the run and of the division. Default: the recipe's."),
]
Processes = Annotated[
    int | None,
    typer.Option(min=1, help="Train in so many processes. Default: one for each GPU, or one."),
]
DryRun = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Take N steps on the first rows, validate, save, load, calibrate, grade and serve "
        "in a temporary folder, and print seconds and memory. Default: train.",
    ),
]
RandomWeights = Annotated[
    bool,
    typer.Option(
        "--random-weights",
        help="Train on random weights in the shape of the recipe's backbone, where its own "
        "cannot be had; the judge knows nothing.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        help="Start processes as this file of 'accelerate config' says, or a shipped one: with "
        "'fsdp2' they share one model, with 'zero2' gradients and moments (DeepSpeed). Default: "
        "each has a copy."
    ),
]


@with_groups
def train(
    recipe: RecipeOrTask,
    keys: Keys = None,
    train_table: TrainTable = None,
    val: ValTable = None,
    cal: CalTable = None,
    test: TestTable = None,
    *,
    table_options: TableOptions,
    allow_dropped: AllowDropped = False,
    init: Init = None,
    out: Out = None,
    seed: Seed = None,
    processes: Processes = None,
    dry_run: DryRun = None,
    random_weights: RandomWeights = False,
    config_file: ConfigFile = None,
) -> None:
    """Train a judge on labelled rows, calibrate it, and measure it on rows it has not seen.

    One table is enough: it is divided by question into rows to train on, to choose the best step
    with, to calibrate with and to measure with, in OUT/data. If the run is stopped, the same
    command goes on from its last checkpoint.

    Example: custos train hieval-qs --train labels.csv --map references=gold
    --labels right=Correct,wrong=Wrong --out runs/mine

    Example: custos train my.yaml --train a.jsonl --test b.jsonl optim.epochs=5

    Example: custos train hieval_stage1 --train rows.parquet --processes 4

    Example: custos train hieval_stage1 --config-file fsdp2

    Example: custos train hieval_stage1 --dry-run 2 --random-weights
    """
    from train.launch.front import TrainingRun, stop_message

    if dry_run:  # it leaves the run's folder alone
        out = Path(tempfile.mkdtemp(prefix="custos-dry-run-"))
    tables: dict[Split, str | None] = {"train": train_table, "val": val, "cal": cal, "test": test}
    run = None
    try:
        run = TrainingRun.plan(
            recipe,
            keys or [],
            {split: table for split, table in tables.items() if table},
            table_options.read(),
            init=init,
            out=out,
            seed=seed,
            command=command_line(),
        )
        if run.files:
            data = run.write_data(allow_dropped=allow_dropped)
            show_skipped([str(row.error) for row in data.bad_rows])
            for line in (run.describe_data(data.counts), *data.doubles):
                typer.echo(line)
        trial = ["--dry-run", str(dry_run)] if dry_run else []
        trial += ["--random-weights"] if random_weights else []
        run.start(processes, config_file, trial)
    except KeyboardInterrupt:
        typer.echo(f"\n{stop_message(run.output, run.command) if run else 'stopped'}", err=True)
        raise typer.Exit(130) from None
    finally:
        if dry_run and out:
            shutil.rmtree(out, ignore_errors=True)
