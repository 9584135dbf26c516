"""Several people's sheets brought together: what is settled, and what a third person decides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from clients.jobs import Reject
from data_prep.construction.forms.base import LEFT_OUT, Filled, Form, Value
from data_prep.construction.sheets.rows import GOLD, gold_cell, item_name
from data_prep.construction.sheets.table import Sheet
from data_prep.construction.steps.base import Row
from data_prep.errors import UnusableText
from judging.errors import CustosError

ANNOTATIONS, DIFFERS = "annotations", "differs"
"""Fields of a row that people disagree on: everybody's values, and the entries that differ."""


@dataclass(frozen=True)
class Comparison:
    """Values that two people filled in for one entry of a row."""

    row: str
    people: tuple[str, str]
    values: tuple[Value | None, Value | None]
    question: str
    """Group or question of the row, or the row where it has none: its rows resemble each other."""


@dataclass
class Collected:
    """The outcome of several sheets."""

    rows: list[Row] = field(default_factory=list)
    """Settled rows, with what people said."""
    discarded: list[Reject] = field(default_factory=list)
    disagreements: list[Row] = field(default_factory=list)
    """Rows for a third person: each as it was, with ``annotations`` and ``differs``."""
    unfinished: list[str] = field(default_factory=list)
    """Ids of rows that too few people have filled in."""
    left_out: list[str] = field(default_factory=list)
    """Ids of rows that people say need no annotation."""
    pairs: dict[str, list[Comparison]] = field(default_factory=dict)
    """Entry to what every two people filled in on each row, to measure agreement."""
    gold: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Annotator to the number of gold items filled in right, and filled in at all."""

    @property
    def counts(self) -> dict[str, int]:
        """Return how many rows came to which end."""
        return {
            "settled": len(self.rows),
            "discarded": len(self.discarded),
            "left_out": len(self.left_out),
            "disagreements": len(self.disagreements),
            "unfinished": len(self.unfinished),
        }


def collect(
    form: Form,
    rows: Sequence[Row],
    sheets: Sequence[Sheet],
    third: Sheet | None = None,
    gold: Sequence[Row] = (),
    per_row: int | None = None,
) -> Collected:
    """Bring sheets together by the rules of a form.

    A row is settled if as many people as the form asks for filled it in and agree, of three or more
    people most; if one person's values decide alone; or if the third person filled it in. Agreement
    is measured between every two people of a row, before the third.

    Args:
        form: The form of all sheets.
        rows: The rows that the sheets were made of.
        sheets: Filled-in sheets of people who worked alone; each may hold a part of the rows.
        third: Sheet that settles disagreements.
        gold: Gold items that were mixed in; they are scored and left out of the rows.
        per_row: People who must have filled in a row; default the form's own number.

    Raises:
        CustosError: If two sheets have the same name, or one holds an item that is no row.
    """
    _check(rows, [*sheets, *([third] if third else [])], gold)
    collected = Collected(
        gold={sheet.annotator: _gold_score(form, sheet, gold) for sheet in sheets}
    )
    pairs: dict[str, list[Comparison]] = defaultdict(list)
    for row in rows:
        name = item_name(row["id"])
        fillings = {sheet.annotator: sheet.filled[name] for sheet in sheets if name in sheet.filled}
        for (one, first), (other, second) in combinations(fillings.items(), 2):
            for entry in form.entries:
                is_annotated = not (LEFT_OUT in first or LEFT_OUT in second)
                if entry.compared and (is_annotated or entry.leaves_out):
                    values = first.get(entry.name), second.get(entry.name)
                    question = str(row.get("group") or row.get("question") or row["id"])
                    compared = Comparison(row["id"], (one, other), values, question)
                    pairs[entry.name].append(compared)
        third_values = (
            {third.annotator: third.filled[name]} if third and name in third.filled else {}
        )
        _settle(form, row, fillings, third_values, collected, per_row or form.per_row)
    collected.pairs = dict(pairs)
    return collected


def _settle(
    form: Form,
    row: Row,
    fillings: Mapping[str, Filled],
    third_values: Mapping[str, Filled],
    collected: Collected,
    per_row: int,
) -> None:
    """Put a row to the end that it comes to."""
    alone = {name: filled for name, filled in fillings.items() if form.decides_alone(filled)}
    if third_values or alone:
        fillings = third_values or alone
    elif len(fillings) < per_row:
        collected.unfinished.append(row["id"])
        return
    elif (agreeing := form.majority(fillings)) is None:
        differing = form.differences(list(fillings.values()))
        everybody = {name: dict(filled) for name, filled in fillings.items()}
        collected.disagreements.append({**row, ANNOTATIONS: everybody, DIFFERS: differing})
        return
    else:
        fillings = agreeing
    if any(LEFT_OUT in filled for filled in fillings.values()):
        collected.left_out.append(row["id"])
        return
    try:
        collected.rows.append(form.settled(row, fillings))
    except UnusableText as error:
        collected.discarded.append(Reject(id=row["id"], reason=error.reason, detail=str(error)))


def _gold_score(form: Form, sheet: Sheet, gold: Sequence[Row]) -> tuple[int, int]:
    """Return how many gold items a person filled in right, and how many at all."""
    filled = [(row, sheet.filled.get(item_name(row["id"]))) for row in gold]
    scored = [_is_gold(form, row[GOLD], values) for row, values in filled if values is not None]
    return sum(scored), len(scored)


def _is_gold(form: Form, gold: Mapping[str, Any], filled: Filled) -> bool:
    return not any(
        entry.differs(entry.read(gold_cell(gold[entry.name])), filled.get(entry.name))
        for entry in form.entries
        if entry.name in gold
    )


def _check(rows: Sequence[Row], sheets: Sequence[Sheet], gold: Sequence[Row]) -> None:
    names = [sheet.annotator for sheet in sheets]
    if len(set(names)) < len(names):
        raise CustosError("two sheets have the same name; people are told apart by it")
    items = {item_name(row["id"]) for row in (*rows, *gold)}
    for sheet in sheets:
        if strange := sheet.filled.keys() - items:
            raise CustosError(
                f"sheet '{sheet.annotator}': item '{min(strange)}' is no row of these"
            )
