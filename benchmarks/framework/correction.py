"""Scores corrected by people's grades or by the judge's errors, and how far the two agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.framework.base import Benchmark
from benchmarks.framework.files import Row, join_responses
from benchmarks.framework.graded import GradedModel, Measure, ScoredItems
from evaluation.correction.judged import (
    ErrorRates,
    added_width,
    drawn_errors,
    errors_of_judge,
    judged_rate,
    parse_errors,
    read_errors,
)
from evaluation.correction.scores import (
    SAMPLING_PROBABILITY,
    Rate,
    UnknownSampling,
    corrected_rate,
)
from evaluation.estimate import without_nan
from evaluation.intervals import Floats, cluster_sums, number_clusters, resample_clusters
from evaluation.metrics import calibration_columns, confusion_matrix, ratio, reliability_table
from evaluation.outcomes import full_label
from evaluation.ranking.agreement import order_probabilities
from judging.errors import CustosError, FieldError

ErrorsOf = Callable[[str], Mapping[str, ErrorRates]]
"""From the name of a judge to how it errs by rubric."""


def corrected_scores(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row], random_sample: bool
) -> dict[str, Any]:
    """Correct every measure that people scored; arguments and errors as :func:`corrected_score`.

    Returns:
        ``corrected``: the headline, also where people scored nothing, which is refused.
        ``corrected_measures``: the others by name. Or ``not_corrected``: that nobody knows how the
        items were picked, and the way out.
    """
    scores_of_others = benchmark.other_scores(_graded_by_people(benchmark, rows, people))
    others = [
        measure
        for measure, scores in scores_of_others.items()
        if any(score.value is not None for score in scores)
    ]
    corrected: dict[str, Any] = {}
    try:
        if others:
            corrected["corrected_measures"] = {
                measure: corrected_score(benchmark, rows, people, random_sample, measure)
                for measure in others
            }
        if not others or human_scores(benchmark, rows, people):
            corrected["corrected"] = corrected_score(benchmark, rows, people, random_sample)
    except UnknownSampling as error:
        return {"not_corrected": str(error)}
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
    items = ScoredItems.of(benchmark, rows, measure)
    scored, full = list(items.scores.values()), items.measure.full
    human = human_scores(benchmark, rows, people, measure)
    drawn = _sampling_probabilities(benchmark, people)

    def column(by_id: Mapping[str, float]) -> Floats:
        return np.array([by_id.get(score.id, np.nan) for score in scored])

    def in_unit(rate: Rate) -> dict[str, float]:
        return {**{end: full * getattr(rate, end) for end in ("value", "low", "high")}, "n": rate.n}

    rate = corrected_rate(
        np.array([score.value for score in scored], dtype=np.float64) / full,
        column(human) / full,
        random_sample=random_sample,
        probabilities=column(drawn) if drawn else None,
        groups=number_clusters([score.cluster for score in scored]),
    )
    raw, by_people = in_unit(rate.raw), in_unit(rate.corrected)
    corrected: dict[str, Any] = without_nan(
        {
            "metric": items.measure.name,
            "method": rate.method,
            "raw": raw,
            "corrected": by_people,
            "added_width": added_width(raw, by_people),
            "labelled": in_unit(rate.labelled),
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
        key, given = str(row.get(benchmark.item_id)), row.get(SAMPLING_PROBABILITY)
        try:
            drawn |= {} if given is None else {key: float(given)}
        except (TypeError, ValueError):
            fault = f"'{given}' is no number"
            raise FieldError(SAMPLING_PROBABILITY, fault, f"item '{key}' of people") from None
    return drawn


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
    graded = _graded_by_people(benchmark, rows, people)
    scores = Measure(benchmark, measure).scores(graded)
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
    left_out = {*benchmark.grade_fields, "verdicts"}
    items = [{name: row[name] for name in row.keys() - left_out} for row in rows]
    return join_responses(items, people, benchmark.item_id)


def labels_of_both(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the judge's and people's labels, by id, of the items that both labelled.

    For benchmarks that measure the judge, labels are spelled as the task does. For the others they
    are those of ``Benchmark.graded_label``.

    Args:
        benchmark: The benchmark that the items belong to.
        rows: Items that the judge graded.
        people: Some of them as people graded them.
    """
    judge: dict[str, str] = {}
    human: dict[str, str] = {}
    for row in rows:
        label, verdict = benchmark.human_label(row), benchmark.compared_verdict(row)
        if label is not None and verdict is not None and verdict.label is not None:
            key = str(row.get(benchmark.item_id))
            human[key], judge[key] = label, full_label(verdict)
    if people:
        by_people, by_judge = (
            {str(row.get(benchmark.item_id)): benchmark.graded_label(row) for row in graded}
            for graded in (_graded_by_people(benchmark, rows, people), rows)
        )
        for key, label in by_judge.items():
            other = by_people.get(key)
            if label is not None and other is not None:
                judge[key], human[key] = label, other
    return judge, human


