"""``custos prep charts`` and ``twins``: drawn pictures to train and test error analysis."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from cli.prep import Cal, Test, Val, held_out_shares
from data_prep.synthetic.charts.export import write_charts
from data_prep.synthetic.charts.generate import TWIN_SHARE, PlannedRow, draw, plan, plan_twins, tell
from data_prep.synthetic.charts.scenes import KINDS
from judging.errors import CustosError

Forms = Literal["train", "test", "all"]
Out = Annotated[Path, typer.Option(help="Folder for JSONL files, images/ and manifest.json.")]
Seed = Annotated[int, typer.Option(help="Other seeds give other pictures.")]
NumRows = Annotated[
    int, typer.Option("--rows", min=1, help="How many examples to make, all files together.")
]

Captions = Annotated[
    bool,
    typer.Option(
        "--captions", help="Tell in the question what the picture shows, and draw nothing."
    ),
]


def charts(
    out: Out,
    rows: NumRows,
    seed: Seed = 0,
    twins: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of groups that begin with twins (see prep twins)."),
    ] = TWIN_SHARE,
    val: Val = 0.05,
    cal: Cal = 0.07,
    test: Test = 0.12,
    captions: Captions = False,
) -> None:
    """Make error-analysis examples about drawn charts, figures and shapes.

    Labels hold by construction. Four rows ask about every picture and share their group. Splits
    share no picture; test words its responses in forms that no other split shows.

    With --captions the rows are a first lesson in text, before one about the pictures themselves.

    Example: custos prep charts --out data/charts --rows 20000 --seed 1
    """
    sizes = held_out_shares(val, cal, test).targets(rows)
    planned = {
        f"{split}.jsonl": list(
            plan(
                round(size), seed, "test" if split == "test" else "train", twins, f"charts-{split}"
            )
        )
        for split, size in sizes.items()
    }
    source = {"name": "charts", "rows": rows, "seed": seed, "twins": twins, "captions": captions}
    _write(out, planned, source)


def twins(
    out: Out,
    rows: NumRows,
    seed: Seed = 0,
    forms: Annotated[
        Forms, typer.Option(help="Wordings: train leaves some out, test responds in those alone.")
    ] = "test",
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only this kind of picture; may be repeated."),
    ] = None,
    captions: Captions = False,
) -> None:
    """Make twins: one question and response under two pictures, each with another error type.

    On one picture the response reasons wrongly, on the other it misreads; the text is the same.

    Example: custos prep twins --out data/twins --rows 1000 --seed 2
    """
    kinds = kinds or list(KINDS)
    if unknown := sorted(set(kinds) - KINDS.keys()):
        raise CustosError(f"--kind '{unknown[0]}': expected one of {', '.join(KINDS)}")
    source = {
        "name": "twins", "rows": rows, "seed": seed, "forms": forms, "kinds": kinds,
        "captions": captions,
    }  # fmt: skip
    _write(out, {"twins.jsonl": list(plan_twins(rows, seed, forms, kinds))}, source)


def _write(out: Path, planned: Mapping[str, Sequence[PlannedRow]], source: dict[str, Any]) -> None:
    errors = Console(stderr=True)
    make, doing = (tell, "telling") if source["captions"] else (draw, "drawing")
    made = {
        name: make(track(rows, f"{doing} {name}", console=errors)) for name, rows in planned.items()
    }
    command = shlex.join(["custos", *sys.argv[1:]])
    manifest = write_charts(out, made, source=source, command=command)
    labels = sorted({label for counts in manifest["counts"].values() for label in counts})
    table = Table("label")
    for name in planned:
        table.add_column(name, justify="right")
    for label in labels:
        table.add_row(label, *(str(manifest["counts"][name].get(label, 0)) for name in planned))
    console = Console(highlight=False)
    console.print(table)
    num_rows = sum(map(len, planned.values()))
    console.print(
        f"{num_rows} examples, {manifest['images']} pictures, {manifest['twins']} twins in {out}",
        markup=False,
        soft_wrap=True,
    )
