"""``custos train`` and ``sweep``: from labelled rows to a judge, with one seed or several."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.options import Keys, command_line, with_groups
from cli.shared.outputs import OutFolder, output_folder
from cli.shared.screen import show_skipped, wide_console
from cli.shared.tables import TABLE_FORMATS, AllowDropped, TableOptions
from judging.types import Split

TRAIN_HELP = f"Train on this {TABLE_FORMATS}. Default: the files in the recipe."


@with_groups
def train(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE|TASK")],
    keys: Keys = None,
    train_table: Annotated[
        str | None, typer.Option("--train", metavar="TABLE", help=TRAIN_HELP)
    ] = None,
    val: Annotated[str | None, typer.Option(metavar="TABLE")] = None,
    cal: Annotated[str | None, typer.Option(metavar="TABLE")] = None,
    test: Annotated[str | None, typer.Option(metavar="TABLE")] = None,
    *,
    table_options: TableOptions,
    allow_dropped: AllowDropped = False,
    init: str | None = None,
    out: Annotated[Path | None, typer.Option(callback=output_folder)] = None,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    processes: Annotated[int | None, typer.Option(min=1)] = None,
    dry_run: Annotated[int | None, typer.Option(min=1, metavar="N")] = None,
    random_weights: Annotated[bool, typer.Option("--random-weights")] = False,
    config_file: Path | None = None,
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

    Options:
        recipe: A recipe's file, its name in 'custos recipe list', or the name of a task in 'custos
            tasks'; for a task, the recipe goes on from a shipped judge.
        val: Choose the best step here. Default: a part of train.
        cal: Calibrate confidences. Default: a part of train.
        test: Measure the judge here. Default: a part of train.
        init: Start from this shipped judge or run folder. Default: the recipe's.
        out: Write the run to this folder. Default: the recipe's run.output.
        seed: Seed of the run and of the division. Default: the recipe's.
        processes: Train in so many processes. Default: one for each GPU, or one.
        dry_run: Take N steps on the first rows, validate, save, load, calibrate, grade and serve in
            a temporary folder, and print seconds and memory. Default: train.
        random_weights: Train on random weights in the shape of the recipe's backbone, where its own
            cannot be had; the judge knows nothing.
        config_file: Start processes as this file of 'accelerate config' says, or a shipped one:
            with 'fsdp2' they share one model, with 'zero2' gradients and moments (DeepSpeed).
            Default: each has a copy.
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
            show_skipped(row.error for row in data.bad_rows)
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


@with_groups
def sweep(
    recipe: str,
    keys: Keys = None,
    seeds: Annotated[int, typer.Option(min=1, metavar="N")] = 5,
    out: OutFolder = Path("runs/sweep"),
    processes: Annotated[int | None, typer.Option(min=1)] = None,
) -> None:
    """Train a recipe with several seeds, one after the other, and sum the reports up.

    The table has mean, standard deviation and 95 % interval (Student's t over the runs) of every
    metric. If the command is stopped, the same command goes on: finished seeds are kept, and the
    one that was stopped goes on from its last checkpoint. With a larger --seeds it adds runs.

    Example: custos sweep hieval_stage1 --seeds 5 --out runs/hieval_stage1_seeds

    Options:
        recipe: A recipe's file, or its name in 'custos recipe list'.
        seeds: Train with the seeds 0 to N - 1.
        out: Write the run folders seed-0, seed-1 ... and sweep.json to this folder.
        processes: Train in so many processes. Default: one for each GPU, or one.
    """
    from rich.table import Table

    from train.launch.sweep import RESULT_FILE, Sweep, sweep_rows

    runs = Sweep(recipe, tuple(keys or ()), tuple(range(seeds)), out)
    runs.open()
    for seed in runs.open_seeds():
        typer.echo(f"seed {seed}: {runs.folder(seed)}")
        runs.train(seed, processes)
        runs.result()
    result = runs.result()
    table = Table("metric", title=f"{recipe}, {len(result['seeds'])} seeds")
    for heading in ("mean", "std", "95 % interval"):
        table.add_column(heading, justify="right")
    for row in sweep_rows(result["metrics"]):
        table.add_row(*row)
    wide_console().print(table)
    typer.echo(f"{out / RESULT_FILE}")
