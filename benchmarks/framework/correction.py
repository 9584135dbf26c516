"""Scores corrected by people's grades or by the judge's errors, and how far the two agree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.framework.base import Benchmark
from benchmarks.framework.files import Row, join_responses
from benchmarks.framework.graded import GradedModel, ScoredItems, scores_of
from evaluation.calibration_error import calibration_columns, reliability_table
from evaluation.correction.judged import (
    ErrorRates,
    added_width,
    drawn_errors,
    errors_of_judge,
    judged_rate,
    parse_errors,
    read_errors,
)
from evaluation.correction.scores import SAMPLING_PROBABILITY, UnknownSampling, corrected_rate
from evaluation.estimate import without_nan
from evaluation.intervals import Floats, cluster_sums, number_clusters, ratio, resample_clusters
from evaluation.metrics import confusion_matrix
from evaluation.outcomes import full_label
from evaluation.ranking.bradley_terry import order_probabilities
from judging.errors import CustosError, FieldError

MAX_ROWS = 10
"""Most row numbers that an error lists."""


def corrected_scores(model: GradedModel) -> dict[str, Any]:
    """Correct every measure that people scored; errors as :func:`corrected_score`.

    ``corrected`` holds the headline; it is left out if people scored other measures alone.
    ``corrected_measures`` holds the others by name. Where nobody knows how the items were picked,
    ``not_corrected`` alone says so, with the way out.
    """
    others = [
        measure
        for measure, scores in model.benchmark.other_scores(_graded_by_people(model)).items()
        if any(score.value is not None for score in scores)
    ]
    corrected: dict[str, Any] = {}
    try:
        if others:
            by_measure = {measure: corrected_score(model, measure) for measure in others}
            corrected["corrected_measures"] = by_measure
        if not others or human_scores(model):
            corrected["corrected"] = corrected_score(model)
    except UnknownSampling as error:
        return {"not_corrected": str(error)}
    return corrected


def corrected_score(model: GradedModel, measure: str | None = None) -> dict[str, Any]:
    """Estimate the score that people would give, from the judge's and some of theirs.

    Items that the judge did not score are left out. Without a measure it is the headline.

    The result has ``metric, method``; ``raw``, ``corrected`` and ``labelled`` with
    ``value, low, high, n`` in the measure's unit, and ``added_width``; ``power``, ``sensitivity``,
    ``specificity``, ``unscored``. Raise ``CustosError`` if an id is unknown or repeated, or as
    ``corrected_rate``.
    """
    items = ScoredItems.of(model.benchmark, model.rows, measure)
    scored, full = list(items.scores.values()), items.full
    human = human_scores(model, measure)
    drawn = sampling_probabilities(model.people, model.benchmark.item_id, human)

    def column(by_id: Mapping[str, float]) -> Floats:
        return np.array([by_id.get(score.id, np.nan) for score in scored])

    rate = corrected_rate(
        np.array([score.value for score in scored], dtype=np.float64) / full,
        column(human) / full,
        random_sample=model.random_sample,
        probabilities=column(drawn) if drawn else None,
        groups=number_clusters([score.cluster for score in scored]),
    )
    raw, by_people = rate.raw.as_json(full), rate.corrected.as_json(full)
    corrected: dict[str, Any] = without_nan(
        {
            "metric": items.measure,
            "method": rate.method,
            "raw": raw,
            "corrected": by_people,
            "added_width": added_width(raw, by_people),
            "labelled": rate.labelled.as_json(full),
            "power": rate.power,
            "sensitivity": rate.sensitivity,
            "specificity": rate.specificity,
            "unscored": len(model.rows) - len(scored),
        }
    )
    return corrected


def sampling_probabilities(
    people: Iterable[Row], id_field: str, labelled: Collection[str]
) -> dict[str, float]:
    """Read the probability with which each item was drawn for people, by id.

    Raise ``FieldError`` if one is no number, or only some of the ``labelled`` items have one: how
    much the others stand for, nobody knows.
    """
    drawn: dict[str, float] = {}
    missing: list[int] = []
    for number, row in enumerate(people, 1):
        key, given = str(row.get(id_field)), row.get(SAMPLING_PROBABILITY)
        if given in (None, ""):
            missing += [number] if key in labelled else []
            continue
        try:
            drawn[key] = float(given)
        except (TypeError, ValueError):
            fault = f"'{given}' is no number"
            raise FieldError(SAMPLING_PROBABILITY, fault, f"item '{key}' of people") from None
    if drawn and missing:
        first = ", ".join(map(str, missing[:MAX_ROWS])) + ", ..." * (len(missing) > MAX_ROWS)
        fault = "a label and no probability; others have one"
        place = f"row{'s' * (len(missing) > 1)} {first} of people"
        raise FieldError(SAMPLING_PROBABILITY, fault, place)
    return drawn


def human_scores(model: GradedModel, measure: str | None = None) -> dict[str, float]:
    """Score every item that people have graded, under a measure, by id.

    Raise ``CustosError`` if an id is unknown, or there is no judge whom people could correct.
    """
    measure = measure or model.benchmark.headline
    scores = scores_of(model.benchmark, _graded_by_people(model), measure)
    return {score.id: score.value for score in scores if score.value is not None}


def _graded_by_people(model: GradedModel) -> list[Row]:
    """Put people's grades in place of the judge's, in the items that people graded."""
    benchmark, rows = model.benchmark, model.rows
    if not benchmark.tasks:
        raise CustosError(f"'{benchmark.name}' is graded by rule: there is no judge to correct")
    if rows and benchmark.human_label(rows[0]) is not None:
        raise CustosError(f"'{benchmark.name}' measures judges: its items hold people's labels")
    # A judge's grades are never people's.
    left_out = {*benchmark.grade_fields, "verdicts"}
    items = [{name: row[name] for name in row.keys() - left_out} for row in rows]
    graded = join_responses(items, model.people, benchmark.item_id)
    return benchmark.completed([*graded, *items])[: len(graded)]


def labels_of_both(model: GradedModel) -> list[tuple[str, str] | None]:
    """Pair the judge's label of every item with people's; ``None`` unless both labelled it.

    For benchmarks that measure the judge, labels are spelled as the task does. For the others they
    are those of ``Benchmark.graded_label``.
    """
    benchmark = model.benchmark
    by_people: dict[str, str | None] = {}
    if model.people:
        graded = _graded_by_people(model)
        by_people = {str(row[benchmark.item_id]): benchmark.graded_label(row) for row in graded}
    pairs: list[tuple[str, str] | None] = []
    for row in model.rows:
        judge: str | None = None
        human = benchmark.human_label(row)
        if human is not None:
            verdict = benchmark.compared_verdict(row)
            judge = full_label(verdict) if verdict is not None else None
        elif human := by_people.get(str(row.get(benchmark.item_id))):
            judge = benchmark.graded_label(row)
        pairs.append((judge, human) if judge and human else None)
    return pairs


def judge_agreement(model: GradedModel) -> dict[str, Any] | None:
    """Measure confusion and calibration of the judge against people.

    ``confusion`` (``labels, counts``, rows are people) and ``calibration`` (``None`` for a judge
    without confidences) are as ``evaluation.report.plots`` draws them. The whole is ``None`` where
    no item has labels of both.
    """
    labelled = [
        (*labels, model.benchmark.compared_verdict(row))
        for labels, row in zip(labels_of_both(model), model.rows, strict=True)
        if labels is not None
    ]
    if not labelled:
        return None
    judge, human, verdicts = zip(*labelled, strict=True)
    labels = sorted({*judge, *human})
    by_people, by_judge = (np.array([*map(labels.index, side)]) for side in (human, judge))
    # An item whose label a rule decided has no confidence.
    stated = [verdict and verdict.confidence for verdict in verdicts]
    confidence = np.array([np.nan if c is None else c for c in stated], np.float64)
    calibration = None
    if not np.isnan(confidence).all():
        right = (by_people == by_judge).astype(np.float64)
        sums = calibration_columns(confidence, right).sum(axis=0)
        calibration = {"after": reliability_table(sums)}
    counts = confusion_matrix(by_people, by_judge, len(labels)).astype(int).tolist()
    return {"confusion": {"labels": labels, "counts": counts}, "calibration": calibration}


@dataclass(frozen=True)
class JudgedItems:
    """Scored items of a graded file, with who decided each."""

    shares: Floats
    """Score as a share of the full one. Shape ``[n]``."""
    clusters: Sequence[str]
    rubrics: Sequence[str | None]
    """``None`` where a rule decided."""
    errors: Mapping[str, ErrorRates]
    """How the judges err, by rubric."""

    @classmethod
    def of(cls, model: GradedModel) -> JudgedItems:
        """Read the headline scores of graded rows; rows without one are left out."""
        benchmark, errors_of = model.benchmark, known_errors(model)
        scores, rubrics = [], []
        errors: dict[str, ErrorRates] = {}
        by_judge: dict[str, Mapping[str, ErrorRates]] = {}
        for score, row in zip(benchmark.scores(model.rows), model.rows, strict=True):
            if score.value is None:
                continue
            scores.append(score)
            verdict = benchmark.compared_verdict(row)
            if verdict is None:
                rubrics.append(None if _is_decided_by_rule(benchmark, row) else "")
                continue
            name = verdict.judge_name
            known = by_judge[name] = by_judge[name] if name in by_judge else errors_of(name)
            # Two judges of one file err each in its own way.
            rubrics.append(rubric := f"{verdict.rubric} by {name}" if verdict.rubric else "")
            if verdict.rubric in known:
                errors[rubric] = known[verdict.rubric]
        shares = np.array([score.value for score in scores], np.float64) / benchmark.full_score
        return cls(shares, [score.cluster for score in scores], rubrics, errors)

    @cached_property
    def _names(self) -> list[str]:
        return sorted({rubric or "" for rubric in self.rubrics})

    @property
    def columns(self) -> Floats:
        """Mark, per item, whether it is under each rubric, and its share there: ``[n, 2 R]``."""
        rubrics = [rubric or "" for rubric in self.rubrics]
        member = np.array([[rubric == name for name in self._names] for rubric in rubrics], float)
        return np.concatenate([member, member * self.shares[:, None]], axis=1)

    def score(self, sums: Floats) -> Floats:
        """Score resamples from their sums. Shapes ``[B, 2 R]`` to ``[B]``."""
        counts, hits = np.split(sums, 2, axis=1)
        rates = np.nan_to_num(ratio(hits, counts))
        for column, rubric in enumerate(self._names):
            if rubric:
                sensitivity, alarms = drawn_errors(rubric, self.errors[rubric], len(sums))
                rates[:, column] = (rates[:, column] - alarms) / (sensitivity - alarms)
        return ratio((counts * rates).sum(axis=1), counts.sum(axis=1))


def _is_decided_by_rule(benchmark: Benchmark, row: Row) -> bool:
    """Tell whether no judge is asked for an item's headline score."""
    try:
        return all(request.task != benchmark.tasks[0] for request in benchmark.requests(row))
    except CustosError:
        return False  # such as a row of another program, without what a judge would need


