"""A benchmark's score without people's labels, corrected by how its judge was measured to err."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.framework.base import Benchmark
from benchmarks.framework.compare import ScoredItems
from benchmarks.framework.corrected_by_people import human_scores
from benchmarks.framework.files import Row
from benchmarks.framework.graded_models import GradedModel
from evaluation.correction.judged import (
    ErrorRates,
    drawn_errors,
    errors_of_judge,
    judged_rate,
    parse_errors,
    read_errors,
)
from evaluation.intervals import Floats, cluster_sums, number_clusters, resample_clusters
from evaluation.metrics import ratio
from evaluation.ranking.agreement import order_probabilities
from judging.errors import CustosError

ErrorsOf = Callable[[str], Mapping[str, ErrorRates]]
"""From the name of a judge to how it errs by rubric."""


@dataclass(frozen=True)
class JudgedItems:
    """Scored items of a graded file, with who decided each."""

    shares: Floats
    """Score as a share of the full one. Shape ``[n]``."""
    ids: Sequence[str]
    clusters: Sequence[str]
    rubrics: Sequence[str | None]
    """``None`` where a rule decided."""
    errors: Mapping[str, ErrorRates]
    """How the judges err, by rubric."""

    @classmethod
    def of(cls, benchmark: Benchmark, rows: Sequence[Row], errors_of: ErrorsOf) -> JudgedItems:
        """Read the headline scores of graded rows; rows without one are left out."""
        kept = [
            (score, row)
            for score, row in zip(benchmark.scores(rows), rows, strict=True)
            if score.value is not None
        ]
        rubrics: list[str | None] = []
        errors: dict[str, ErrorRates] = {}
        by_judge: dict[str, Mapping[str, ErrorRates]] = {}
        for _, row in kept:
            verdict = benchmark.compared_verdict(row)
            if verdict is None:
                rubrics.append(None if _is_decided_by_rule(benchmark, row) else "")
                continue
            name = verdict.judge_name
            known = by_judge[name] = by_judge[name] if name in by_judge else errors_of(name)
            # Two judges of one file err each in its own way.
            rubric = f"{verdict.rubric} by {name}" if verdict.rubric else ""
            rubrics.append(rubric)
            if verdict.rubric in known:
                errors[rubric] = known[verdict.rubric]
        return cls(
            np.array([score.value for score, _ in kept], np.float64) / benchmark.full_score,
            [score.id for score, _ in kept],
            [score.cluster for score, _ in kept],
            rubrics,
            errors,
        )


def _is_decided_by_rule(benchmark: Benchmark, row: Row) -> bool:
    """Return whether no judge is asked for an item's headline score."""
    try:
        return all(request.task != benchmark.tasks[0] for request in benchmark.requests(row))
    except CustosError:
        return False  # such as a row of another program, without what a judge would need


def known_errors(measured: Path | None, run: Mapping[str, Any] | None) -> ErrorsOf:
    """Return how judges err: by a report, by what the run of a graded file says, or as shipped.

    Args:
        measured: Report or folder to take for every judge.
        run: Contents of the file beside a graded file.

    Raises:
        CustosError: If one of them holds something else.
    """
    if measured is not None:
        given = read_errors(measured)
        return lambda _: given
    of_run = parse_errors((run or {}).get("error_rates", {}), "the graded file's .run.json")
    judge = (run or {}).get("judge")
    return lambda name: of_run if of_run and name == judge else errors_of_judge(name)


def judged_score(
    benchmark: Benchmark, rows: Sequence[Row], errors_of: ErrorsOf
) -> dict[str, Any] | None:
    """Correct the headline score by its judge's errors.

    Returns:
        What ``JudgedRate.as_json`` returns, in the unit of the score, and ``metric``; ``None``
        where no judge has a part in the score, or the benchmark measures judges.
    """
    if not benchmark.tasks or (rows and benchmark.human_label(rows[0]) is not None):
        return None
    items = JudgedItems.of(benchmark, rows, errors_of)
    if not len(items.shares) or all(rubric is None for rubric in items.rubrics):
        return None
    clusters = number_clusters(items.clusters)
    rate = judged_rate(items.shares, clusters, items.rubrics, items.errors)
    return {"metric": benchmark.headline, **rate.as_json(benchmark.full_score)}


