"""The content of a report on one graded file: its table, what that rests on, published tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.framework.base import Benchmark, Figure, MeasuredRow, PublishedTable
from benchmarks.framework.corrected_by_people import corrected_scores, judge_agreement
from benchmarks.framework.files import Row
from benchmarks.framework.judged_scores import judged_score, known_errors
from benchmarks.framework.tables import Estimate, estimates, scaled
from evaluation.report.cautions import few_questions
from evaluation.report.markdown import UNCORRECTED
from judging.log_lines import one_line

SMALL = 2.0
"""Size below which figures of ours are written with three decimals."""


def build_table(
    benchmark: Benchmark,
    rows: Sequence[Row],
    people: Sequence[Row] = (),
    random_sample: bool = False,
    run: Mapping[str, Any] | None = None,
    measured: Path | None = None,
) -> dict[str, Any]:
    """Return a benchmark's table with what else is known of the judge.

    Args:
        benchmark: The benchmark that the items belong to.
        rows: Graded items.
        people: Some of them as people graded them.
        random_sample: Whether those are a random sample.
        run: Time and cost of grading.
        measured: Report that says how the judge errs; default what is known of it.

    Returns:
        The table; ``run``; ``caution`` where it rests on few questions; ``judged``, what
        ``judged_score`` returns; with human labels also what ``corrected_scores`` returns, and
        ``agreement``.

    Raises:
        CustosError: If the items do not fit or the corrected score does not exist.
    """
    table: dict[str, Any] = {**benchmark.table(rows), "run": dict(run) if run else None}
    questions = len({s.cluster for s in benchmark.scores(rows) if s.value is not None})
    table["caution"] = few_questions(questions)
    table["judged"] = judged_score(benchmark, rows, known_errors(measured, run))
    if people:
        table |= corrected_scores(benchmark, rows, people, random_sample)
    if agreement := judge_agreement(benchmark, rows, people):
        table["agreement"] = agreement
    return table


def model_name(table: Mapping[str, Any]) -> str:
    """Return the name of the model whose responses a table is about, where its file names it."""
    return str(table.get("model", "this file"))


def paper_tables(
    benchmark: Benchmark, tables: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the published tables with our rows among the published ones.

    Tables with rows of ours come first. Where a judge decided, the column of the headline score is
    followed by one with the corrected score, or the word ``uncorrected``.

    Args:
        benchmark: The benchmark that the items belong to.
        tables: Name of each model to the result of ``build_table`` for it.

    Returns:
        Per table ``source``, ``title``, ``note`` (what it holds and how it is sorted), ``columns``,
        ``ranked_by`` (its main column) and ``rows``, each with ``name``, ``ours`` (whether it is
        ours) and ``figures``: estimates, numbers, texts or ``None``.
    """
    rows: dict[str, dict[str, MeasuredRow]] = {}
    for model, table in tables.items():
        for source, of_model in benchmark.paper_rows(table, model).items():
            rows.setdefault(source, {}).update(of_model)
    scale = 100 / benchmark.full_score
    corrected: dict[str, Estimate | Figure] = {}
    means = set()
    for model, table in tables.items():
        by_people, judged = table.get("corrected"), table["judged"]
        if by_people or judged:
            estimate = (by_people or judged)["corrected"]
            corrected[model] = scaled(estimate, scale) if estimate else UNCORRECTED
            means |= {bool(by_people)} if estimate else set()
    heading = "corrected by people" if means == {True} else "corrected"
    # Without the names of models, which come from outside.
    cautions = {f"Caution on our rows: {t['caution']}" for t in tables.values() if t["caution"]}
    published = sorted(benchmark.published, key=lambda table: table.source not in rows)
    return [
        _paper_table(table, rows.get(table.source, {}), corrected, heading, sorted(cautions))
        for table in published
    ]


def _paper_table(
    published: PublishedTable,
    ours: Mapping[str, MeasuredRow],
    corrected: Mapping[str, Estimate | Figure],
    heading: str,
    cautions: Sequence[str],
) -> dict[str, Any]:
    columns = list(published.columns)
    rows: list[dict[str, Any]] = [
        {"name": name, "ours": is_ours, "figures": list(figures)}
        for is_ours, of_kind in ((True, ours), (False, published.rows))
        for name, figures in of_kind.items()
    ]
    order = ""
    if published.ranked_by is not None:
        rank = columns.index(published.ranked_by)
        rows.sort(key=lambda row: -_rank_value(row["figures"][rank]))
        order = _order_note(published.ranked_by, [row["figures"][rank] for row in rows])
    if published.corrected is not None and ours.keys() & corrected.keys():
        after = columns.index(published.corrected) + 1
        columns.insert(after, f"{published.corrected}, {heading}")
        for row in rows:
            row["figures"].insert(after, corrected.get(row["name"]) if row["ours"] else None)
    return {
        "source": published.source,
        "title": _table_title(published, is_measured=bool(ours)),
        "note": " ".join(filter(None, (*(cautions if ours else ()), published.note, order))),
        "columns": columns,
        "ranked_by": published.ranked_by,
        "rows": rows,
    }


def _table_title(published: PublishedTable, *, is_measured: bool) -> str:
    """Return the heading of a table, which says whose rows it holds."""
    kinds = {"published": bool(published.rows), "measured": is_measured}
    held = " and ".join(kind for kind, is_held in kinds.items() if is_held)
    return f"{held.capitalize()}, {published.source}" if held else published.source


