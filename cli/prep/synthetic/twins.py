"""``custos prep twins``: one response that is wrong in two ways, under two pictures."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.shared.chart_files import Captions, NumRows, Out, Seed, write_planned
from data_prep.synthetic.charts.generate import plan_twins
from data_prep.synthetic.charts.scenes import KINDS
from judging.errors import CustosError


def twins(
    out: Out,
    rows: NumRows,
    seed: Seed = 0,
    forms: Annotated[
        Literal["train", "test", "all"],
        typer.Option(
            help="Wordings of the responses. train leaves some wordings out; test uses only those."
        ),
    ] = "test",
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", help="Draw only this kind of picture. May be repeated. Default: every kind."
        ),
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
    write_planned(out, {"twins.jsonl": list(plan_twins(rows, seed, forms, kinds))}, source)
