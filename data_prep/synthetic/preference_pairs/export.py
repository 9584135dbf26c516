"""Pairs on disk: splits that share no question, single responses beside them, pictures once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from data_prep.sources.images import image_names
from data_prep.splits.manifest import write_prepared
from data_prep.splits.splits import HeldOut, Splits, shuffled
from data_prep.synthetic.preference_pairs.generate import PairRow
from judging.types import LabelledExample, Split

IMAGE_FOLDER, SCORES_FOLDER = "images", "scores"

PairSplits = dict[Split, list[PairRow]]


def deal(
    rows: Sequence[PairRow], test: Sequence[PairRow], held_out: HeldOut, seed: int
) -> PairSplits:
    """Deal pairs to train, val and cal beside a test split worded in forms of its own.

    Pairs that ask the same go to the same split, so val and cal come out a little larger than asked
    for. Pictures are not shared: every pair has its own.
    """
    by_question: dict[str, list[PairRow]] = {}
    for row in rows:
        by_question.setdefault(row.pair.metadata["asked"], []).append(row)
    questions = sorted(by_question, key=lambda question: _digest(seed, question))
    targets = held_out.targets(len(rows) + len(test))
    splits: PairSplits = {"val": [], "cal": [], "train": [], "test": list(test)}
    small: tuple[Split, ...] = ("val", "cal")
    for question in questions:
        wanting = (split for split in small if len(splits[split]) < round(targets[split]))
        splits[next(wanting, "train")] += by_question[question]
    return splits


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
        splits: From :func:`deal`.
        both_orders: Train on every pair in both orders of its responses.
        source: What the pairs were made from.
        held_out: Sizes that were asked for.
        seed: Seed of the split.
        command: Command line that can repeat this.

    Returns:
        The pairs of every split, as written.
    """
    for rows in splits.values():
        for row in rows:
            if row.png:
                image_names({"bytes": row.png}, out, out / IMAGE_FOLDER)
    pairs: Splits = {}
    singles: Splits = {}
    for split, rows in splits.items():
        turned = [row.swapped for row in rows] if both_orders and split == "train" else []
        pairs[split] = _in_split([*(row.pair for row in rows), *turned], split, seed)
        alone = (_from(SCORES_FOLDER, single) for row in rows for single in row.singles)
        singles[split] = _in_split(list(alone), split, seed)
    shared: dict[str, Any] = {"held_out": held_out, "seed": seed, "command": command}
    write_prepared(out / SCORES_FOLDER, singles, source={**source, "rows_are": "single"}, **shared)
    write_prepared(out, pairs, source={**source, "rows_are": "pairs"}, **shared)
    return pairs


def _in_split(
    examples: Sequence[LabelledExample], split: Split, seed: int
) -> list[LabelledExample]:
    return shuffled((one.model_copy(update={"split": split}) for one in examples), seed)


def _from(folder: str, example: LabelledExample) -> LabelledExample:
    """The example as a file in a folder beside the pictures' names it."""
    images = tuple(f"../{name}" for name in example.images)
    return example.model_copy(update={"images": images}) if images else example


def _digest(seed: int, text: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{text}".encode()).digest()
