"""Many models' graded files beside each other and the published figures."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.framework.base import Benchmark
from benchmarks.framework.compare import ScoredItems, compare_graded
from benchmarks.framework.files import Row
from benchmarks.framework.graded_models import GradedModel
from benchmarks.framework.judged_scores import known_errors, order_by_people
from benchmarks.framework.report.report import build_table, paper_tables
from evaluation.intervals import holm
from judging.errors import CustosError


def build_leaderboard(
    benchmark: Benchmark,
    models: Mapping[str, GradedModel],
    random_sample: bool = False,
    measured: Path | None = None,
) -> dict[str, Any]:
    """Return the tables of several models, the published ones with their rows, and differences.

    Args:
        benchmark: The benchmark that the items belong to.
        models: Models by name.
        random_sample: Whether people graded random samples of the items.
        measured: Report that says how the judge errs; default what is known of it.

    Returns:
        ``benchmark`` and ``metric`` (the headline score, which differences are of). ``models``:
        name to the result of ``build_table`` with ``source``, the highest headline score first.
        ``tables``: as ``paper_tables``. ``order``: as ``order_by_people``. ``differences``: for
        every two models on the items that both score ``models`` (their names), what
        ``compare_graded`` returns, and ``p_holm``, corrected for the number of pairs.
        ``not_compared``: reasons why models are not among them.

    Raises:
        CustosError: If the items of a model do not fit; the message names its file.
    """
    tables = {}
    for name, model in models.items():
        try:
            table = build_table(
                benchmark, model.rows, model.people, random_sample, model.run, measured
            )
        except CustosError as error:
            raise CustosError(f"{model.source}: {error}") from None
        tables[name] = {"source": model.source, **table}
    ranked = sorted(tables, key=lambda name: -_mean_score(benchmark, models[name].rows))
    tables = {name: tables[name] for name in ranked}
    return {
        "benchmark": benchmark.name,
        "metric": benchmark.headline,
        "models": tables,
        "tables": paper_tables(benchmark, tables),
        "order": order_by_people(
            benchmark,
            models,
            tables,
            {name: known_errors(measured, model.run) for name, model in models.items()},
        ),
        **_paired_differences(benchmark, {name: models[name].rows for name in ranked}),
    }


def _mean_score(benchmark: Benchmark, rows: Sequence[Row]) -> float:
    values = [score.value for score in benchmark.scores(rows) if score.value is not None]
    return sum(values) / len(values) if values else 0.0


def _paired_differences(
    benchmark: Benchmark, rows_by_model: Mapping[str, Sequence[Row]]
) -> dict[str, Any]:
    """Return ``differences`` and ``not_compared`` of ``build_leaderboard``."""
    scored: dict[str, ScoredItems] = {}
    reasons = []
    for name, rows in rows_by_model.items():
        try:
            scored[name] = ScoredItems.of(benchmark, rows)
        except CustosError as error:
            reasons.append(f"{name}: {error}")
    differences = []
    for first, second in itertools.combinations(scored, 2):
        try:
            compared = compare_graded(benchmark, scored[first], scored[second])
        except CustosError as error:
            reasons.append(f"{first} and {second}: {error}")
        else:
            differences.append({"models": [first, second], **compared})
    corrected = holm([difference["p"] for difference in differences])
    return {
        "differences": [
            {**difference, "p_holm": p_value}
            for difference, p_value in zip(differences, corrected, strict=True)
        ],
        "not_compared": reasons,
    }