def _order_note(column: str, figures: Sequence[Estimate | Figure]) -> str:
    """Return by which column rows are sorted, with its figures; nothing for a single row."""
    if len(figures) <= 1:
        return ""
    is_complete = all(number_of(figure) is not None for figure in figures)
    rest = "" if is_complete else "; rows without a number there come last"
    return f"Sorted by {column}, the highest first{rest}."


def number_of(figure: Estimate | Figure) -> float | None:
    """Return the number that a figure of a table is; ``None`` for a text or none."""
    if isinstance(figure, Mapping):
        figure = figure["value"]
    return figure if isinstance(figure, int | float) else None


def _rank_value(figure: Estimate | Figure) -> float:
    number = number_of(figure)
    return -math.inf if number is None else number


def figure_parts(figure: Estimate | Figure) -> tuple[str, str]:
    """Return a figure of a table as text, and the interval of ours.

    Published figures keep all their digits, and have two decimals at least.
    """
    if figure is None or isinstance(figure, str):
        return figure or "", ""
    if isinstance(figure, int):
        return str(figure), ""
    if isinstance(figure, float):
        return f"{figure:.2f}" if round(figure, 2) == figure else f"{figure:.10g}", ""
    ends = [figure[name] for name in ("value", "low", "high")]
    if ends[0] is None:
        return "", ""
    digits = 2 if max(abs(end or 0) for end in ends) >= SMALL else 3
    value, low, high = ("-" if end is None else f"{end:.{digits}f}" for end in ends)
    if (low, high) == ("-", "-"):
        return value, ""
    return value, f"[{low}, {high}]"


def figure_text(figure: Estimate | Figure) -> str:
    """Return a figure of a table as text, ours with its interval."""
    return " ".join(part for part in figure_parts(figure) if part)


def summary_lines(table: Mapping[str, Any]) -> list[str]:
    """Return what a table rests on: coverage, judge, time and cost, corrected score; one a line."""
    scored = "unknown" if table["coverage"] is None else f"{table['coverage']:.1%}"
    lines = [f"caution: {table['caution']}"] if table.get("caution") else []
    lines += [
        f"{table['n']} to score, {scored} scored",
        f"judges: {', '.join(table['judges']) or 'the file names none'}",
    ]
    if unscored := {k: v for k, v in table["statuses"].items() if k != "scored"}:
        lines.append("not scored: " + ", ".join(f"{n} {status}" for status, n in unscored.items()))
    if cut_off := table.get("cut_off"):
        lines.append(f"responses cut off by the token limit, which no rule reads: {cut_off}")
    if differently := table.get("read_differently"):
        lines.append(
            f"answers that state another option than the published code reads: {differently}"
        )
    if run := table.get("run"):
        time = "not known (several runs)"
        if run["seconds"] is not None:
            rate = run["requests"] / run["seconds"]
            time = f"{run['seconds']:.2f} s ({rate:.2f} requests a second)"
        cost = run["cost"]
        cost = "unknown" if cost is None else cost if isinstance(cost, str) else f"{cost:.4f}"
        lines.append(f"judge {run['judge']}; running time: {time}; cost: {cost}")
        lines += run.get("measured") or []
    if corrected := table.get("corrected"):
        lines += _corrected_lines(corrected)
    elif judged := table["judged"]:
        lines.append(_judged_line(judged))
    for corrected in table.get("corrected_measures", {}).values():
        lines += _corrected_lines(corrected)
    if reason := table.get("not_corrected"):
        lines.append(reason)
    return lines


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
    interval = "-" if (low, high) == ("-", "-") else f"{low} to {high}"
    return value, interval, str(estimate["n"])


def _short_names(
    rows: Sequence[tuple[list[str], Mapping[str, Any]]],
) -> list[tuple[str, Mapping[str, Any]]]:
    """Join the parts of names, without a last part that is the same in every row."""
    last = {names[-1] for names, _ in rows}
    drop = len(last) == 1 and all(len(names) > 1 for names, _ in rows)
    return [(" / ".join(names[:-1] if drop else names), row) for names, row in rows]


def _judged_line(judged: Mapping[str, Any]) -> str:
    value, interval, n = interval_cells(judged["raw"])
    raw = f"{judged['metric']} as judged: {value} [{interval}], {n} items"
    if judged["corrected"] is None:
        return one_line(f"{raw}, {UNCORRECTED}: {judged['source']}")
    value, interval, _ = interval_cells(judged["corrected"])
    return (
        f"{raw}; corrected by the judge's errors on {judged['source']}: {value} [{interval}], "
        f"the interval's width grows by {judged['added_width']:.4g}"
    )


def _corrected_lines(corrected: Mapping[str, Any]) -> list[str]:
    method = {
        "ppi++": "people graded a random sample (PPI++)",
        "weighted ppi++": "people's grades weighed by the chance of each (PPI++)",
    }[corrected["method"]]
    names = {"corrected": f"corrected {corrected['metric']}", "raw": "raw", "labelled": "people's"}
    lines = []
    for key, name in names.items():
        value, interval, n = interval_cells(corrected[key])
        lines.append(f"{name}: {value} [{interval}], {n} items")
    lines[0] += f", {method}"
    lines.append(f"the correction adds to the interval's width: {corrected['added_width']:.4g}")
    if corrected["unscored"]:
        lines.append(f"left out of the correction, without a score: {corrected['unscored']}")
    return lines
