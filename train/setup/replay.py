"""Experience replay: rows of an earlier task mixed into a later stage."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from judging.errors import FieldError
from judging.types import LabelledExample
from train.setup.data import RunSplits, join_examples, read_split
from train.setup.recipe import Section, check_named_once


class ReplaySection(Section):
    """``D_mix = D_task2 + Sample(D_task1, rho)`` (HiEval section 3.2)."""

    train: tuple[Path, ...] = ()
    """Training splits of the earlier stage; empty: no replay."""
    val: Path | None = None
    """Validation split of the earlier stage, scored to see what the judge forgets."""
    rho: float = Field(default=1.0, ge=0)
    """Replay ratio: how many rows of the earlier stage are mixed in."""
    of: Literal["task2", "task1"] = "task2"
    """What ``rho`` is a share of; the paper leaves it open."""
    val_limit: int | None = Field(default=None, gt=0)
    """Watch only the first ``val_limit`` rows of ``val``."""

    @field_validator("train")
    @classmethod
    def _named_once(cls, train: tuple[Path, ...]) -> tuple[Path, ...]:
        check_named_once(train)
        return train


def with_replay(
    splits: RunSplits, replay: ReplaySection, seed: int, exclude_answerer: str | None = None
) -> RunSplits:
    """Add sampled earlier rows to the training split, and the earlier validation to the watched.

    Raises:
        CustosError: If a file is missing, a row is bad, or there are too few earlier rows.
    """
    train, watched = splits.train, splits.watched
    sample: list[LabelledExample] = []
    if replay.train:
        earlier = join_examples(read_split(path, None, exclude_answerer) for path in replay.train)
        sample = replay_sample(earlier, len(train), replay.rho, replay.of, seed)
        train = train + sample
    if replay.val:
        rows = read_split(replay.val, replay.val_limit, exclude_answerer)
        if not rows:
            raise FieldError("replay.val", "no rows to use")
        watched = {**watched, "stage1": rows}
    return replace(splits, train=train, watched=watched, replayed=len(sample))


def replay_sample(
    earlier: Sequence[LabelledExample],
    num_task2: int,
    rho: float,
    of: Literal["task2", "task1"],
    seed: int,
) -> list[LabelledExample]:
    """Draw earlier rows without replacement, each label in proportion.

    The draw depends on ``seed`` and the rows alone: every process and every resume sees the same.

    Args:
        earlier: Rows of the earlier stage.
        num_task2: Number of rows of the new stage.
        rho: Replay ratio.
        of: Whether ``rho`` is a share of the new rows or of the earlier rows.
        seed: Any integer.

    Raises:
        FieldError: If ``rho`` asks for more rows than there are.
    """
    count = round(rho * (num_task2 if of == "task2" else len(earlier)))
    if count > len(earlier):
        raise FieldError(
            "replay.rho",
            f"{rho} of {of} asks for {count} earlier rows, but there are {len(earlier)}",
        )
    rng = random.Random(f"replay/{seed}")
    keys = [(row.task, row.label) for row in earlier]
    strata: dict[tuple[str, str], list[int]] = {}
    for index in rng.sample(range(len(keys)), len(keys)):
        strata.setdefault(keys[index], []).append(index)
    # Largest remainders: the counts of the strata add up to the count asked for.
    shares = {key: count * len(rows) / max(1, len(earlier)) for key, rows in strata.items()}
    counts = {key: int(share) for key, share in shares.items()}
    by_remainder = sorted(shares, key=lambda key: (counts[key] - shares[key], key))
    for key in by_remainder[: count - sum(counts.values())]:
        counts[key] += 1
    return [
        earlier[index] for key, drawn in sorted(strata.items()) for index in drawn[: counts[key]]
    ]
