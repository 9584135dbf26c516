"""``custos prep objective``: made reasoned answers to questions with one right answer."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.shared.options.groups import with_groups
from cli.shared.splits import HeldOutSizes, Out, Seed, write_splits
from data_prep.splits.splits import SPLITS, fill_by_group, shuffled
from data_prep.synthetic.objective.generate import generate_objective


@with_groups
def objective(
    out: Out,
    rows: Annotated[int, typer.Option(min=1, help="Make this many examples, all splits together.")],
    seed: Seed = 0,
    *,
    sizes: HeldOutSizes,
) -> None:
    """Make reasoned answers in mathematics, options, classes and short facts.

    Right and wrong final answers follow reasoning that names others first, in English and Chinese.
    The test split writes answers in forms, layouts and sentences that no other split has.

    Example: custos prep objective --rows 3600 --out data/objective
    """
    held_out = sizes.read()
    targets = held_out.targets(rows)
    num_test = round(targets["test"])
    tested = list(generate_objective(num_test, seed, held_out=True))
    questions = {row.group for row in tested}
    drawn = generate_objective(rows - num_test, seed, held_out=False)
    trained = [row for row in drawn if row.group not in questions]
    dealt = fill_by_group(trained, lambda row: row.group, targets, seed) | {"test": tested}
    splits = {
        split: shuffled((row.model_copy(update={"split": split}) for row in dealt[split]), seed)
        for split in SPLITS
    }
    described = {"name": "objective", "rows": rows, "seed": seed}
    left_out = {"questions_of_test": rows - num_test - len(trained)}
    write_splits(splits, out, described, held_out, seed, left_out)
