"""A benchmark's score corrected by people's grades, and the judge's agreement with people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.framework.base import Benchmark, join_responses
from benchmarks.framework.compare import ScoredItems
from benchmarks.framework.files import Row
from evaluation.correction.judged import added_width
from evaluation.correction.scores import SAMPLING_PROBABILITY, Rate, UnknownSampling, corrected_rate
from evaluation.estimate import without_nan
from evaluation.intervals import Floats, number_clusters
from evaluation.metrics import calibration_columns, confusion_matrix, reliability_table
from evaluation.outcomes import full_label
from judging.errors import CustosError, FieldError

Labels = Mapping[str, str]
"""Item id to a label."""


def corrected_scores(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row], random_sample: bool
) -> dict[str, Any]:
    """Correct every measure that people scored; arguments and errors as :func:`corrected_score`.

    Returns:
        ``corrected``: the headline, also where people scored nothing, which is refused.
        ``corrected_measures``: the others by name. Or ``not_corrected``: that nobody knows how the
        items were picked, and the way out.
    """
    try:
        return _corrected_scores(benchmark, rows, people, random_sample)
    except UnknownSampling as error:
        return {"not_corrected": str(error)}


def _corrected_scores(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row], random_sample: bool
) -> dict[str, Any]:
    graded = _graded_by_people(benchmark, rows, people)
    others = [
        measure
        for measure, scores in benchmark.other_scores(graded).items()
        if any(score.value is not None for score in scores)
    ]
    corrected: dict[str, Any] = {}
    if others:
        corrected["corrected_measures"] = {
            measure: corrected_score(benchmark, rows, people, random_sample, measure)
            for measure in others
        }
    if not others or human_scores(benchmark, rows, people):
        corrected["corrected"] = corrected_score(benchmark, rows, people, random_sample)
    return corrected


def corrected_score(
    benchmark: Benchmark,
    rows: Sequence[Row],
    people: Sequence[Row],
    random_sample: bool,
    measure: str | None = None,
) -> dict[str, Any]:
    """Estimate the score that people would give, from the judge's and some of theirs.

    Items that the judge did not score are left out.

    Args:
        benchmark: The benchmark that the items belong to.
        rows: Items that the judge graded.
        people: Some of them as people graded them: an id, the fields of the graded shape and, where
            they were drawn with one, their ``sampling_probability``.
        random_sample: Whether every item was equally likely to be graded by people.
        measure: A measure of the benchmark; default its headline.

    Returns:
        ``metric, method``; ``raw``, ``corrected`` and ``labelled`` with ``value, low, high, n`` in
        the measure's unit, and ``added_width``; ``power``, ``sensitivity``, ``specificity``,
        ``unscored``.

    Raises:
        CustosError: If an id is unknown or repeated, or as ``corrected_rate``.
    """
    scored = list(ScoredItems.of(benchmark, rows, measure).scores.values())
    human = human_scores(benchmark, rows, people, measure)
    metric = measure or benchmark.headline
    full = benchmark.full_score if metric == benchmark.headline else 1.0
    drawn = _sampling_probabilities(benchmark, people)
    rate = corrected_rate(
        np.array([score.value for score in scored], dtype=np.float64) / full,
        np.array([human.get(score.id, np.nan) for score in scored]) / full,
        random_sample=random_sample,
        probabilities=np.array([drawn.get(score.id, np.nan) for score in scored])
        if drawn
        else None,
        groups=number_clusters([score.cluster for score in scored]),
    )
    raw, by_people = _in_unit(rate.raw, full), _in_unit(rate.corrected, full)
    corrected: dict[str, Any] = without_nan(
        {
            "metric": metric,
            "method": rate.method,
            "raw": raw,
            "corrected": by_people,
            "added_width": added_width(raw, by_people),
            "labelled": _in_unit(rate.labelled, full),
            "power": rate.power,
            "sensitivity": rate.sensitivity,
            "specificity": rate.specificity,
            "unscored": len(rows) - len(scored),
        }
    )
    return corrected


def _sampling_probabilities(benchmark: Benchmark, people: Sequence[Row]) -> dict[str, float]:
    """Return the probability with which each item was drawn for people, by id."""
    drawn: dict[str, float] = {}
    for row in people:
        if (given := row.get(SAMPLING_PROBABILITY)) is not None:
            try:
                drawn[str(row.get(benchmark.item_id))] = float(given)
            except (TypeError, ValueError):
                where = f"item '{row.get(benchmark.item_id)}' of people"
                raise FieldError(SAMPLING_PROBABILITY, f"'{given}' is no number", where) from None
    return drawn


def _in_unit(rate: Rate, full: float) -> dict[str, float]:
    return {
        "value": full * rate.value,
        "low": full * rate.low,
        "high": full * rate.high,
        "n": rate.n,
    }


def human_scores(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row], measure: str | None = None
) -> dict[str, float]:
    """Return the score of every item that people graded.

    Args:
        benchmark: The benchmark that the items belong to.
        rows: Items that the judge graded.
        people: Some of them as people graded them; rows without a grade yet are left out.
        measure: A measure of the benchmark; default its headline.

    Raises:
        CustosError: If an id is unknown, or there is no judge whom people could correct.
    """
    scores = benchmark.scores_of(measure, _graded_by_people(benchmark, rows, people))
    return {score.id: score.value for score in scores if score.value is not None}


def _graded_by_people(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row]
) -> list[Row]:
    """Return the items that people graded with their grades in place of the judge's."""
    if not benchmark.tasks:
        raise CustosError(f"'{benchmark.name}' is graded by rule: there is no judge to correct")
    if rows and benchmark.human_label(rows[0]) is not None:
        raise CustosError(f"'{benchmark.name}' measures judges: its items hold people's labels")
    # A judge's grades are never people's.
    left_out = {*benchmark.grade_fields, *benchmark.people_fields, "verdicts"}
    items = [{name: row[name] for name in row.keys() - left_out} for row in rows]
    return join_responses(items, people, benchmark.item_id)