def known_errors(model: GradedModel) -> Callable[[str], Mapping[str, ErrorRates]]:
    """Look up how judges err: a function from a judge's name to rates by rubric.

    The rates are those of the given report, of the graded file's run for its own judge, or as
    shipped. Raise ``CustosError`` if the report or the run holds something else.
    """
    if model.measured is not None:
        given = read_errors(model.measured)
        return lambda _: given
    run = model.run or {}
    of_run = parse_errors(run.get("error_rates", {}), "the graded file's .run.json")
    judge = run.get("judge")
    return lambda name: of_run if of_run and name == judge else errors_of_judge(name)


def judged_score(model: GradedModel) -> dict[str, Any] | None:
    """Correct the headline score by its judge's errors.

    The result is that of ``JudgedRate.as_json``, in the unit of the score, and ``metric``; ``None``
    where no judge has a part in the score, or the benchmark measures judges.
    """
    benchmark, rows = model.benchmark, model.rows
    if not benchmark.tasks or (rows and benchmark.human_label(rows[0]) is not None):
        return None
    items = JudgedItems.of(model)
    if not len(items.shares) or all(rubric is None for rubric in items.rubrics):
        return None
    clusters = number_clusters(items.clusters)
    rate = judged_rate(items.shares, clusters, items.rubrics, items.errors)
    return {"metric": benchmark.headline, **rate.as_json(benchmark.full_score)}


