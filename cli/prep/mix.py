"""``custos prep mix``: several prepared data sets as one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.command_line import command_line
from cli.shared.splits import Out, Seed, show_splits
from data_prep.splits.manifest import Ingredient, describe_file, write_prepared
from data_prep.splits.manifest import mix as mix_data_sets
from data_prep.splits.splits import SPLITS, HeldOut
from judging.errors import CustosError


def mix(
    sources: Annotated[
        list[str],
        typer.Option(
            "--source",
            help="FOLDER or FOLDER=ROWS: take so many training rows of this prepared data set, and "
            "the same share of its other splits. Repeat for every data set. Default: all rows.",
        ),
    ],
    out: Out,
    seed: Seed = 0,
) -> None:
    """Mix prepared data sets into one, with a stated number of rows of each.

    A question that is in different splits of two data sets stays in the stricter one: test, then
    cal, then val. The manifest says how many rows came from where.

    Example: custos prep mix --source data/evouna=6000 --source data/hard=6000 --out data/mixed
    """
    ingredients = [_ingredient(text) for text in sources]
    if any(out.resolve() == ingredient.folder.resolve() for ingredient in ingredients):
        raise CustosError(f"--out {out}: is one of the sources and would be replaced")
    mixture = mix_data_sets(ingredients, seed)
    described = [
        {
            "name": ingredient.folder.name,
            "limit": ingredient.limit,
            "rows": taken,
            "files": [
                describe_file(path)
                for split in SPLITS
                if (path := ingredient.folder / f"{split}.jsonl").is_file()
            ],
        }
        for ingredient, taken in zip(ingredients, mixture.taken, strict=True)
    ]
    held_out = HeldOut(**{split: len(mixture.splits[split]) for split in ("val", "cal", "test")})
    write_prepared(
        out,
        mixture.splits,
        source={"name": "mixture", "sources": described},
        held_out=held_out,
        seed=seed,
        command=command_line(),
        left_out={"in_a_stricter_split": mixture.num_overlapping},
    )
    show_splits(mixture.splits, out)
    for ingredient, taken in zip(ingredients, mixture.taken, strict=True):
        counts = ", ".join(f"{count} {split}" for split, count in taken.items())
        typer.echo(f"{ingredient.folder}: {counts}")
    if mixture.num_overlapping:
        typer.echo(f"left out: {mixture.num_overlapping} in a stricter split of another data set")


def _ingredient(text: str) -> Ingredient:
    folder, separator, rows = text.rpartition("=")
    if not separator:
        return Ingredient(Path(text))
    if not rows.isdecimal() or not int(rows):
        raise CustosError(
            f"--source '{text}': expected FOLDER or FOLDER=ROWS with a number of rows"
        )
    return Ingredient(Path(folder), int(rows))
