"""``custos prep charts``: drawn pictures to train and test error analysis."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.shared.chart_files import Captions, NumRows, Out, Seed, write_planned
from cli.shared.options.groups import with_groups
from cli.shared.splits import HeldOutSizes
from data_prep.synthetic.charts.generate import plan_rows
from data_prep.synthetic.charts.rows import TWIN_SHARE


@with_groups
def charts(
    out: Out,
    rows: NumRows,
    seed: Seed = 0,
    twins: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Share of groups that begin with twins (see custos prep twins)."
        ),
    ] = TWIN_SHARE,
    *,
    sizes: HeldOutSizes,
    captions: Captions = False,
) -> None:
    """Make error-analysis examples about drawn charts, figures and shapes.

    Labels hold by construction. Four rows ask about every picture and share their group. No two
    splits share a picture. The test split has wordings of responses that no other split shows.

    With --captions the rows are a first lesson in text, before a lesson about the pictures.

    Example: custos prep charts --out data/charts --rows 20000 --seed 1
    """
    counts = {split: round(size) for split, size in sizes.read().targets(rows).items()}
    # As many as asked for, however shares are rounded.
    counts["train"] += rows - sum(counts.values())
    planned = {
        f"{split}.jsonl": list(
            plan_rows(size, seed, "test" if split == "test" else "train", twins, f"charts-{split}")
        )
        for split, size in counts.items()
    }
    source = {"name": "charts", "rows": rows, "seed": seed, "twins": twins, "captions": captions}
    write_planned(out, planned, source)
