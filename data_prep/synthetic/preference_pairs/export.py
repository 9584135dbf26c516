"""Pairs on disk: splits that share no question, single responses beside them, and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from data_prep.splits.manifest import write_prepared
from data_prep.splits.splits import HeldOut, Splits, fill_by_group, shuffled
from data_prep.synthetic.pictures import save_picture
from data_prep.synthetic.preference_pairs.generate import PairRow
from judging.types import LabelledExample, Split

SCORES_FOLDER = "scores"

PairSplits = dict[Split, list[PairRow]]


def split_pairs(
    rows: Sequence[PairRow], test: Sequence[PairRow], held_out: HeldOut, seed: int
) -> PairSplits:
    """Deal pairs to train, val and cal beside a test split that has wordings of its own.

    Pairs with the same question go to the same split, so val and cal may become a little larger
    than ``held_out`` says. No two pairs share a picture.
    """
    sizes = held_out.targets(len(rows) + len(test))
    splits = fill_by_group(rows, lambda row: row.pair.metadata["asked"], sizes, seed)
    return {**splits, "test": list(test)}


def write_pairs(
    out: Path,
    splits: PairSplits,
    *,
    both_orders: bool,
    source: Mapping[str, Any],
    held_out: HeldOut,
    seed: int,
    command: str,
) -> Splits:
    """Write pairs to ``out``, single responses to ``out/scores`` and pictures to ``out/images``.

    Args:
        out: Folder to write to; made if it is missing.
        splits: Result of :func:`split_pairs`.
        both_orders: Train on every pair in both orders of its responses.
        source: What the pairs were made from.
        held_out: Sizes that were asked for.
        seed: Seed of the split.
        command: Command line that can repeat this.

    Returns:
        The pairs of every split, as written.
    """
    pairs: Splits = {}
    singles: Splits = {}
    for split, rows in splits.items():
        for row in rows:
            if row.png:
                save_picture(row.png, out)
        swapped = [row.swapped for row in rows] if both_orders and split == "train" else []
        pairs[split] = _in_split([*(row.pair for row in rows), *swapped], split, seed)
        responses = (_in_subfolder(single) for row in rows for single in row.singles)
        singles[split] = _in_split(responses, split, seed)
    shared: dict[str, Any] = {"held_out": held_out, "seed": seed, "command": command}
    write_prepared(out / SCORES_FOLDER, singles, source={**source, "rows_are": "single"}, **shared)
    write_prepared(out, pairs, source={**source, "rows_are": "pairs"}, **shared)
    return pairs


def _in_split(
    examples: Iterable[LabelledExample], split: Split, seed: int
) -> list[LabelledExample]:
    return shuffled((row.model_copy(update={"split": split}) for row in examples), seed)


def _in_subfolder(example: LabelledExample) -> LabelledExample:
    """Return an example whose picture is named from a folder beside that of the pictures."""
    images = tuple(f"../{name}" for name in example.images)
    return example.model_copy(update={"images": images}) if images else example
