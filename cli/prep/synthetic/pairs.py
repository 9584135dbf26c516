"""``custos prep pairs``: pairs of responses with critiques, to train and test judges of pairs."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.shared.command_line import command_line
from cli.shared.options.groups import with_groups
from cli.shared.splits import HeldOutSizes, Out, Seed, show_splits
from data_prep.synthetic.preference_pairs.generate import PICTURE_SHARE, generate_pairs


@with_groups
def pairs(
    out: Out,
    rows: Annotated[int, typer.Option(min=1, help="Make this many pairs, all splits together.")],
    pictures: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of pairs with a picture; half of these need it."),
    ] = PICTURE_SHARE,
    both_orders: Annotated[
        bool, typer.Option(help="Write every training pair in both orders of its responses.")
    ] = True,
    seed: Seed = 0,
    *,
    sizes: HeldOutSizes,
) -> None:
    """Make pairs of responses about charts, of known truth and faults, with critiques.

    The test split uses only wordings that no other split has. The folder scores/ holds the same
    responses one by one, with critiques and scores from 0 to 10.

    Example: custos prep pairs --out data/pairs --rows 8000 --seed 1
    """
    from data_prep.synthetic.preference_pairs.export import split_pairs, write_pairs

    held_out = sizes.read()
    num_test = round(held_out.targets(rows)["test"])
    splits = split_pairs(
        list(generate_pairs(rows - num_test, seed, "train", pictures)),
        list(generate_pairs(num_test, seed, "test", pictures)),
        held_out,
        seed,
    )
    written = write_pairs(
        out,
        splits,
        both_orders=both_orders,
        source={"name": "pairs", "rows": rows, "seed": seed, "pictures": pictures},
        held_out=held_out,
        seed=seed,
        command=command_line(),
    )
    show_splits(written, out)