def order_by_people(
    models: Mapping[str, GradedModel], tables: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Estimate how likely people's order of models is that of their judged scores.

    The corrected scores are drawn together: questions are resampled, those that models share
    together, and a judge's errors drawn within their intervals. ``tables`` are the results of
    ``build_table``; models and tables are by name.

    The result is that of ``order_probabilities``, and ``uncorrected``: the models whose scores
    cannot be corrected; with any, there are no probabilities. It is ``None`` with fewer than two
    models, or where no judge has a part in the scores.
    """
    if len(models) < 2 or any(table["judged"] is None for table in tables.values()):
        return None
    sampled = {name: bool(table.get("corrected")) for name, table in tables.items()}
    uncorrected = [
        name
        for name, table in tables.items()
        if not sampled[name] and table["judged"]["corrected"] is None
    ]
    if uncorrected:
        return {"same_order": None, "same_winner": None, "uncorrected": uncorrected}
    parts = [
        _SampledByPeople(models[name], table["corrected"]["power"])
        if sampled[name]
        else JudgedItems.of(models[name])
        for name, table in tables.items()
    ]
    # Each model has columns of its own, and rows for its items.
    keys = [key for part in parts for key in part.clusters]
    sizes = [part.columns.shape for part in parts]
    stacked = np.zeros(np.sum(sizes, axis=0))
    row = column = 0
    for part, (height, width) in zip(parts, sizes, strict=True):
        stacked[row : row + height, column : column + width] = part.columns
        row, column = row + height, column + width
    questions = cluster_sums(stacked, number_clusters(keys))
    ends = np.cumsum([width for _, width in sizes])[:-1]
    of_models = np.split(resample_clusters(questions), ends, axis=1)
    scores = [part.score(sums) for part, sums in zip(parts, of_models, strict=True)]
    judged = np.array([table["judged"]["raw"]["value"] for table in tables.values()])
    probabilities = order_probabilities(judged, np.stack(scores, axis=1), len(questions))
    return {**probabilities, "uncorrected": []}


class _SampledByPeople:
    """Scores of a model, of which people gave a sample with known probabilities."""

    def __init__(self, model: GradedModel, power: float) -> None:
        scored = list(ScoredItems.of(model.benchmark, model.rows).scores.values())
        people = human_scores(model)
        drawn = sampling_probabilities(model.people, model.benchmark.item_id, people)
        full = model.benchmark.full_score  # scores are shares, as those of other models
        rows = []
        for score in scored:
            is_labelled, by_judge = score.id in people, (score.value or 0.0) / full
            weight = is_labelled / drawn.get(score.id, 1.0)
            by_people = people.get(score.id, 0.0) / full
            rows.append((weight, weight * by_people, weight * by_judge, is_labelled, 1, by_judge))
        # Of labelled items their weight, weighted scores by people and judge, and number; of all
        # items their number and the judge's scores. Shape [n, 6].
        self.columns = np.array(rows, np.float64)
        self.clusters = [score.cluster for score in scored]
        self._power = power

    def score(self, sums: Floats) -> Floats:
        """Score resamples from their sums, as PPI++ does. Shapes ``[B, 6]`` to ``[B]``."""
        weight, people, judged, labelled, items, judged_all = sums.T
        on_labelled = ratio(judged, weight)
        gap = on_labelled - ratio(judged_all - labelled * on_labelled, items - labelled)
        return ratio(people, weight) - self._power * np.nan_to_num(gap)
