"""One report on one judge: how far its verdicts agree with people, and with what certainty."""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from evaluation import metrics
from evaluation.baselines import RULES, majority_verdicts, rule_verdicts
from evaluation.error_types import type_accuracies
from evaluation.intervals import RESAMPLES, mcnemar_p
from evaluation.measure import CORRECT, WRONG, Tally, measure
from evaluation.outcomes import Outcomes, full_label, gather, label_set
from evaluation.pairs.agreement import PAIR_LABELS, measure_pairs
from evaluation.pairs.position import order_effects, verbosity_effect
from evaluation.ranking.agreement import rank_answerers
from evaluation.report.markdown import render_markdown
from evaluation.slices import slice_metrics
from judging.records import atomic_write, write_json
from judging.types import LabelledExample, Verdict

PACKAGES = ("custos", "numpy", "scipy", "torch", "transformers", "peft")


def build_report(
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    *,
    seconds: float,
    command: str,
    references: Mapping[str, Sequence[Verdict]] | None = None,
    uncalibrated: Sequence[Verdict] | None = None,
    dataset_sha256: str | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> dict[str, Any]:
    """Compare a judge's verdicts with human labels.

    Intervals are 95 %, by resampling groups (questions where no group is given). Items without a
    label are neither right nor wrong: metrics are over scored items, ``coverage`` says how many
    those are, and ``accuracy_unscored_as_wrong`` is the accuracy over all items.

    Args:
        examples: What people said.
        verdicts: What the judge said, one per example in the same order.
        seconds: Wall time the judge took.
        command: The command that repeats this report.
        references: Other judges' verdicts on the same examples, by name, to set beside the rules.
        uncalibrated: The same judge's verdicts before calibration, to show what that changed.
        dataset_sha256: Hash of the data file.
        seed: Seed of the resamples.
        resamples: Number of resamples.

    Returns:
        Plain values ready for JSON, ``None`` where a metric does not exist; the keys are those of
        ``report.json``.

    Raises:
        CustosError: If there are no examples, or any verdicts do not line up with them.
    """
    others = dict(references or {})
    rivals = {**_baseline_verdicts(examples), **others}
    before = [] if uncalibrated is None else [uncalibrated]
    labels = label_set(examples, verdicts, *rivals.values(), *before)
    judge = gather(examples, verdicts, labels)
    total = Tally.of(judge).total()
    measured = measure(judge, resamples=resamples, seed=seed)
    report = {
        "n": len(examples),
        "questions": int(judge.clusters.max()) + 1,
        "coverage": measured["coverage"]["value"],
        "seconds": seconds,
        "items_per_second": len(examples) / seconds if seconds > 0 else None,
        "metrics": measured,
        "per_class": per_class(total),
        "error_types": type_accuracies(judge, resamples, seed),
        "pairs": _pairs(examples, verdicts, labels, resamples, seed),
        "confusion": {
            "labels": list(labels),
            "rows": "people",
            "columns": "judge",
            "counts": total.confusion.astype(int).tolist(),
            "unscored_per_row": np.bincount(
                judge.human[~judge.scored], minlength=len(labels)
            ).tolist(),
        },
        "slices": slice_metrics(examples, judge, resamples, seed),
        "baselines": {
            name: _beside(judge, gather(examples, rival, labels), resamples, seed)
            for name, rival in rivals.items()
        },
        "answerer_ranking": rank_answerers(
            judge, [_answerer(example) for example in examples], resamples, seed
        ),
        "calibration": _calibration(examples, judge, uncalibrated, labels),
        "statuses": dict(Counter(verdict.status for verdict in verdicts)),
        "truncated_input": sum(verdict.truncated_input for verdict in verdicts),
        "needs_review": sum(verdict.needs_review for verdict in verdicts),
        "judges": sorted({verdict.judge for verdict in verdicts if verdict.judge}),
        "dataset_sha256": dataset_sha256,
        "command": command,
        "seed": seed,
        "resamples": resamples,
        "versions": versions(),
    }
    cleaned: dict[str, Any] = without_nan(report)
    return cleaned


def write_report(report: dict[str, Any], out_dir: Path) -> None:
    """Write ``report.json``, ``report.md`` and the pictures that the report has figures for.

    Pictures: ``confusion.png`` always, ``reliability.png`` if the judge gave confidences,
    ``ranking.png`` if two or more answering systems are known.
    """
    from evaluation.report import pictures

    out_dir.mkdir(parents=True, exist_ok=True)
    drawn = pictures.draw_report(report, out_dir)
    with atomic_write(out_dir / "report.md") as file:
        file.write(render_markdown(report, drawn))
    write_json(out_dir / "report.json", report)


def per_class(total: Tally) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of every label, with how often people and the judge used it."""
    confusion = total.confusion
    precision, recall, f1 = (m(confusion) for m in (metrics.precision, metrics.recall, metrics.f1))
    return {
        label: {
            "people": int(confusion[i].sum()),
            "judge": int(confusion[:, i].sum()),
            "precision": float(precision[i]),
            "recall": float(recall[i]),
            "f1": float(f1[i]),
        }
        for i, label in enumerate(total.labels)
    }


def versions() -> dict[str, str]:
    """Python's and the installed packages' versions; a package that is absent is left out."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def without_nan(value: Any) -> Any:
    """Copy a JSON value with ``None`` for every number that is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return value


def _baseline_verdicts(examples: Sequence[LabelledExample]) -> dict[str, list[Verdict]]:
    """Constants and rules; the rules only where people grade answers as Correct or Wrong."""
    if not examples:
        return {}
    baselines = {"majority_label": majority_verdicts(examples)}
    used = {full_label(example) for example in examples}
    if used <= {CORRECT, "Partial", WRONG[0]}:
        baselines |= {name: rule_verdicts(rule, examples) for name, rule in RULES.items()}
    return baselines


def _beside(judge: Outcomes, other: Outcomes, resamples: int, seed: int) -> dict[str, Any]:
    """Another judge's metrics, and McNemar's test against the judge where both gave a label."""
    both = judge.scored & other.scored
    judge_only = int(np.sum(both & judge.right & ~other.right))
    other_only = int(np.sum(both & ~judge.right & other.right))
    return {
        **measure(other, resamples=resamples, seed=seed),
        "error_types": type_accuracies(other, resamples, seed),
        "mcnemar_p": mcnemar_p(judge_only, other_only),
        "judge_only_right": judge_only,
        "baseline_only_right": other_only,
        "n_both_scored": int(both.sum()),
    }


def _calibration(
    examples: Sequence[LabelledExample],
    judge: Outcomes,
    uncalibrated: Sequence[Verdict] | None,
    labels: tuple[str, ...],
) -> dict[str, Any] | None:
    before = {} if uncalibrated is None else {"before": gather(examples, uncalibrated, labels)}
    stages = {
        stage: _reliability(outcomes)
        for stage, outcomes in {**before, "after": judge}.items()
        if not np.isnan(outcomes.confidence).all()
    }
    return stages or None


def _reliability(outcomes: Outcomes) -> dict[str, Any]:
    total = Tally.of(outcomes).total()
    count, confidence, right = total.bins[total.bins[:, 0] > 0].T  # three of [bins in use]
    return {
        "ece": float(metrics.expected_calibration_error(total.bins)),
        "brier": float(total.brier),
        "nll": float(total.nll),
        "bins": [
            {"n": int(n), "confidence": c / n, "accuracy": r / n}
            for n, c, r in zip(count.tolist(), confidence.tolist(), right.tolist(), strict=True)
        ],
    }


def _pairs(
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    labels: Sequence[str],
    resamples: int,
    seed: int,
) -> dict[str, Any] | None:
    """What is asked of pairwise verdicts; ``None`` where these are of another kind."""
    if not (set(labels) <= set(PAIR_LABELS) and all(len(e.responses) == 2 for e in examples)):
        return None
    return {
        "measures": measure_pairs(examples, verdicts, resamples, seed),
        "order": order_effects(examples, verdicts, resamples, seed),
        "length": verbosity_effect(examples, verdicts, resamples, seed),
    }


def _answerer(example: LabelledExample) -> str | None:
    answerer = example.metadata.get("answerer")
    return None if answerer is None else str(answerer)
