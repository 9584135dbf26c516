"""Several data sets as one: so many rows of each, and no question in two splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from data_prep.sources.generic import load_generic
from data_prep.splits.overlap import without_overlap
from data_prep.splits.splits import SPLITS, Splits, shuffled
from judging.errors import CustosError
from judging.types import LabelledExample, Split

STRICTEST_FIRST: tuple[Split, ...] = ("test", "cal", "val", "train")
"""A question that data sets have in different splits stays in the first of these."""


@dataclass(frozen=True)
class Ingredient:
    """One prepared data set and how many of its training rows to take."""

    folder: Path
    limit: int | None = None
    """Most rows; ``None``: all."""


@dataclass(frozen=True)
class Mixture:
    """The rows of every split, and what became of each ingredient."""

    splits: Splits
    taken: list[dict[str, int]]
    """Number of rows by split, an entry for each ingredient."""
    num_overlapping: int
    """Rows left out because their question is in a stricter split of another ingredient."""


def mix(ingredients: Sequence[Ingredient], seed: int) -> Mixture:
    """Take so many training rows of each data set, and the same share of its other splits.

    What is taken depends on the seed and the rows; of the rows of a split those with the smallest
    hashes come first, so a larger limit adds rows to those of a smaller one.

    Raises:
        CustosError: If a folder holds no training split, a row is bad, or a data set has fewer
            training rows than asked for.
    """
    read = [_read(ingredient.folder) for ingredient in ingredients]
    kept: list[Splits] = [{} for _ in ingredients]
    known: list[LabelledExample] = []
    num_overlapping = 0
    for split in STRICTEST_FIRST:
        rows_of = [without_overlap(splits[split], known) for splits in read]
        num_overlapping += sum(len(splits[split]) for splits in read) - sum(map(len, rows_of))
        for splits, rows in zip(kept, rows_of, strict=True):
            splits[split] = shuffled(rows, seed)
        known += [row for rows in rows_of for row in rows]
    taken = [_take(i, splits) for i, splits in zip(ingredients, kept, strict=True)]
    return Mixture(
        {split: shuffled((r for part in taken for r in part[split]), seed) for split in SPLITS},
        [{split: len(part[split]) for split in SPLITS} for part in taken],
        num_overlapping,
    )


def _read(folder: Path) -> Splits:
    if not (folder / "train.jsonl").is_file():
        raise CustosError(f"{folder}: holds no train.jsonl; make it with 'custos prep'")
    paths = {split: folder / f"{split}.jsonl" for split in SPLITS}
    return {split: load_generic(path) if path.is_file() else [] for split, path in paths.items()}


def _take(ingredient: Ingredient, splits: Splits) -> Splits:
    num_train = len(splits["train"])
    limit = num_train if ingredient.limit is None else ingredient.limit
    if limit > num_train:
        raise CustosError(
            f"--source {ingredient.folder}={limit}: there are {num_train} training rows whose "
            "question is in no other split; ask for at most so many"
        )
    share = limit / num_train if num_train else 0.0
    return {split: rows[: round(share * len(rows))] for split, rows in splits.items()}
