"""``custos prep claims``: made explanations against references of several sentences."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.shared.options.groups import with_groups
from cli.shared.splits import HeldOutSizes, Out, Seed, write_splits
from data_prep.splits.splits import SPLITS, fill_by_group, shuffled
from data_prep.synthetic.claims.generate import generate_claims


@with_groups
def claims(
    out: Out,
    rows: Annotated[int, typer.Option(min=1, help="Make this many examples, all splits together.")],
    seed: Seed = 0,
    *,
    sizes: HeldOutSizes,
) -> None:
    """Make explanations that give all, some or none of a reference of several sentences.

    All earns Correct, some Partial; a contradiction or nothing at all earns Wrong. Responses put
    every claim in other words than the reference. The test split uses sentences that no other split
    has.

    Example: custos prep claims --rows 6000 --out data/claims
    """
    held_out = sizes.read()
    targets = held_out.targets(rows)
    num_test = round(targets["test"])
    trained = list(generate_claims(rows - num_test, seed, held_out=False))
    dealt = fill_by_group(trained, lambda row: row.group, targets, seed)
    dealt["test"] = list(generate_claims(num_test, seed, held_out=True))
    splits = {
        split: shuffled((row.model_copy(update={"split": split}) for row in dealt[split]), seed)
        for split in SPLITS
    }
    write_splits(splits, out, {"name": "claims", "rows": rows, "seed": seed}, held_out, seed, {})
