"""``custos prep construct sheet``: a sheet for one person, as CSV or as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.prep.construct.asking import Rows
from cli.shared.output_folders import check_is_new, output_file
from judging import CustosError

FormName = Annotated[
    str, typer.Argument(help="Name of the form; custos prep construct forms lists them.")
]


def sheet(
    name: FormName,
    rows: Rows,
    out: Annotated[
        Path,
        typer.Option(
            callback=output_file,
            help="Write the sheet to this new file: .html for a page, .csv or .tsv for a "
            "spreadsheet.",
        ),
    ],
    gold: Annotated[
        Path | None,
        typer.Option(
            help="Mix in items of this file, whose field gold says what is to be filled in. "
            "Default: none."
        ),
    ] = None,
    gold_share: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of the sheet that is gold items.")
    ] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives another order.")] = 0,
) -> None:
    """Write a sheet for one person: rows in random order, without what tells who answered.

    A page (.html) holds its pictures, needs no server and is filled in with the keyboard; it saves
    a CSV file. Give each person another seed, and name the files that come back after the people.

    Example: custos prep construct sheet hieval-ea --in data/answers/rows.jsonl --out anna.html
    """
    from data_prep.construction.forms.base import FORMS
    from data_prep.construction.sheet_page import write_sheet
    from data_prep.construction.sheets import (
        mix_in_gold,
        read_gold_rows,
        read_sheet_rows,
    )

    check_is_new(out)  # it may be filled in
    form = FORMS.get(name)
    loaded = read_sheet_rows(rows)
    gold_rows = read_gold_rows(gold, form) if gold else []
    if both := {row["id"] for row in loaded} & {row["id"] for row in gold_rows}:
        raise CustosError(f"{gold}: gold item '{min(both)}' is also in {rows}")
    chosen = mix_in_gold(loaded, gold_rows, gold_share, seed)
    write_sheet(out, form, chosen)
    num_gold = len(chosen) - len(loaded)
    typer.echo(f"{len(loaded)} rows and {num_gold} gold items: {out}")
