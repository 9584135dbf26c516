"""The table of one graded file, and many models' beside each other and the published figures."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.framework.base import Benchmark, Figure, MeasuredRow, PublishedTable
from benchmarks.framework.correction import (
    corrected_scores,
    human_scores,
    judge_agreement,
    judged_score,
    order_by_people,
)
from benchmarks.framework.estimates import Estimate, scaled
from benchmarks.framework.files import Row, error_location, read_items, read_run
from benchmarks.framework.graded import GradedModel, ScoredItems, compare_graded
from evaluation.intervals import holm
from evaluation.report.cautions import few_questions
from evaluation.report.sentences import UNCORRECTED
from judging.errors import CustosError

_NO_NAMES = ("", "response")
"""Names in files that say nothing of a model."""


def read_models(
    benchmark: Benchmark,
    sources: Sequence[str],
    people: Mapping[str, str],
    random_sample: bool = False,
    measured: Path | None = None,
) -> dict[str, GradedModel]:
    """Read the graded files of several models, by name.

    A source is ``MODEL=FILE``, or a file or a folder that names its models itself; a file that
    names none is called by its own name. ``people`` maps a model to a file of items that people
    graded. Raise ``CustosError`` if a file cannot be read, a row does not fit or a model is named
    twice.
    """
    models: dict[str, GradedModel] = {}
    for source in sources:
        for name, path, rows in _read_source(benchmark, source):
            if name in models:
                raise CustosError(
                    f"'{source}': there are two models '{name}'; name them with MODEL=FILE"
                )
            model = GradedModel(
                benchmark,
                rows,
                str(path),
                random_sample=random_sample,
                run=read_run(path),
                measured=measured,
            )
            models[name] = with_people(model, Path(people[name])) if name in people else model
    if unknown := sorted(set(people) - set(models)):
        raise CustosError(f"--people {unknown[0]}: not one of the models {', '.join(models)}")
    return models


def with_people(model: GradedModel, path: Path) -> GradedModel:
    """Add some of a model's items as people graded them.

    Raise ``CustosError`` if the file cannot be read, or its items do not fit.
    """
    model = replace(model, people=read_items(path))
    with error_location(path):
        human_scores(model)
    return model


def _read_source(benchmark: Benchmark, source: str) -> Iterator[tuple[str, Path, list[Row]]]:
    """Yield name, file and rows of every model in a source."""
    given, separator, file = source.partition("=")
    if not separator or Path(source).exists():
        given, file = "", source
    path = Path(file)
    files = _graded_files(benchmark, path) if path.is_dir() else {"": path}
    if given and len(files) > 1:
        raise CustosError(f"'{source}': a folder of several models; give it without a name")
    for of_folder, graded in files.items():
        rows = read_items(graded)
        with error_location(graded):
            by_model = benchmark.by_model(benchmark.completed(rows))
            for rows_of_model in by_model.values():
                benchmark.scores(rows_of_model)
        if len(by_model) > 1 and (given or of_folder):
            raise CustosError(
                f"'{source}': holds the models {', '.join(by_model)}; give the file without a name"
            )
        for model, rows_of_model in by_model.items():
            own = model.removesuffix("_response")
            own = graded.name.partition(".")[0] if own in _NO_NAMES else own
            yield given or of_folder or own, graded, rows_of_model


def _graded_files(benchmark: Benchmark, folder: Path) -> dict[str, Path]:
    """Find the graded file of every model in a folder of the benchmark's own code."""
    for pattern in benchmark.results:
        paths = [path for path in sorted(folder.glob(pattern)) if "metrics" not in path.stem]
        if paths:
            is_named = "*" in Path(pattern).name
            return {p.stem if is_named else p.parent.resolve().name: p for p in paths}
    if not benchmark.results:
        raise CustosError(f"{folder}: a folder; {benchmark.name} has no folders of results")
    expected = benchmark.results[0].replace("*", "MODEL")
    raise CustosError(f"{folder}: no {expected} in this folder")


def build_table(model: GradedModel) -> dict[str, Any]:
    """Compute a benchmark's table with what else is known of the judge.

    To the table it adds ``run``; ``caution`` where it rests on few questions; ``judged``, what
    ``judged_score`` returns; with human labels also what ``corrected_scores`` returns, and
    ``agreement``. Raise ``CustosError`` if the items do not fit or the corrected score does not
    exist.
    """
    scores = model.benchmark.scores(model.rows)
    table: dict[str, Any] = {
        **model.benchmark.table(model.rows),
        "run": dict(model.run) if model.run else None,
        "caution": few_questions(len({s.cluster for s in scores if s.value is not None})),
        "judged": judged_score(model),
        **(corrected_scores(model) if model.people else {}),
    }
    if agreement := judge_agreement(model):
        table["agreement"] = agreement
    return table


