"""A report on the HMI of charts: Table 1 with intervals, answers as in Table 2, Figure 3."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.chartom.item import ChartomItem, HumanAnswer, acceptable_interval, pair_alternatives
from benchmarks.framework.files import Row, parse_rows
from evaluation.estimate import without_nan
from evaluation.intervals import wilson_interval
from evaluation.report.markdown import markdown_table, number, with_interval
from evaluation.report.plots import figure_file, finish_axes
from judging.errors import CustosError
from judging.files.atomic import write_text
from judging.files.records import write_json

PICTURE = "hmi.png"
ORIGINAL, MANIPULATED = "#0072B2", "#D55E00"
"""Blue and red as in Figure 3, in hues that colour-blind readers can tell apart."""


def measure_hmi(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Measure the HMI of every chart that has one, from the smallest to the largest.

    Items are as ``Chartom.load`` returns them, with ``hmi`` computed from people's answers. Raise
    ``CustosError`` if no item has an HMI.

    Each chart has ``id, pair, kind, manipulation``; ``hmi`` with ``value``, ``low``, ``high`` and
    ``n`` (people are independent: Wilson's interval; none for a published HMI, whose answers are
    not known); ``acceptable``, the bounds of right numbers, ``None`` where nothing bounds them; and
    ``answers``, how many people gave which.
    """
    items = parse_rows(rows, ChartomItem)
    alternatives = pair_alternatives(items)
    charts = [_chart(item, alternatives[item.pair]) for item in items if item.hmi is not None]
    if not charts:
        raise CustosError("no item has 'human_answers' or 'hmi'")
    return sorted(charts, key=lambda chart: (chart["hmi"]["value"], chart["id"]))


def _chart(item: ChartomItem, alternatives: Sequence[float]) -> dict[str, Any]:
    num_people = len(item.human_answers)
    hmi: dict[str, Any] = {"value": item.hmi, "low": None, "high": None, "n": num_people}
    if num_people and item.hmi is not None:
        interval = wilson_interval(round(item.hmi * num_people), num_people)
        hmi |= {"low": interval.low, "high": interval.high}
    acceptable = None
    # The answer to a choice may be a number too: that of the option.
    if item.question_type == "number" and isinstance(item.answer, float):
        bounds = acceptable_interval(item.answer, alternatives)
        acceptable = [None if math.isinf(bound) else bound for bound in bounds]
    chart: dict[str, Any] = without_nan(
        {
            "id": item.id,
            "pair": item.pair,
            "kind": item.kind,
            "manipulation": item.manipulation,
            "hmi": hmi,
            "acceptable": acceptable,
            "answers": dict(Counter(map(_as_text, item.human_answers)).most_common()),
        }
    )
    return chart


def _as_text(answer: HumanAnswer) -> str:
    if answer is None:
        return "(none)"
    if isinstance(answer, float):
        return f"{answer:g}"
    return answer if isinstance(answer, str) else " > ".join(answer)


def write_hmi_report(charts: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write ``hmi.json``, ``hmi.md`` and the sorted picture to a folder, made if it is missing."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "hmi.json", list(charts))
    draw_sorted(charts, out / PICTURE)
    write_text(out / "hmi.md", _markdown(charts))


def draw_sorted(charts: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the HMI of all charts in order, originals and manipulated ones in two colours."""
    with figure_file(path, max(6.0, 0.14 * len(charts)), 4) as figure:
        axes = figure.subplots()
        for name, colour in (("original", ORIGINAL), ("manipulated", MANIPULATED)):
            bars = {
                position: chart["hmi"]["value"]
                for position, chart in enumerate(charts)
                if bool(chart["manipulation"]) == (name == "manipulated")
            }
            axes.bar(list(bars), list(bars.values()), color=colour, label=name)
        axes.set_ylim(0, 1)
        axes.set_xticks([])
        axes.set_xlabel(f"{len(charts)} charts, sorted")
        axes.set_ylabel("HMI")
        finish_axes(axes)


def pair_rows(charts: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Lay out Table 1: pair, kind, HMI of the original, manipulation, HMI of the manipulated chart.

    Pairs are in the order of their manipulated chart's HMI, the most misleading first.
    """
    versions: dict[str, dict[bool, Mapping[str, Any]]] = {}
    for chart in charts:
        versions.setdefault(chart["pair"], {})[bool(chart["manipulation"])] = chart

    def height(pair: str) -> float:
        chart = versions[pair].get(True)
        return -1.0 if chart is None else float(chart["hmi"]["value"])

    rows: list[tuple[str, ...]] = []
    for pair in sorted(versions, key=lambda name: (-height(name), name)):
        original, manipulated = versions[pair].get(False), versions[pair].get(True)
        kind = (manipulated or original or {})["kind"]
        planted = "-" if manipulated is None else str(manipulated["manipulation"])
        hmis = [with_interval(chart and chart["hmi"]) for chart in (original, manipulated)]
        rows.append((pair, str(kind), hmis[0], planted, hmis[1]))
    return rows


HEADINGS = ("pair", "kind", "original HMI", "manipulation", "manipulated HMI")


def _markdown(charts: Sequence[Mapping[str, Any]]) -> str:
    people = [
        (
            chart["id"],
            "-" if chart["acceptable"] is None else _bounds(chart["acceptable"]),
            ", ".join(f"{answer} ({count})" for answer, count in chart["answers"].items()),
        )
        for chart in sorted(charts, key=lambda chart: str(chart["id"]))
        if chart["answers"]
    ]
    parts = [
        "# Human misleadingness index",
        "The share of people whose answer to a chart's FACT question is not acceptable, with 95 % "
        "intervals where people's answers are known (Wilson's; people answer independently).",
        markdown_table(HEADINGS, pair_rows(charts)),
        f"![HMI of all charts, sorted]({PICTURE})",
    ]
    if people:
        parts.append(markdown_table(("chart", "acceptable", "answers (people)"), people))
    return "\n\n".join(parts) + "\n"


def _bounds(acceptable: Sequence[float | None]) -> str:
    low, high = acceptable
    return (
        f"{number(low) if low is not None else '-∞'} to {number(high) if high is not None else '∞'}"
    )
