"""``custos prep charts`` and ``twins``: drawn pictures to train and test error analysis."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from data_prep.charts.export import write_charts
from data_prep.charts.factory import TWIN_SHARE, PlannedRow, draw, plan, plan_twins

Forms = Literal["train", "test", "all"]
Out = Annotated[Path, typer.Option(help="Folder for rows.jsonl, images/ and manifest.json.")]
NumRows = Annotated[int, typer.Option("--rows", min=1, help="How many examples to make.")]
Seed = Annotated[int, typer.Option(help="Other seeds give other pictures.")]
FormsToUse = Annotated[
    Forms, typer.Option(help="Wordings: train leaves some out, test responds in those alone.")
]


def charts(
    out: Out,
    rows: NumRows,
    seed: Seed = 0,
    forms: FormsToUse = "train",
    twins: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of pictures that come as twins (see prep twins)."),
    ] = TWIN_SHARE,
) -> None:
    """Make error-analysis examples about drawn charts, figures and shapes.

    Labels hold by construction. Four rows ask about every picture and share their group.

    Example: custos prep charts --out data/charts --rows 20000 --seed 1
    """
    source = {"name": "charts", "rows": rows, "seed": seed, "forms": forms, "twins": twins}
    _write(out, plan(rows, seed, forms, twins), rows, source)


def twins(out: Out, rows: NumRows, seed: Seed = 0, forms: FormsToUse = "test") -> None:
    """Make twins: one question and response under two pictures, each with another error type.

    On one picture the response reasons wrongly, on the other it misreads; the text is the same.

    Example: custos prep twins --out data/twins --rows 1000 --seed 2
    """
    source = {"name": "twins", "rows": rows, "seed": seed, "forms": forms}
    _write(out, plan_twins(rows, seed, forms), rows, source)


def _write(out: Path, planned: Iterable[PlannedRow], rows: int, source: dict[str, Any]) -> None:
    errors = Console(stderr=True)
    shown = track(draw(planned), "drawing", total=rows, console=errors)
    command = shlex.join(["custos", *sys.argv[1:]])
    manifest = write_charts(out, shown, source=source, command=command)
    table = Table("label")
    table.add_column("examples", justify="right")
    table.add_column("share", justify="right")
    for label, count in manifest["counts"].items():
        table.add_row(label, str(count), f"{count / rows:.1%}")
    console = Console(highlight=False)
    console.print(table)
    console.print(
        f"{rows} examples, {manifest['images']} pictures, {manifest['twins']} twins in {out}",
        markup=False,
        soft_wrap=True,
    )
