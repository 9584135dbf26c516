"""Options and output of the verbs that draw charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from cli.shared.command_line import command_line
from cli.shared.output_folders import output_folder
from data_prep.synthetic.charts.export import write_charts
from data_prep.synthetic.charts.generate import draw_pictures, write_captions
from data_prep.synthetic.charts.rows import PlannedRow
from judging.progress import progress_over

Out = Annotated[
    Path,
    typer.Option(
        callback=output_folder,
        help="Write the JSONL files, images/ and manifest.json to this folder.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Another seed gives other pictures.")]
NumRows = Annotated[
    int, typer.Option("--rows", min=1, help="Make this many examples, all files together.")
]
Captions = Annotated[
    bool,
    typer.Option("--captions", help="Describe the picture in the question instead of drawing it."),
]


def write_planned(
    out: Path, planned: Mapping[str, Sequence[PlannedRow]], source: Mapping[str, Any]
) -> None:
    """Draw or describe planned rows, write them, and print how many of each label there are.

    Args:
        out: Folder to write to.
        planned: Name of each file to its rows.
        source: What the rows are made from, for the manifest; ``captions`` says to draw nothing.
    """
    captions = source["captions"]
    make, activity = (write_captions, "captioning") if captions else (draw_pictures, "drawing")
    made = {
        name: make(progress_over(rows, f"{activity} {name}", len(rows)))
        for name, rows in planned.items()
    }
    manifest = write_charts(out, made, source=dict(source), command=command_line())
    labels = sorted({label for counts in manifest["counts"].values() for label in counts})
    table = Table("label")
    for name in planned:
        table.add_column(name, justify="right")
    for label in labels:
        table.add_row(label, *(str(manifest["counts"][name].get(label, 0)) for name in planned))
    Console(highlight=False).print(table)
    num_rows = sum(map(len, planned.values()))
    typer.echo(
        f"{num_rows} examples, {manifest['images']} pictures, {manifest['twins']} twins in {out}"
    )
