"""A second person's labels: how far people agree with each other, and the judge with each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.measure import METRICS, TallyDraws, paired_difference
from evaluation.outcomes import Outcomes, full_label, gather
from judging.types import LabelledExample, Verdict

COMPARED = ("accuracy", "kappa")


def compare_annotators(
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    labels: Sequence[str],
    seed: int = 0,
) -> dict[str, Any] | None:
    """Measure two people and the judge against each other.

    All figures but ``people_all`` are over the rows that have a second label and a label of the
    judge, so that they can be compared. Differences are paired: one resample of questions draws the
    same rows for both sides.

    Args:
        examples: Examples; those without a second label are left out.
        verdicts: The judge's verdicts, one per example in the same order.
        labels: Every label that occurs.
        seed: Seed of the resamples.

    Returns:
        ``n_second`` (rows with a second label), and with ``accuracy`` and ``kappa`` each:
        ``people_all`` (both people, on all rows with a second label), ``people`` (both people),
        ``judge_first`` and ``judge_second`` (the judge and either person), ``second_minus_first``
        (of the judge's agreements) and ``judge_minus_second`` (the judge's agreement with the first
        person less the second person's). ``sides_with`` says how often the judge gives the label of
        the ``first``, of the ``second`` or of ``neither`` where the two differ. ``None`` without
        second labels, or without a label of the judge beside one.
    """
    rows = np.array([example.second_label is not None for example in examples])
    if not rows.any():
        return None
    people = gather(examples, _verdicts_of_second(examples), labels)
    judge_first = gather(examples, verdicts, labels)
    by_second = [
        example.model_copy(update={"label": example.second_label, "error_type": None})
        if example.second_label is not None
        else example
        for example in examples
    ]
    judge_second = gather(by_second, verdicts, labels)
    common = rows & judge_first.scored
    if not common.any():
        return None
    draws = {
        name: TallyDraws.of(outcomes.take(common), seed)
        for name, outcomes in (
            ("people", people),
            ("judge_first", judge_first),
            ("judge_second", judge_second),
        )
    }
    return {
        "n_second": int(rows.sum()),
        "people_all": _estimates(TallyDraws.of(people.take(rows), seed)),
        **{name: _estimates(of_pair) for name, of_pair in draws.items()},
        "second_minus_first": _differences(draws["judge_first"], draws["judge_second"]),
        "judge_minus_second": _differences(draws["people"], draws["judge_first"]),
        "sides_with": _sides(people.take(common), judge_first.take(common)),
    }


def side_of_judge(example: LabelledExample, verdict: Verdict) -> str:
    """Return whose label the judge gives: ``first``, ``second``, ``both`` or ``neither``.

    Return an empty text without a second label or without a label of the judge.
    """
    if example.second_label is None or verdict.label is None:
        return ""
    label = full_label(verdict)
    with_first, with_second = label == full_label(example), label == example.second_label
    if with_first:
        return "both" if with_second else "first"
    return "second" if with_second else "neither"


def _verdicts_of_second(examples: Sequence[LabelledExample]) -> list[Verdict]:
    return [
        Verdict(id=example.id, status="abstain")
        if example.second_label is None
        else Verdict(id=example.id, status="scored", label=example.second_label)
        for example in examples
    ]


def _estimates(draws: TallyDraws) -> dict[str, Any]:
    return {name: draws.estimate(METRICS[name]) for name in COMPARED}


def _differences(a: TallyDraws, b: TallyDraws) -> dict[str, Any]:
    """Return B minus A on the same rows, with intervals over the same resamples."""
    return {
        name: {**paired_difference(METRICS[name], a, b), "n": int(a.total.scored)}
        for name in COMPARED
    }


def _sides(people: Outcomes, judge: Outcomes) -> dict[str, int]:
    """Count whom the judge sides with where the two people differ."""
    differ = people.human != people.predicted
    first, second = judge.predicted == people.human, judge.predicted == people.predicted
    return {
        "first": int((differ & first).sum()),
        "second": int((differ & second).sum()),
        "neither": int((differ & ~first & ~second).sum()),
    }
