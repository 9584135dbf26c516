"""The report on one graded file as an HTML page that needs no other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.framework.base import Benchmark, ItemScore
from benchmarks.framework.correction import labels_of_both
from benchmarks.framework.estimates import in_order
from benchmarks.framework.files import Row, stored_verdicts
from benchmarks.framework.graded import GradedModel
from benchmarks.framework.leaderboard import model_name
from benchmarks.framework.report.text import TEMPLATES, figure_parts, interval_cells, one_model
from evaluation.outcomes import full_label
from evaluation.report.page import MAX_ITEMS, drawn_url, page_templates, thumbnails
from evaluation.report.plots import draw_rates
from judging.errors import FieldError

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
    by_id = {score.id: score.value for score in scores}
    _, human = labels_of_both(model)
    items = [_item(benchmark, row, by_id, human) for row in rows[:MAX_ITEMS]]
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
    benchmark: Benchmark, row: Row, scores: Mapping[str, float | None], people: Mapping[str, str]
) -> dict[str, Any]:
    """Collect what the page shows of an item, given headline scores and people's labels by id.

    All texts come from outside. Raise ``FieldError`` if the row's ``images`` or ``verdicts`` hold
    something else.
    """
    key = str(row.get(benchmark.item_id, ""))
    verdicts, score, images = stored_verdicts(row), scores.get(key), row.get("images") or []
    if not isinstance(images, list) or not all(isinstance(name, str) for name in images):
        raise FieldError("images", "expected a list of file names", benchmark.location(row))
    labels = [full_label(verdict) or NOT_SCORED for verdict in verdicts.values()]
    notes = [note for v in verdicts.values() for note in (v.message, v.critique) if note]
    posteriors = {task: v.probabilities for task, v in verdicts.items() if v.probabilities}
    return {
        "id": key,
        "question": str(row.get("question", "")),
        "references": _texts(row, REFERENCE_FIELDS)[:1],
        "responses": _texts(row, RESPONSE_FIELDS),
        "images": images,
        "facets": benchmark.facets_of(row),
        "score": score,
        # Rules or another grader give a score alone.
        "verdict": ", ".join(labels) or (NOT_SCORED if score is None else f"{score:g}"),
        "people": people.get(key),
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
