"""``custos prep chartom``: pairs of an honest and a misleading chart with their questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.shared.command_line import command_line
from cli.shared.output_folders import output_folder
from cli.shared.tables import count_table
from judging.progress import progress_over


def chartom(
    out: Annotated[
        Path,
        typer.Option(
            callback=output_folder,
            help="Write items.jsonl, images/ and manifest.json to this folder.",
        ),
    ],
    pairs: Annotated[
        int, typer.Option(min=1, help="Draw this many pairs; 14 show every manipulation.")
    ] = 56,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives other pairs.")] = 0,
) -> None:
    """Draw CHARTOM-style pairs: the same data, shown once honestly and once misleadingly.

    The right answers, and the answers of a deceived reader, hold by construction. The HMI of an
    item is what the paper reports for items of its type, until people answer the charts themselves.

    Example: custos prep chartom --out data/chartom --pairs 56 --seed 1
    """
    from benchmarks.framework.base import get_benchmark
    from data_prep.synthetic.misleading_charts.export import write_chart_pairs
    from data_prep.synthetic.misleading_charts.families import generate_chart_pairs

    table = get_benchmark("chartom").published[0]
    published = {name: (float(str(row[1])), float(str(row[3]))) for name, row in table.rows.items()}
    drawn = generate_chart_pairs(pairs, seed)
    manifest = write_chart_pairs(
        out,
        progress_over(drawn, "drawing", pairs),
        published,
        source={"name": "chartom", "pairs": pairs, "seed": seed},
        command=command_line(),
    )
    Console(highlight=False).print(count_table("manipulation", "pairs", manifest["manipulations"]))
    typer.echo(f"{pairs} pairs, {2 * pairs} charts in {out}")