def order_by_people(
    benchmark: Benchmark,
    models: Mapping[str, GradedModel],
    tables: Mapping[str, Mapping[str, Any]],
    errors_of: Mapping[str, ErrorsOf],
) -> dict[str, Any] | None:
    """Return how likely people's order of models is that of their judged scores.

    The corrected scores are drawn together: questions are resampled, those that models share
    together, and a judge's errors drawn within their intervals.

    Args:
        benchmark: The benchmark that the items belong to.
        models: Models by name.
        tables: Results of ``build_table`` by name.
        errors_of: What is known of their judges, by name of the model.

    Returns:
        What ``order_probabilities`` returns, and ``uncorrected``: the models whose scores cannot be
        corrected; with any, there are no probabilities. ``None`` with fewer than two models, or
        where no judge has a part in the scores.
    """
    if len(models) < 2 or any(table["judged"] is None for table in tables.values()):
        return None
    uncorrected = [
        name
        for name, table in tables.items()
        if not _is_sampled(table) and table["judged"]["corrected"] is None
    ]
    if uncorrected:
        return {"same_order": None, "same_winner": None, "uncorrected": uncorrected}
    parts = [
        _SampledByPeople.of(benchmark, models[name], table["corrected"]["power"])
        if _is_sampled(table)
        else _Measured(JudgedItems.of(benchmark, models[name].rows, errors_of[name]))
        for name, table in tables.items()
    ]
    keys = [key for part in parts for key in part.clusters]
    sizes = [part.columns.shape[1] for part in parts]
    stacked = np.zeros((len(keys), sum(sizes)))
    row = column = 0
    for part, size in zip(parts, sizes, strict=True):
        stacked[row : row + len(part.clusters), column : column + size] = part.columns
        row, column = row + len(part.clusters), column + size
    questions = cluster_sums(stacked, number_clusters(keys))
    drawn = resample_clusters(questions)
    of_models = np.split(drawn, np.cumsum(sizes)[:-1], axis=1)
    scores = [part.score(sums) for part, sums in zip(parts, of_models, strict=True)]
    judged = np.array([table["judged"]["raw"]["value"] for table in tables.values()])
    probabilities = order_probabilities(judged, np.stack(scores, axis=1), len(questions))
    return {**probabilities, "uncorrected": []}


def _is_sampled(table: Mapping[str, Any]) -> bool:
    """Return whether people labelled a random sample of a model's items."""
    return bool(table.get("corrected")) and table["corrected"]["method"] == "ppi++"


@dataclass(frozen=True)
class _SampledByPeople:
    """Scores of a model, of which people gave a random sample."""

    columns: Floats
    """Per item: labelled, people's score, the judge's; not labelled, the judge's. ``[n, 5]``."""
    clusters: Sequence[str]
    power: float

    @classmethod
    def of(cls, benchmark: Benchmark, model: GradedModel, power: float) -> _SampledByPeople:
        scored = list(ScoredItems.of(benchmark, model.rows).scores.values())
        people = human_scores(benchmark, model.rows, model.people)
        rows = [
            (1, people[score.id], score.value, 0, 0)
            if score.id in people
            else (0, 0, 0, 1, score.value)
            for score in scored
        ]
        return cls(np.array(rows, np.float64), [score.cluster for score in scored], power)

    def score(self, sums: Floats) -> Floats:
        """Return the scores of resamples. Shapes ``[B, 5]`` to ``[B]``."""
        labelled, people, judged, others, judged_others = sums.T
        gap = np.nan_to_num(ratio(judged, labelled) - ratio(judged_others, others))
        return ratio(people, labelled) - self.power * gap


class _Measured:
    """Scores of a model under a judge that was measured elsewhere."""

    def __init__(self, items: JudgedItems) -> None:
        self.clusters = items.clusters
        rubrics = ["" if rubric is None else rubric for rubric in items.rubrics]
        self._rubrics = sorted(set(rubrics))
        self._errors = items.errors
        member = np.array([[rubric == each for each in self._rubrics] for rubric in rubrics], float)
        self.columns = np.concatenate([member, member * items.shares[:, None]], axis=1)

    def score(self, sums: Floats) -> Floats:
        """Return the scores of resamples. Shapes ``[B, 2 R]`` to ``[B]``."""
        counts, hits = np.split(sums, 2, axis=1)
        rates = np.nan_to_num(ratio(hits, counts))
        for column, rubric in enumerate(self._rubrics):
            if rubric:
                sensitivity, alarms = drawn_errors(rubric, self._errors[rubric], len(sums))
                rates[:, column] = (rates[:, column] - alarms) / (sensitivity - alarms)
        return ratio((counts * rates).sum(axis=1), counts.sum(axis=1))
