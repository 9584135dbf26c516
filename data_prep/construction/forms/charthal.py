"""ChartHal's check: people correct questions in place, and keep or discard them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import partial
from typing import get_args

from data_prep.construction.forms.base import (
    NOTE,
    Entry,
    Filled,
    Form,
    agreed_values,
    form,
    plain_options,
    texts_of,
)
from data_prep.construction.steps.base import Row
from data_prep.construction.steps.charthal import QRelation, QType
from data_prep.errors import UnusableText
from judging.errors import FieldError

KEEP, DISCARD = "keep", "discard"
RANGES = "acceptable_ranges"

_RANGE = re.compile(r"\[\s*([^\s,\[\]]+)\s*,\s*([^\s,\[\]]+)\s*\]")


class _Ranges(Entry):
    """Ranges of numbers, such as ``[0.8, 1.2]``, with ``;`` between several."""

    def read(self, cell: str) -> str:
        """Read ranges, in one spelling; raise ``FieldError`` if one is none."""
        return "; ".join(f"[{low}, {high}]" for low, high in parse_ranges(cell))


_KEPT = ("status", (KEEP,))
_IfKept = partial(Entry, asked_if=_KEPT)


@form
class ChartHalCheck(Form):
    """Check of a question about a chart, by one person or several."""

    name = "charthal"
    summary = "keep a question about a chart, corrected in place, or discard it?"
    guide = (
        "Compare question, cell and reference answer with the chart. Correct what is wrong, the "
        "cell too, and add the ranges in which a number read off the chart is still right. "
        "Discard what cannot be mended."
    )
    entries = (
        Entry("status", "Keep the question?", options=plain_options(KEEP, DISCARD)),
        _IfKept("q_type", "Type", options=plain_options(*get_args(QType)), prefilled=True),
        _IfKept("q_relation", "Relation to the chart", options=plain_options(*get_args(QRelation)),
                prefilled=True),
        _IfKept("question", "Question", "text", prefilled=True),
        _IfKept("ref_answer", "Reference answer", "text", prefilled=True),
        _Ranges(RANGES, "Acceptable ranges, such as [0.8, 1.2]; several are separated by ;", "text",
                asked_if=_KEPT, required=False),
        NOTE,
    )  # fmt: skip
    needs = ("q_type", "q_relation", "question", "ref_answer")
    per_row = 1

    def shown(self, row: Row) -> Mapping[str, str]:
        """Show the cell, the question and its answer as they were written."""
        cell = {"Cell": f"{row['q_type']}/{row['q_relation']}"}
        return {**cell, **texts_of(row, question="Written question", ref_answer="Written answer")}

    def settled(self, row: Row, fillings: Mapping[str, Filled]) -> Row:
        """Correct the question; ranges go into its answer as ChartHal words them."""
        values = agreed_values(fillings)
        if values["status"] == DISCARD:
            raise UnusableText("discarded", str(values.get("note", "")))
        corrected = {entry.name: values[entry.name] for entry in self.entries if entry.prefilled}
        if ranges := values.get(RANGES):
            remark = f"(Answers in the range {ranges} are ACCEPTABLE)"
            if remark not in corrected["ref_answer"]:
                corrected["ref_answer"] = f"{corrected['ref_answer']} {remark}"
        return {**row, **corrected}


def parse_ranges(text: str) -> list[tuple[str, str]]:
    """Read every ``[low, high]`` of a text, both ends as they are written.

    Raise ``FieldError`` if the text holds anything else, an end is no number, or low is above high.
    """
    ranges = []
    for part in filter(None, map(str.strip, text.split(";"))):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise FieldError(RANGES, f"'{part}': expected [low, high]")
        try:
            low, high = (float(end.rstrip("%")) for end in match.groups())
        except ValueError:
            raise FieldError(RANGES, f"'{part}': expected two numbers") from None
        if not low <= high or math.isinf(low) or math.isinf(high):
            raise FieldError(RANGES, f"'{part}': expected low <= high, both finite")
        ranges.append((match[1], match[2]))
    return ranges