def labels_of_both(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row]
) -> tuple[list[str], Labels, Labels]:
    """Return the labels of the items that both the judge and people labelled.

    For benchmarks that measure the judge, labels are spelled as the task does. For the others they
    are those of ``Benchmark.graded_label``.

    Args:
        benchmark: The benchmark that the items belong to.
        rows: Items that the judge graded.
        people: Some of them as people graded them.

    Returns:
        Ids in the order of the rows, the judge's labels by id, and people's.
    """
    judge: dict[str, str] = {}
    human: dict[str, str] = {}
    for row in rows:
        label, verdict = benchmark.human_label(row), benchmark.compared_verdict(row)
        if label is not None and verdict is not None and verdict.label is not None:
            key = str(row.get(benchmark.item_id))
            human[key], judge[key] = label, full_label(verdict)
    if people:
        by_people = {
            str(row.get(benchmark.item_id)): label
            for row in _graded_by_people(benchmark, rows, people)
            if (label := benchmark.graded_label(row)) is not None
        }
        for row in rows:
            key, label = str(row.get(benchmark.item_id)), benchmark.graded_label(row)
            if label is not None and key in by_people:
                judge[key], human[key] = label, by_people[key]
    return list(judge), judge, human


def judge_agreement(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row]
) -> dict[str, Any] | None:
    """Return confusion and calibration of the judge against people.

    Args:
        benchmark: The benchmark that the items belong to.
        rows: Items that the judge graded.
        people: Some of them as people graded them.

    Returns:
        ``confusion`` (``labels, counts``, rows are people) and ``calibration`` (``None`` for a
        judge without confidences) as ``evaluation.report.plots`` draws them; ``None`` if
        people graded nothing.
    """
    ids, judge, human = labels_of_both(benchmark, rows, people)
    if not ids:
        return None
    labels = sorted({*judge.values(), *human.values()})
    index = {label: number for number, label in enumerate(labels)}
    counts = confusion_matrix(
        np.array([index[human[key]] for key in ids]),
        np.array([index[judge[key]] for key in ids]),
        len(labels),
    )
    confidence = _confidences(benchmark, rows, ids)
    right = np.array([float(judge[key] == human[key]) for key in ids])
    calibration = None
    if not np.isnan(confidence).all():
        sums = calibration_columns(confidence, right).sum(axis=0)
        calibration = {"after": reliability_table(sums)}
    return {
        "confusion": {"labels": labels, "counts": counts.astype(int).tolist()},
        "calibration": calibration,
    }


def _confidences(benchmark: Benchmark, rows: Sequence[Row], ids: Sequence[str]) -> Floats:
    """Return the confidence of the verdict behind each item's label. Shape ``[n]``.

    It is nan where a rule decided.
    """
    by_id: dict[str, float | None] = {}
    for row in rows:
        if verdict := benchmark.compared_verdict(row):
            by_id[str(row.get(benchmark.item_id))] = verdict.confidence
    return np.array([np.nan if by_id.get(key) is None else by_id[key] for key in ids], np.float64)
