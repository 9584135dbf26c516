"""The report on one graded file: tables and what they rest on, as Markdown and as an HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.framework.base import Benchmark, Figure, ItemScore
from benchmarks.framework.correction import labels_of_both
from benchmarks.framework.estimates import Estimate, estimates, in_order
from benchmarks.framework.files import Row, stored_verdicts
from benchmarks.framework.graded import GradedModel
from benchmarks.framework.leaderboard import model_name, paper_tables
from evaluation.outcomes import full_label
from evaluation.report.page import MAX_ITEMS, drawn_url, page_templates, thumbnails
from evaluation.report.plots import draw_rates
from evaluation.report.sentences import UNCORRECTED, order_line
from evaluation.report.text import chance_text, markdown_templates, p_value
from judging.errors import FieldError
from judging.log_lines import one_line

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
SMALL = 2.0
"""Size below which figures of ours are written with three decimals."""


def figure_parts(figure: Estimate | Figure) -> tuple[str, str]:
    """Write a figure of a table, and the interval of ours.

    Published figures keep all their digits, and have two decimals at least.
    """
    if figure is None or isinstance(figure, str):
        return figure or "", ""
    if isinstance(figure, int):
        return str(figure), ""
    if isinstance(figure, float):
        return f"{figure:.2f}" if round(figure, 2) == figure else f"{figure:.10g}", ""
    if figure["value"] is None:
        return "", ""
    ends = [figure[name] for name in ("value", "low", "high")]
    digits = 2 if max(abs(end or 0) for end in ends) >= SMALL else 3
    value, low, high = ("-" if end is None else f"{end:.{digits}f}" for end in ends)
    return value, "" if (low, high) == ("-", "-") else f"[{low}, {high}]"


def figure_text(figure: Estimate | Figure) -> str:
    """Write a figure of a table, ours with its interval."""
    return " ".join(part for part in figure_parts(figure) if part)


def interval_cells(estimate: Mapping[str, Any]) -> tuple[str, str, str]:
    """Write value, interval and number of items of an estimate.

    A calibration error has no interval; in its place stands what chance alone gives.
    """
    value, low, high = (
        "-" if estimate[key] is None else f"{estimate[key]:.4g}" for key in ("value", "low", "high")
    )
    interval = "-" if (low, high) == ("-", "-") else f"{low} to {high}"
    if (chance := estimate.get("chance")) and estimate["value"] is not None:
        interval = f"chance {chance_text(chance)}"
    return value, interval, str(estimate["n"])


def summary_lines(table: Mapping[str, Any]) -> list[str]:
    """Say what a table rests on: coverage, judge, time and cost, corrected score; one a line."""
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


def one_model(model: GradedModel, table: Mapping[str, Any]) -> dict[str, Any]:
    """Collect what the reports on one graded file show, given its ``build_table``."""
    by_title: dict[str, list[tuple[list[str], Mapping[str, Any]]]] = {}
    for (title, *names), estimate in estimates(table["intervals"]):
        by_title.setdefault(title, []).append((names or [title], estimate))
    sections = []
    for title, rows in by_title.items():
        # A last part of the names that is the same in every row says nothing.
        is_same = len({names[-1] for names, _ in rows}) == 1 and all(len(n) > 1 for n, _ in rows)
        named = [(names[:-1] if is_same else names, estimate) for names, estimate in rows]
        shown = [{"name": " / ".join(names), **estimate} for names, estimate in named]
        sections.append({"title": title.replace("_", " "), "rows": shown})
    return {
        "benchmark": model.benchmark,
        "source": Path(model.source).name,
        "summary": summary_lines(table),
        "sections": sections,
        "papers": paper_tables(model.benchmark, {model_name(table): table}),
    }


def several_models(benchmark: Benchmark, leaderboard: Mapping[str, Any]) -> dict[str, Any]:
    """Collect what the reports on the result of ``build_leaderboard`` show."""
    return {
        "benchmark": benchmark,
        "metric": leaderboard["metric"],
        "difference_rows": difference_rows(leaderboard, benchmark.full_score),
        "models": [
            {"name": name, "source": table["source"], "summary": summary_lines(table)}
            for name, table in leaderboard["models"].items()
        ],
        "papers": leaderboard["tables"],
        "not_compared": leaderboard["not_compared"],
        "order": order_text(leaderboard["order"]),
    }


def order_text(order: Mapping[str, Any] | None) -> str:
    """Say what ``order_by_people`` returns: how likely people's ranking is the judge's."""
    if order is None:
        return ""
    if order["uncorrected"]:
        return f"Ranking {UNCORRECTED}, as are the scores of {', '.join(order['uncorrected'])}"
    return f"Ranking: {order_line(order) or 'two models have the same score'}"


def difference_rows(leaderboard: Mapping[str, Any], full_score: float) -> list[list[str]]:
    """Write the paired differences of a leaderboard, in points of 100, as cells of a table.

    They are: which models, difference, interval, number of items, p-value, and the p-value that is
    corrected for the number of pairs.
    """
    return [
        [
            f"{first} minus {second}",
            *points(reversed_difference(pair["difference"]), full_score),
            str(pair["difference"]["n"]),
            p_value(pair["p"]),
            p_value(pair["p_holm"]),
        ]
        for pair in leaderboard["differences"]
        for first, second in (pair["models"],)
    ]


def points(difference: Mapping[str, Any], full_score: float) -> tuple[str, str]:
    """Write a difference and its interval in points of 100, as the published tables have them."""
    value, low, high = (
        "-" if difference[end] is None else f"{100 * difference[end] / full_score:.2f}"
        for end in ("value", "low", "high")
    )
    return value, f"{low} to {high}"


def reversed_difference(difference: Mapping[str, Any]) -> dict[str, Any]:
    """Turn B minus A into A minus B."""
    value, low, high = (
        None if difference[end] is None else 0.0 - difference[end]  # -0.0 would be printed as -0.00
        for end in ("value", "high", "low")
    )
    return {"value": value, "low": low, "high": high, "n": difference["n"]}


def render_markdown(model: GradedModel, table: Mapping[str, Any]) -> str:
    """Lay out a table, what it rests on and the published tables."""
    return _templates().get_template("report.md").render(one_model(model, table))


def render_leaderboard_markdown(benchmark: Benchmark, leaderboard: Mapping[str, Any]) -> str:
    """Lay out models among the published rows, and differences."""
    template = _templates().get_template("leaderboard.md")
    return template.render(several_models(benchmark, leaderboard))


def _templates() -> Environment:
    environment = markdown_templates(TEMPLATES)
    environment.filters["cells"] = lambda row: [row["name"], *interval_cells(row)]
    environment.filters["figure"] = figure_text
    return environment


NOT_SCORED = "not scored"
REFERENCE_FIELDS = ("references", "reference", "ref_answer", "ground_truth", "answer")
RESPONSE_FIELDS = ("response", "responses", "fact_response", "mind_response")
"""Fields of all benchmarks; a page shows those that a row has."""


def render_html(model: GradedModel, table: Mapping[str, Any]) -> str:
    """Render a page with figures, charts, and every item to browse, from ``build_table``'s result.

    Pictures of the items are in ``images``. Texts from outside are escaped, and the page's policy
    lets no script run but its own.
    """
    environment = page_templates(TEMPLATES)
    environment.filters |= {"cells": interval_cells, "parts": figure_parts}
    benchmark, rows = model.benchmark, model.rows
    scores = benchmark.scores(rows)
    known = zip(rows[:MAX_ITEMS], scores, labels_of_both(model), strict=False)
    items = [_item(benchmark, row, score.value, labels) for row, score, labels in known]
    facets = {
        name: in_order({item["facets"][name] for item in items if name in item["facets"]}, first)
        for name, first in benchmark.facets.items()
    }
    return environment.get_template("page.html").render(
        **one_model(model, table),
        charts=[
            *rate_charts(benchmark, {model_name(table): table}),
            *_agreement_charts(table.get("agreement")),
        ],
        cells=cell_map(benchmark, rows, scores),
        items=items,
        num_items=len(rows),
        facets=facets,
        verdicts=sorted({item["verdict"] for item in items}),
        images=thumbnails(source for item in items for source in item["images"]),
        full_score=benchmark.full_score,
    )


def _item(
    benchmark: Benchmark, row: Row, score: float | None, labels: tuple[str, str] | None
) -> dict[str, Any]:
    """Collect what the page shows of an item, given its headline score, and labels of both.

    All texts come from outside. Raise ``FieldError`` if the row's ``images`` or ``verdicts`` hold
    something else.
    """
    verdicts, images = stored_verdicts(row), row.get("images") or []
    if not isinstance(images, list) or not all(isinstance(name, str) for name in images):
        raise FieldError("images", "expected a list of file names", benchmark.location(row))
    given = [full_label(verdict) or NOT_SCORED for verdict in verdicts.values()]
    notes = [note for v in verdicts.values() for note in (v.message, v.critique) if note]
    posteriors = {task: v.probabilities for task, v in verdicts.items() if v.probabilities}
    return {
        "id": str(row.get(benchmark.item_id, "")),
        "question": str(row.get("question", "")),
        "references": _texts(row, REFERENCE_FIELDS)[:1],
        "responses": _texts(row, RESPONSE_FIELDS),
        "images": images,
        "facets": benchmark.facets_of(row),
        "score": score,
        # Rules or another grader give a score alone.
        "verdict": ", ".join(given) or (NOT_SCORED if score is None else f"{score:g}"),
        "people": labels and labels[1],
        "posteriors": posteriors,
        "notes": notes,
    }


def _texts(row: Row, fields: Sequence[str]) -> list[str]:
    """Read the texts of the fields that a row has; a list becomes one text."""
    values = [row[field] for field in fields if row.get(field) is not None]
    return [" / ".join(map(str, v)) if isinstance(v, list) else str(v) for v in values]


def cell_map(
    benchmark: Benchmark, rows: Sequence[Row], scores: Sequence[ItemScore]
) -> dict[str, Any] | None:
    """Average the headline score by the first two facets.

    The map has ``rows``, ``columns`` (their names), ``row_facet``, ``column_facet`` and ``cells``,
    rows of ``value`` (a share of the full score) and ``n`` or ``None``. It is ``None`` without two
    facets or without scores.
    """
    if len(benchmark.facets) < 2:
        return None
    row_facet, column_facet, *_ = benchmark.facets
    shares: dict[tuple[str, str], list[float]] = {}
    for row, score in zip(rows, scores, strict=True):
        facets = benchmark.facets_of(row)
        if score.value is not None and {row_facet, column_facet} <= facets.keys():
            cell = facets[row_facet], facets[column_facet]
            shares.setdefault(cell, []).append(score.value / benchmark.full_score)
    if not shares:
        return None
    row_names = in_order({row for row, _ in shares}, benchmark.facets[row_facet])
    column_names = in_order({column for _, column in shares}, benchmark.facets[column_facet])
    means = {cell: {"value": sum(of) / len(of), "n": len(of)} for cell, of in shares.items()}
    return {
        "row_facet": row_facet,
        "column_facet": column_facet,
        "rows": row_names,
        "columns": column_names,
        "cells": [[means.get((row, column)) for column in column_names] for row in row_names],
    }


def rate_charts(
    benchmark: Benchmark, tables: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, str]]:
    """Draw the scores of models as judged and corrected, from ``build_table``'s results by name.

    Nothing is drawn if none is corrected.
    """
    rates = {
        name: known
        for name, table in tables.items()
        if (known := table.get("corrected") or table["judged"]) and known["corrected"]
    }
    if not rates:
        return []
    url = drawn_url(partial(draw_rates, rates, full=benchmark.full_score))
    title = f"{benchmark.headline} as judged and corrected"
    return [{"title": title[0].upper() + title[1:], "url": url}]


def _agreement_charts(agreement: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Draw confusion and calibration against people, each a ``title`` and the ``url`` of a PNG."""
    if agreement is None:
        return []
    from evaluation.report import plots

    drawings = [("Judge against people", partial(plots.draw_confusion, agreement["confusion"]))]
    if calibration := agreement["calibration"]:
        title = "Calibration of the judge's confidence"
        drawings.append((title, partial(plots.draw_reliability, calibration)))
    return [{"title": title, "url": drawn_url(draw)} for title, draw in drawings]
