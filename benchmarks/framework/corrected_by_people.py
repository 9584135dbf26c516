"""A benchmark's score beside people's: corrected, and how far the judge agrees with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.framework.base import Benchmark, join_responses
from benchmarks.framework.compare import ScoredItems
from benchmarks.framework.files import Row
from benchmarks.framework.tables import stored_verdicts
from evaluation.correction.scores import Rate, corrected_rate
from evaluation.estimate import without_nan
from evaluation.intervals import number_clusters
from evaluation.metrics import calibration_columns, confusion_matrix, reliability_table
from evaluation.outcomes import full_label
from judging.errors import CustosError

Labels = Mapping[str, str]
"""Item id to a label."""


def corrected_score(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row], random_sample: bool
) -> dict[str, Any]:
    """The headline score people would give, from the judge and the items that people graded.

    Items that the judge did not score are left out.

    Args:
        benchmark: Whose headline score it is; items must score 0 or full.
        rows: Items that the judge graded.
        people: Some of them as people graded them: an id and the fields of the graded shape.
        random_sample: Whether people graded a random sample of the items.

    Returns:
        ``metric, method``; ``raw``, ``corrected`` and ``labelled`` with ``value, low, high, n`` in
        the headline's unit (``labelled`` is ``None`` for the plug-in); ``power``, ``sensitivity``,
        ``specificity``, ``unscored``.

    Raises:
        CustosError: If an id is unknown or repeated, or the estimate does not exist.
    """
    judge = ScoredItems.of(benchmark, rows).scores
    human = human_scores(benchmark, rows, people)
    scored = list(judge.values())
    full = benchmark.full_score
    found = corrected_rate(
        np.array([score.value for score in scored], dtype=np.float64) / full,
        np.array([human.get(score.id, np.nan) for score in scored]) / full,
        random_sample=random_sample,
        groups=number_clusters([score.cluster for score in scored]),
    )

    def in_unit(rate: Rate | None) -> dict[str, Any] | None:
        if rate is None:
            return None
        bounds = {"value": rate.value, "low": rate.low, "high": rate.high}
        return {**{name: full * value for name, value in bounds.items()}, "n": rate.n}

    corrected: dict[str, Any] = without_nan(
        {
            "metric": benchmark.headline,
            "method": found.method,
            "raw": in_unit(found.raw),
            "corrected": in_unit(found.corrected),
            "labelled": in_unit(found.labelled),
            "power": found.power,
            "sensitivity": found.sensitivity,
            "specificity": found.specificity,
            "unscored": len(rows) - len(scored),
        }
    )
    return corrected


def human_scores(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row]
) -> dict[str, float]:
    """Headline score of every item that people graded; a row of theirs may be still without grade.

    Raises:
        CustosError: If an id is unknown, or there is no judge whom people could correct.
    """
    if not benchmark.tasks:
        raise CustosError(f"'{benchmark.name}' is graded by rule: there is no judge to correct")
    if rows and benchmark.people_said(rows[0]) is not None:
        raise CustosError(f"'{benchmark.name}' measures judges: its items hold people's labels")
    judged = {*benchmark.grade_fields, "verdicts"}  # what the judge said is nobody else's grade
    items = [{name: row[name] for name in row.keys() - judged} for row in rows]
    joined = join_responses(items, people, benchmark.item_id)
    scores = benchmark.scores(joined)
    return {score.id: score.value for score in scores if score.value is not None}


def labels_of_both(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row]
) -> tuple[list[str], Labels, Labels]:
    """What the judge and people said, where both did.

    For benchmarks that measure the judge, labels as the task spells them; for the others ``1`` for
    a full headline score and ``0``.

    Returns:
        Ids in the order of the rows, and each side's label by id.
    """
    judge: dict[str, str] = {}
    human: dict[str, str] = {}
    for row in rows:
        said, verdicts = benchmark.people_said(row), list(stored_verdicts(row).values())
        if said is not None and len(verdicts) == 1 and verdicts[0].label is not None:
            key = str(row.get(benchmark.item_id))
            human[key], judge[key] = said, full_label(verdicts[0])
    if people:
        given = human_scores(benchmark, rows, people)
        for score in benchmark.scores(rows):
            if score.value is not None and score.id in given:
                judge[score.id] = f"{score.value / benchmark.full_score:g}"
                human[score.id] = f"{given[score.id] / benchmark.full_score:g}"
    return list(judge), judge, human


def judge_agreement(
    benchmark: Benchmark, rows: Sequence[Row], people: Sequence[Row]
) -> dict[str, Any] | None:
    """Confusion and calibration of the judge against people.

    Returns:
        ``confusion`` (``labels, counts``, rows are people) and ``calibration`` (``None`` for a
        judge without confidences) as ``evaluation.report.pictures`` draws them; ``None`` if
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
    confidence = {
        str(row.get(benchmark.item_id)): next(iter(verdicts.values())).confidence
        for row in rows
        if len(verdicts := stored_verdicts(row)) == 1
    }
    stated = np.array([np.nan if confidence.get(k) is None else confidence[k] for k in ids], float)
    right = np.array([float(judge[key] == human[key]) for key in ids])
    calibration = None
    if not np.isnan(stated).all():
        calibration = {"after": reliability_table(calibration_columns(stated, right).sum(axis=0))}
    return {
        "confusion": {"labels": labels, "counts": counts.astype(int).tolist()},
        "calibration": calibration,
    }
