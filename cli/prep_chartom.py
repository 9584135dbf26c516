"""``custos prep chartom``: pairs of an honest and a misleading chart with their questions."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table


def chartom(
    out: Annotated[Path, typer.Option(help="Folder for items.jsonl, images/ and manifest.json.")],
    pairs: Annotated[int, typer.Option(min=1, help="How many; 14 show every manipulation.")] = 56,
    seed: Annotated[int, typer.Option(help="Other seeds give other pairs.")] = 0,
) -> None:
    """Draw CHARTOM-style pairs: the same data, honestly and so as to mislead.

    Answers, and what a deceived reader answers, hold by construction. The HMI of an item is what
    the paper reports for its like, until people answer the charts themselves.

    Example: custos prep chartom --out data/chartom --pairs 56 --seed 1
    """
    from benchmarks.framework.base import get_benchmark
    from data_prep.synthetic.misleading_charts.export import make_pairs, write_pairs

    [table] = get_benchmark("chartom").published
    published = {name: (float(str(row[1])), float(str(row[3]))) for name, row in table.rows.items()}
    made = make_pairs(pairs, seed)
    manifest = write_pairs(
        out,
        track(made, "drawing", total=pairs, console=Console(stderr=True)),
        published,
        source={"name": "chartom", "pairs": pairs, "seed": seed},
        command=shlex.join(["custos", *sys.argv[1:]]),
    )
    shown = Table("manipulation")
    shown.add_column("pairs", justify="right")
    for manipulation, count in manifest["manipulations"].items():
        shown.add_row(manipulation, str(count))
    console = Console(highlight=False)
    console.print(shown)
    console.print(f"{pairs} pairs, {2 * pairs} charts in {out}", markup=False, soft_wrap=True)
