"""The content of a report on one graded file: its table, what that rests on, published tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.framework.base import Benchmark
from benchmarks.framework.corrected_by_people import corrected_score, judge_agreement
from benchmarks.framework.files import Row
from benchmarks.framework.tables import estimates


def build_table(
    benchmark: Benchmark,
    rows: Sequence[Row],
    people: Sequence[Row] = (),
    random_sample: bool = False,
    run: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a benchmark's table with what else is known of the judge.

    Args:
        benchmark: The benchmark that the items belong to.
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
    if "models" not in table and (agreement := judge_agreement(benchmark, rows, people)):
        table["agreement"] = agreement
    return table


def paper_tables(benchmark: Benchmark, table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the published tables with our rows on top.

    Returns:
        Per table ``source``, ``columns`` and ``rows``, each with ``name``, ``ours`` (whether it is
        ours) and ``figures`` as text.
    """
    ours = {} if "models" in table else benchmark.paper_rows(table)
    return [
        {
            "source": published.source,
            "columns": published.columns,
            "rows": [
                {"name": name, "ours": is_ours, "figures": [_figure(value) for value in figures]}
                for is_ours, rows in (
                    (True, ours.get(published.source, {})),
                    (False, published.rows),
                )
                for name, figures in rows.items()
            ],
        }
        for published in benchmark.published
    ]


def summary_lines(table: Mapping[str, Any]) -> list[str]:
    """Return what a table rests on: coverage, judge, time and cost, corrected score; one a line."""
    scored = "unknown" if table["coverage"] is None else f"{table['coverage']:.1%}"
    lines = [
        f"{table['n']} to score, {scored} scored",
        f"judges: {', '.join(table['judges']) or 'not ours'}",
    ]
    if unscored := {k: v for k, v in table["statuses"].items() if k != "scored"}:
        lines.append("not scored: " + ", ".join(f"{n} {status}" for status, n in unscored.items()))
    if cut_off := table.get("cut_off"):
        lines.append(f"responses cut off by the token limit, which no rule reads: {cut_off}")
    if run := table.get("run"):
        time = "not known (several runs)"
        if run["seconds"] is not None:
            rate = run["requests"] / run["seconds"]
            time = f"{run['seconds']:.2f} s ({rate:.2f} requests a second)"
        cost = "unknown" if run["cost"] is None else _figure(run["cost"], 4)
        lines.append(f"judge {run['judge']}; running time: {time}; cost: {cost}")
    if corrected := table.get("corrected"):
        lines += _corrected_lines(corrected)
    return lines


def model_sections(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the content of every model's part of a report.

    Returns:
        Per model ``name`` (empty if the table has one model), ``summary`` (as ``summary_lines``)
        and ``sections``.
    """
    return [
        {
            "name": name,
            "summary": summary_lines(measured),
            "sections": sections(measured["intervals"]),
        }
        for name, measured in table.get("models", {"": table}).items()
    ]


def sections(intervals: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a tree of estimates as tables: ``title``, and ``rows`` of a name and an estimate."""
    by_title: dict[str, list[tuple[list[str], Mapping[str, Any]]]] = {}
    for (title, *names), estimate in estimates(intervals):
        by_title.setdefault(title, []).append((names or [title], estimate))
    return [
        {
            "title": title.replace("_", " "),
            "rows": [{"name": name, **estimate} for name, estimate in _short_names(rows)],
        }
        for title, rows in by_title.items()
    ]


def interval_cells(estimate: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return value, interval and number of items of an estimate as text."""
    value, low, high = (
        "-" if estimate[key] is None else f"{estimate[key]:.4g}" for key in ("value", "low", "high")
    )
    return value, f"{low} to {high}", str(estimate["n"])


def _short_names(
    rows: Sequence[tuple[list[str], Mapping[str, Any]]],
) -> list[tuple[str, Mapping[str, Any]]]:
    """Join the parts of names, without a last part that is the same in every row."""
    last = {names[-1] for names, _ in rows}
    drop = len(last) == 1 and all(len(names) > 1 for names, _ in rows)
    return [(" / ".join(names[:-1] if drop else names), row) for names, row in rows]


def _figure(value: float | str | None, digits: int = 2) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.{digits}f}"


def _corrected_lines(corrected: Mapping[str, Any]) -> list[str]:
    method = {
        "ppi++": "people graded a random sample (PPI++)",
        "plug-in": "from the judge's sensitivity and specificity (plug-in)",
    }[corrected["method"]]
    names = {"corrected": f"corrected {corrected['metric']}", "raw": "raw", "labelled": "people's"}
    lines = []
    for key, name in names.items():
        if estimate := corrected[key]:
            value, interval, n = interval_cells(estimate)
            lines.append(f"{name}: {value} [{interval}], {n} items")
    lines[0] += f", {method}"
    if corrected["unscored"]:
        lines.append(f"left out of the correction, without a score: {corrected['unscored']}")
    return lines
