"""Experience replay: earlier tasks' rows mixed into a later stage."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from judging.errors import CustosError
from judging.types import LabelledExample
from train.setup.recipe import Section


class ReplaySection(Section):
    """``D_mix = D_task2 + Sample(D_task1, rho)`` (HiEval section 3.2)."""

    train: tuple[Path, ...] = ()
    """Training splits of the earlier stage; empty: no replay."""
    val: Path | None = None
    """Validation split of the earlier stage, watched for forgetting."""
    rho: float = Field(default=1.0, ge=0)
    of: Literal["task2", "task1"] = "task2"
    """What ``rho`` is a share of; the paper leaves it open."""
    val_limit: int | None = Field(default=None, gt=0)


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
        num_task2: Rows of the new stage.
        rho: Replay ratio.
        of: Whether ``rho`` counts in new rows or in earlier rows.
        seed: Any integer.

    Raises:
        CustosError: If more rows are asked for than there are.
    """
    wanted = round(rho * (num_task2 if of == "task2" else len(earlier)))
    if wanted > len(earlier):
        raise CustosError(
            f"replay.rho={rho} of {of} asks for {wanted} earlier rows, but there are {len(earlier)}"
        )
    rng = random.Random(f"replay/{seed}")
    strata: dict[tuple[str, str], list[LabelledExample]] = {}
    for row in rng.sample(earlier, len(earlier)):
        strata.setdefault((row.task, row.label), []).append(row)
    # Largest remainders: the shares add up to what is wanted.
    shares = {key: wanted * len(rows) / max(1, len(earlier)) for key, rows in strata.items()}
    counts = {key: int(share) for key, share in shares.items()}
    rest = sorted(shares, key=lambda key: (counts[key] - shares[key], key))
    for key in rest[: wanted - sum(counts.values())]:
        counts[key] += 1
    return [row for key, rows in sorted(strata.items()) for row in rows[: counts[key]]]