def build_leaderboard(benchmark: Benchmark, models: Mapping[str, GradedModel]) -> dict[str, Any]:
    """Put models' tables beside the published ones, with the differences between models.

    Raise ``CustosError`` if the items of a model do not fit; the error names the model's file.

    Returns:
        ``benchmark`` and ``metric`` (the headline score, which differences are of). ``models``:
        name to the result of ``build_table`` with ``source``, the highest headline score first.
        ``tables``: as ``paper_tables``. ``order``: as ``order_by_people``. ``differences``: for
        every two models on the items that both score ``models`` (their names), what
        ``compare_graded`` returns, and ``p_holm``, corrected for the number of pairs.
        ``not_compared``: reasons why models are not among them.
    """
    tables, means = {}, {}
    for name, model in models.items():
        with error_location(Path(model.source)):
            tables[name] = {"source": model.source, **build_table(model)}
        scored = [s.value for s in benchmark.scores(model.rows) if s.value is not None]
        means[name] = sum(scored) / len(scored) if scored else 0.0
    tables = {name: tables[name] for name in sorted(tables, key=lambda name: -means[name])}
    return {
        "benchmark": benchmark.name,
        "metric": benchmark.headline,
        "models": tables,
        "tables": paper_tables(benchmark, tables),
        "order": order_by_people(models, tables),
        **_paired_differences({name: models[name] for name in tables}),
    }


def _paired_differences(models: Mapping[str, GradedModel]) -> dict[str, Any]:
    """Compute ``differences`` and ``not_compared`` of ``build_leaderboard``."""
    scored: dict[str, ScoredItems] = {}
    reasons = []
    for name, model in models.items():
        try:
            scored[name] = ScoredItems.of(model.benchmark, model.rows)
        except CustosError as error:
            reasons.append(f"{name}: {error}")
    differences: list[dict[str, Any]] = []
    for first, second in itertools.combinations(scored, 2):
        try:
            compared = compare_graded(scored[first], scored[second])
        except CustosError as error:
            reasons.append(f"{first} and {second}: {error}")
        else:
            differences.append({"models": [first, second], **compared})
    for difference, p_value in zip(
        differences, holm([difference["p"] for difference in differences]), strict=True
    ):
        difference["p_holm"] = p_value
    return {"differences": differences, "not_compared": reasons}


def model_name(table: Mapping[str, Any]) -> str:
    """Name the model whose responses a table is about: ``this file`` where the table names none."""
    name = str(table.get("model", ""))
    return "this file" if name in _NO_NAMES else name


def paper_tables(
    benchmark: Benchmark, tables: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Put our rows among those of the published tables; ``tables`` are ``build_table``'s by model.

    Tables with rows of ours come first. Where a judge decided, the column of the headline score is
    followed by one with the corrected score, or the word ``uncorrected``.

    Per table there are ``source``, ``title``, ``note`` (what it holds and how it is sorted),
    ``columns``, ``ranked_by`` (its main column) and ``rows``, each with ``name``, ``ours`` (whether
    it is ours) and ``figures``: estimates, numbers, texts or ``None``.
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
        numbers = [number_of(row["figures"][rank]) for row in rows]
        keys = [math.inf if number is None else -number for number in numbers]
        rows = [rows[place] for place in sorted(range(len(rows)), key=keys.__getitem__)]
        if len(rows) > 1:
            rest = "; rows without a number there come last" if None in numbers else ""
            order = f"Sorted by {published.ranked_by}, the highest first{rest}."
    if published.corrected is not None and ours.keys() & corrected.keys():
        after = columns.index(published.corrected) + 1
        columns.insert(after, f"{published.corrected}, {heading}")
        for row in rows:
            row["figures"].insert(after, corrected.get(row["name"]) if row["ours"] else None)
    kinds = {"published": published.rows, "measured": ours}
    held = " and ".join(kind for kind, rows_held in kinds.items() if rows_held).capitalize()
    return {
        "source": published.source,
        "title": f"{held}, {published.source}" if held else published.source,
        "note": " ".join(filter(None, (*(cautions if ours else ()), published.note, order))),
        "columns": columns,
        "ranked_by": published.ranked_by,
        "rows": rows,
    }


def number_of(figure: Estimate | Figure) -> float | None:
    """Read the number of a figure of a table; ``None`` for a text or none."""
    if isinstance(figure, Mapping):
        figure = figure["value"]
    return figure if isinstance(figure, int | float) else None
