"""A judge on each of its tasks, beside graders that need no training, on the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.comparisons.paired import paired_accuracies
from evaluation.declared_labels import label_set
from evaluation.measure import measure
from evaluation.outcomes import full_label, gather
from judging.tasks import get_task
from judging.types import LabelledExample, Verdict
from judging.verdicts.build import RULES, verdict_of_rules

TASK_METRICS = ("accuracy", "kappa", "macro_f1", "ece")
RULES_NAME = "benchmark_rules"
"""Name of a benchmark's own rules among the rivals."""
VARIANT_MAJORITY = "majority_by_variant"
TASK_RIVALS = (RULES_NAME, VARIANT_MAJORITY)
"""Rivals that a judge of a task should beat: the others are measured over all rows together."""


def measure_by_task(
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    rivals: Mapping[str, Sequence[Verdict]],
    seed: int = 0,
) -> dict[str, Any]:
    """Measure a judge on every task apart.

    Args:
        examples: Examples with people's labels.
        verdicts: The judge's verdicts in the same order.
        rivals: Other verdicts on the same examples by name. Those of :data:`TASK_RIVALS` are used.
        seed: Seed of the resamples.

    Returns:
        Task to ``n``, the metrics and ``rivals``: name to ``accuracy`` and ``gain`` (the judge's
        accuracy minus the rival's), rows without a label being wrong for both; and ``decided``, the
        share of rows that the rival labels.
    """
    beside = {**rivals, VARIANT_MAJORITY: _variant_majority(examples)}
    measured: dict[str, Any] = {}
    for task in sorted({example.task for example in examples}):
        rows = [index for index, example in enumerate(examples) if example.task == task]
        of_task = [examples[index] for index in rows]
        given = {name: [beside[name][i] for i in rows] for name in TASK_RIVALS if name in beside}
        mine = [verdicts[index] for index in rows]
        labels = label_set(of_task, mine, *given.values())
        judge = gather(of_task, mine, labels)
        compared = {}
        for name, of_rival in given.items():
            rival = gather(of_task, of_rival, labels)
            if rival.scored.any():
                paired = paired_accuracies(
                    judge.right.tolist(), rival.right.tolist(), judge.clusters, seed
                )
                compared[name] = {
                    "accuracy": paired["second"],
                    "gain": paired["difference"],
                    "decided": float(rival.scored.mean()),
                }
        measured[task] = {
            "n": len(rows),
            **measure(judge, TASK_METRICS, seed),
            "rivals": compared,
        }
    return measured


def verdicts_of_rules(examples: Sequence[LabelledExample]) -> list[Verdict] | None:
    """Return the verdicts of the rules of each example's task.

    Returns:
        One verdict per example; ``None`` if no task among them has rules.
    """
    if not any(get_task(example.task).has_rules for example in examples):
        return None
    return [
        verdict_of_rules(example)
        if get_task(example.task).has_rules
        else Verdict(id=example.id, status="abstain", judge=RULES)
        for example in examples
    ]


def _variant_majority(examples: Sequence[LabelledExample]) -> list[Verdict]:
    """Give every example the most frequent label of its task's variant."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for example in examples:
        counts.setdefault((example.task, example.variant), Counter())[full_label(example)] += 1
    return [
        Verdict(
            id=example.id,
            status="scored",
            label=counts[example.task, example.variant].most_common(1)[0][0],
            judge="majority",
        )
        for example in examples
    ]
