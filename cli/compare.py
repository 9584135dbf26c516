"""``custos compare``: two judges on the same items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.output_folders import in_known_folder
from evaluation.comparisons.compare import MIN_COMMON, compare_evaluations, render_comparison
from judging.files.records import write_json


def compare(
    a: Annotated[Path, typer.Argument(help="Evaluation folder of judge A.")],
    b: Annotated[Path, typer.Argument(help="Evaluation folder of judge B.")],
    json_out: Annotated[
        Path | None,
        typer.Option(
            "--json", callback=in_known_folder, help="Write the comparison to this file too."
        ),
    ] = None,
    min_common: Annotated[
        int, typer.Option(min=1, help="Refuse to compare on fewer shared items than this.")
    ] = MIN_COMMON,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
) -> None:
    """Say which of two judges agrees better with people, and how sure that is.

    Both folders come from custos eval on the same data. Differences are B minus A, on the items
    that both judges scored. Intervals resample questions.

    Example: custos compare runs/plain/eval runs/focal/eval --json comparison.json
    """
    comparison = compare_evaluations(a, b, min_common=min_common, seed=seed)
    if json_out is not None:
        write_json(json_out, comparison)
    typer.echo(render_comparison(comparison))