def judge_agreement(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row]
) -> dict[str, Any] | None:
    """Return confusion and calibration of the judge against people; arguments as above.

    Returns:
        ``confusion`` (``labels, counts``, rows are people) and ``calibration`` (``None`` for a
        judge without confidences) as ``evaluation.report.plots`` draws them; ``None`` if
        people graded nothing.
    """
    judge, human = labels_of_both(benchmark, rows, people)
    if not judge:
        return None
    labels = sorted({*judge.values(), *human.values()})
    by_people, by_judge = (
        np.array([labels.index(side[key]) for key in judge]) for side in (human, judge)
    )
    verdicts = {str(row.get(benchmark.item_id)): benchmark.compared_verdict(row) for row in rows}
    # An item whose label a rule decided has no confidence.
    stated = [verdict and verdict.confidence for verdict in map(verdicts.get, judge)]
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
    def of(cls, benchmark: Benchmark, rows: Sequence[Row], errors_of: ErrorsOf) -> JudgedItems:
        """Read the headline scores of graded rows; rows without one are left out."""
        scores, rubrics = [], []
        errors: dict[str, ErrorRates] = {}
        by_judge: dict[str, Mapping[str, ErrorRates]] = {}
        for score, row in zip(benchmark.scores(rows), rows, strict=True):
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
    measured: Path | None,
) -> dict[str, Any] | None:
    """Return how likely people's order of models is that of their judged scores.

    The corrected scores are drawn together: questions are resampled, those that models share
    together, and a judge's errors drawn within their intervals.

    Args:
        benchmark: The benchmark that the items belong to.
        models: Models by name.
        tables: Results of ``build_table`` by name.
        measured: Report that says how the judge errs; default what is known of it.

    Returns:
        What ``order_probabilities`` returns, and ``uncorrected``: the models whose scores cannot be
        corrected; with any, there are no probabilities. ``None`` with fewer than two models, or
        where no judge has a part in the scores.
    """
    if len(models) < 2 or any(table["judged"] is None for table in tables.values()):
        return None
    sampled = {
        name: bool(table.get("corrected")) and table["corrected"]["method"] == "ppi++"
        for name, table in tables.items()
    }
    uncorrected = [
        name
        for name, table in tables.items()
        if not sampled[name] and table["judged"]["corrected"] is None
    ]
    if uncorrected:
        return {"same_order": None, "same_winner": None, "uncorrected": uncorrected}
    parts: list[_SampledByPeople | _Measured] = []
    for name, table in tables.items():
        if sampled[name]:
            parts.append(_SampledByPeople(benchmark, models[name], table["corrected"]["power"]))
        else:
            errors_of = known_errors(measured, models[name].run)
            parts.append(_Measured(JudgedItems.of(benchmark, models[name].rows, errors_of)))
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
    """Scores of a model, of which people gave a random sample."""

    def __init__(self, benchmark: Benchmark, model: GradedModel, power: float) -> None:
        scored = list(ScoredItems.of(benchmark, model.rows).scores.values())
        people = human_scores(benchmark, model.rows, model.people)
        rows = [
            (1, people[score.id], score.value, 0, 0)
            if score.id in people
            else (0, 0, 0, 1, score.value)
            for score in scored
        ]
        # Labelled, people's score, the judge's; not labelled, the judge's. Shape [n, 5].
        self.columns = np.array(rows, np.float64)
        self.clusters = [score.cluster for score in scored]
        self._power = power

    def score(self, sums: Floats) -> Floats:
        """Return the scores of resamples. Shapes ``[B, 5]`` to ``[B]``."""
        labelled, people, judged, others, judged_others = sums.T
        gap = np.nan_to_num(ratio(judged, labelled) - ratio(judged_others, others))
        return ratio(people, labelled) - self._power * gap


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
