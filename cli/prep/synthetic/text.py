"""``custos prep synthetic``: made-up questions and responses whose labels are known."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.shared.options.groups import with_groups
from cli.shared.splits import HeldOutSizes, Out, Seed, write_splits
from data_prep.splits.splits import split_made


@with_groups
def synthetic(
    out: Out,
    rows: Annotated[int, typer.Option(min=1, help="Make this many examples, all splits together.")],
    worlds: Annotated[
        Literal["all", "open"],
        typer.Option(
            help="Which questions to make. open: English questions with one answer, the easiest to "
            "learn from."
        ),
    ] = "all",
    seed: Seed = 0,
    *,
    sizes: HeldOutSizes,
) -> None:
    """Make quick-scoring examples whose labels hold by construction.

    The test split uses wordings that no other split shows. Examples whose question is too similar
    to one of the test split are left out.

    Example: custos prep synthetic --out data/synthetic --rows 20000 --seed 1
    """
    from data_prep.synthetic.text.generate import generate_examples

    held_out = sizes.read()
    splits, num_near_test = split_made(
        lambda number, split: generate_examples(number, seed, split, worlds), rows, held_out, seed
    )
    described = {"name": "synthetic", "rows": rows, "worlds": worlds, "seed": seed}
    write_splits(splits, out, described, held_out, seed, {"near_duplicates_of_test": num_near_test})
