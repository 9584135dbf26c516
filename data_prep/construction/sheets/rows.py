"""The rows of a sheet: in random order under neutral names, with gold items among them.

A row's id may name the model that wrote a response, so people see a digest of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from pydantic import Field

from data_prep.construction.forms.base import Form
from data_prep.construction.run_step import load_rows
from data_prep.construction.steps.base import Row, StepRow
from judging.errors import CustosError

GOLD = "gold"
"""Field of a gold item: what is to be filled in, by entry."""


class GoldRow(StepRow):
    """A row whose right filling is known, to check people with."""

    gold: dict[str, Any] = Field(min_length=1)


def item_name(row_id: str) -> str:
    """Return the name under which people see a row."""
    return hashlib.sha256(row_id.encode()).hexdigest()[:12]


def read_sheet_rows(path: Path) -> list[Row]:
    """Read the rows that a sheet is made of, with absolute pictures.

    Raises:
        CustosError: As ``load_rows``.
    """
    return [row.with_fields() for row in load_rows(path, StepRow)]


def read_gold_rows(path: Path, form: Form) -> list[Row]:
    """Read gold items.

    Raises:
        CustosError: As ``load_rows``, or if a gold value does not fit the form.
    """
    entries = {entry.name: entry for entry in form.entries}
    rows = load_rows(path, GoldRow)
    for row in rows:
        for name, value in row.gold.items():
            if name not in entries:
                raise CustosError(f"{path}: row '{row.id}': form '{form.name}' has no '{name}'")
            entries[name].read(gold_cell(value))
    return [row.with_fields() for row in rows]


def gold_cell(value: Any) -> str:
    """Return a gold value as a person would fill it in."""
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)


def mix_in_gold(rows: Sequence[Row], gold: Sequence[Row], share: float, seed: int) -> list[Row]:
    """Return rows in random order, with gold items as the given share of the whole.

    Args:
        rows: Rows to fill in.
        gold: Gold items to draw from; if there are too few, all are taken.
        share: Share of the whole that is gold, in [0, 1).
        seed: Another seed draws other gold items and another order.
    """
    rng = Random(seed)
    num_gold = min(len(gold), round(len(rows) * share / (1 - share)))
    chosen = [*rows, *rng.sample(list(gold), num_gold)]
    rng.shuffle(chosen)
    return chosen
