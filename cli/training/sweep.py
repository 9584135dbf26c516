"""``custos sweep``: one recipe trained with several seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.options.recipe import Keys
from cli.shared.output_folders import output_folder


def sweep(
    recipe: Annotated[
        str, typer.Argument(help="A recipe's file, or its name in 'custos recipe list'.")
    ],
    keys: Keys = None,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Train with the seeds 0 to N - 1.")
    ] = 5,
    out: Annotated[
        Path,
        typer.Option(
            callback=output_folder,
            help="Write the run folders seed-0, seed-1 ... and sweep.json to this folder.",
        ),
    ] = Path("runs/sweep"),
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Train in so many processes. Default: one for each GPU, or one."),
    ] = None,
) -> None:
    """Train a recipe with several seeds, one after the other, and sum the reports up.

    The table has mean, standard deviation and 95 % interval (Student's t over the runs) of every
    metric. If the command is stopped, the same command goes on: finished seeds are kept, and the
    one that was stopped goes on from its last checkpoint. With a larger --seeds it adds runs.

    Example: custos sweep hieval_stage1 --seeds 5 --out runs/hieval_stage1_seeds
    """
    from rich.table import Table

    from cli.shared.tables import wide_console
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
