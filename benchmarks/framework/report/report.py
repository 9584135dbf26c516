"""One report on one graded file: figures for a page, as Markdown and as self-contained HTML."""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.framework.base import Benchmark, ItemScore
from benchmarks.framework.corrected_by_people import (
    corrected_score,
    judge_agreement,
    labels_of_both,
)
from benchmarks.framework.files import Row
from benchmarks.framework.report.items import Shown, show_items, thumbnails
from benchmarks.framework.tables import estimates, in_order
from evaluation.report.markdown import table as markdown_table

PAGE = Path(__file__).parent / "page"
MAX_ITEMS = 2000
"""Items on a page; a browser is slow to search more."""


def build_table(
    benchmark: Benchmark,
    rows: Sequence[Row],
    people: Sequence[Row] = (),
    random_sample: bool = False,
    run: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A benchmark's table with what else is known of the judge.

    Args:
        benchmark: Whose items they are.
        rows: Graded items.
        people: Some of them as people graded them.
        random_sample: Whether those are a random sample.
        run: Time and cost of grading.

    Returns:
        The table; ``run``; with human labels also ``corrected`` and ``agreement``.

    Raises:
        CustosError: If the items do not fit or the corrected score does not exist.
    """
    table: dict[str, Any] = {**benchmark.table(rows), "run": dict(run) if run else None}
    if people:
        table["corrected"] = corrected_score(benchmark, rows, people, random_sample)
    if "models" not in table and (both := judge_agreement(benchmark, rows, people)):
        table["agreement"] = both
    return table


def paper_tables(benchmark: Benchmark, table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The published tables, our rows on top.

    Returns:
        ``source, columns`` and ``rows``: name, whether it is ours, figures as text.
    """
    found = []
    ours = {} if "models" in table else benchmark.paper_rows(table)
    for published in benchmark.published:
        rows = [
            {"name": name, "ours": own, "figures": [_figure(value) for value in figures]}
            for own, part in ((True, ours.get(published.source, {})), (False, published.rows))
            for name, figures in part.items()
        ]
        found.append({"source": published.source, "columns": published.columns, "rows": rows})
    return found


def summary_lines(table: Mapping[str, Any]) -> list[str]:
    """What a table rests on: coverage, judge, time and cost, corrected score; one line each."""
    scored = "unknown" if table["coverage"] is None else f"{table['coverage']:.1%}"
    lines = [
        f"{table['n']} to score, {scored} scored",
        f"judges: {', '.join(table['judges']) or 'not ours'}",
    ]
    if unscored := {k: v for k, v in table["statuses"].items() if k != "scored"}:
        lines.append("not scored: " + ", ".join(f"{n} {status}" for status, n in unscored.items()))
    if run := table.get("run"):
        time = "not measured (stopped once)"
        if run["seconds"] is not None:
            rate = run["requests"] / run["seconds"]
            time = f"{run['seconds']:.2f} s ({rate:.2f} requests a second)"
        cost = "unknown" if run["cost"] is None else _figure(run["cost"], 4)
        lines.append(f"judge {run['judge']}; running time: {time}; cost: {cost}")
    if corrected := table.get("corrected"):
        lines += _corrected_lines(corrected)
    return lines


def render_markdown(benchmark: Benchmark, table: Mapping[str, Any], source: str) -> str:
    """The table, what it rests on and the published ones, as Markdown."""
    parts = [f"# {benchmark.name}: {benchmark.summary}", f"Graded file: `{source}`."]
    for model, own in table.get("models", {"": table}).items():
        parts += [f"## {model}"] if model else []
        parts.append("\n".join(f"- {line}" for line in summary_lines(own)))
        for section in sections(own["intervals"]):
            rows = [[row["name"], *interval_cells(row)] for row in section["rows"]]
            header = ("", "value", "95 % interval", "n")
            parts += [f"### {section['title']}", markdown_table(header, rows)]
    for paper in paper_tables(benchmark, table):
        rows = [
            [f"**{row['name']}**" if row["ours"] else row["name"], *row["figures"]]
            for row in paper["rows"]
        ]
        columns = ("", *map(str, paper["columns"]))
        parts += [f"### Published, {paper['source']}", markdown_table(columns, rows)]
    return "\n\n".join(parts) + "\n"


def render_html(
    benchmark: Benchmark,
    rows: Sequence[Row],
    table: Mapping[str, Any],
    source: str,
    people: Sequence[Row] = (),
) -> str:
    """A page that needs nothing beside itself: figures, charts, and every item to browse.

    Whatever comes from outside is escaped, and the page's policy lets no script run but its own.

    Args:
        benchmark: Whose items they are.
        rows: Graded items, with their pictures in ``images``.
        table: What ``build_table`` made of them.
        source: Name of the graded file.
        people: Items as people graded them.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    scores = benchmark.scores(rows) if "models" not in table else []
    values = {score.id: score.value for score in scores}
    human = labels_of_both(benchmark, rows, people)[2] if "models" not in table else {}
    items = show_items(benchmark, rows[:MAX_ITEMS], values, human)
    script = (PAGE / "page.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(PAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cells"] = interval_cells
    return environment.get_template("page.html").render(
        benchmark=benchmark,
        source=source,
        models=[
            {"name": name, "about": summary_lines(own), "sections": sections(own["intervals"])}
            for name, own in table.get("models", {"": table}).items()
        ],
        corrected=table.get("corrected"),
        papers=paper_tables(benchmark, table),
        cells=cell_map(benchmark, rows, scores) if scores else None,
        charts=draw_charts(table.get("agreement")),
        items=items,
        num_items=len(rows),
        facets={name: facet_values(benchmark, items, name) for name in benchmark.facets},
        verdicts=sorted({item.verdict for item in items}),
        images=thumbnails(items),
        full_score=benchmark.full_score,
        style=(PAGE / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def sections(intervals: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A tree of estimates as titled tables: ``title``, ``rows`` of a name and an estimate."""
    found: dict[str, list[tuple[list[str], Mapping[str, Any]]]] = {}
    for path, estimate in estimates(intervals):
        title, *rest = path
        found.setdefault(title, []).append((rest or [title], estimate))
    return [
        {
            "title": title.replace("_", " "),
            "rows": [{"name": name, **row} for name, row in _short_names(rows)],
        }
        for title, rows in found.items()
    ]


def _short_names(
    rows: Sequence[tuple[list[str], Mapping[str, Any]]],
) -> list[tuple[str, Mapping[str, Any]]]:
    """Join the parts of names, without a last part that is the same in every row."""
    last = {names[-1] for names, _ in rows}
    drop = len(last) == 1 and all(len(names) > 1 for names, _ in rows)
    return [(" / ".join(names[:-1] if drop else names), row) for names, row in rows]


def interval_cells(estimate: Mapping[str, Any]) -> tuple[str, str, str]:
    """Value, interval and number of items, as text."""
    value, low, high = (
        "-" if estimate[key] is None else f"{estimate[key]:.4g}" for key in ("value", "low", "high")
    )
    return value, f"{low} to {high}", str(estimate["n"])


def facet_values(benchmark: Benchmark, items: Sequence[Shown], name: str) -> list[str]:
    """Values of a facet among the items, in the benchmark's order."""
    found = {item.facets[name] for item in items if name in item.facets}
    return in_order(found, benchmark.facets[name])


def cell_map(
    benchmark: Benchmark, rows: Sequence[Row], scores: Sequence[ItemScore]
) -> dict[str, Any] | None:
    """Mean headline score by the first two facets.

    Returns:
        ``rows``, ``columns`` (their names), ``row_facet``, ``column_facet`` and ``cells``, rows of
        ``value`` (a share of the full score) and ``n`` or ``None``. ``None`` without two facets.
    """
    if len(benchmark.facets) < 2:
        return None
    row_facet, column_facet, *_ = benchmark.facets
    grades: dict[tuple[str, str], list[float]] = {}
    for row, score in zip(rows, scores, strict=True):
        facets = benchmark.facets_of(row)
        if score.value is not None and {row_facet, column_facet} <= facets.keys():
            place = facets[row_facet], facets[column_facet]
            grades.setdefault(place, []).append(score.value / benchmark.full_score)
    if not grades:
        return None
    row_names = in_order({row for row, _ in grades}, benchmark.facets[row_facet])
    column_names = in_order({column for _, column in grades}, benchmark.facets[column_facet])
    cells = [
        [
            {"value": sum(own) / len(own), "n": len(own)}
            if (own := grades.get((row_name, column_name)))
            else None
            for column_name in column_names
        ]
        for row_name in row_names
    ]
    return {
        "row_facet": row_facet,
        "column_facet": column_facet,
        "rows": row_names,
        "columns": column_names,
        "cells": cells,
    }


def draw_charts(both: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Confusion and calibration against people, each with a title and a PNG as a data URL."""
    if both is None:
        return []
    from evaluation.report import pictures

    drawn = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chart.png"
        pictures.draw_confusion(both["confusion"], path)
        drawn.append({"title": "Judge against people", "url": _data_url(path)})
        if both["calibration"]:
            pictures.draw_reliability(both["calibration"], path)
            drawn.append({"title": "Calibration of the judge's confidence", "url": _data_url(path)})
    return drawn


def _data_url(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _figure(value: float | str | None, digits: int = 2) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.{digits}f}"


def _corrected_lines(corrected: Mapping[str, Any]) -> list[str]:
    how = {
        "ppi++": "people graded a random sample (PPI++)",
        "plug-in": "from the judge's sensitivity and specificity (plug-in)",
    }[corrected["method"]]
    named = {"corrected": f"corrected {corrected['metric']}", "raw": "raw", "labelled": "people's"}
    lines = []
    for key, name in named.items():
        if estimate := corrected[key]:
            value, interval, n = interval_cells(estimate)
            lines.append(f"{name}: {value} [{interval}], {n} items")
    lines[0] += f", {how}"
    if corrected["unscored"]:
        lines.append(f"left out of the correction, without a score: {corrected['unscored']}")
    return lines
