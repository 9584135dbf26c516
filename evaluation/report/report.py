"""One report on one judge: how far its verdicts agree with people, and with what certainty."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from evaluation import metrics
from evaluation.baselines import (
    OVERLAP,
    PAIR_RULES,
    QUICK_RULES,
    SENTENCES,
    majority_verdicts,
    measure_by_task,
    overlap_verdicts,
    rule_verdicts,
    sentence_verdicts,
)
from evaluation.calibration_error import chance_band, reliability_table, slope, squared_error
from evaluation.correction.judged import error_rates
from evaluation.correction.scores import corrected_rate
from evaluation.estimate import paired_accuracies, share, without_nan
from evaluation.intervals import RESAMPLES, Floats, Mask
from evaluation.measure import (
    ACCURACIES,
    CORRECT,
    WRONG,
    Tally,
    TallyDraws,
    measure,
    measure_error_types,
    metrics_for,
    slice_metrics,
)
from evaluation.outcomes import (
    MAX_IDS,
    Outcomes,
    check_scored,
    full_label,
    gather,
    label_set,
    unscored_reasons,
)
from evaluation.pairs.agreement import (
    PAIR_LABELS,
    measure_pairs,
    order_effects,
    self_consistency,
    verbosity_effect,
)
from evaluation.people.annotators import EPSILON, measure_people, second_annotator
from evaluation.ranking.bradley_terry import answerer_of, rank_answerers
from evaluation.ranking.favour import favour
from evaluation.report.cautions import cautions
from evaluation.report.markdown import render_markdown
from judging.files.atomic import write_text
from judging.files.questions import minilm
from judging.files.records import write_json
from judging.judge.notes import is_in_untrained_mode
from judging.types import LabelledExample, Verdict

PACKAGES = ("custos", "numpy", "scipy", "torch", "transformers", "peft")
MAX_POINTS = 100
"""Most points of a curve."""


def build_report(
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    *,
    seconds: float | None,
    command: str,
    references: Mapping[str, Sequence[Verdict]] | None = None,
    uncalibrated: Sequence[Verdict] | None = None,
    dataset_sha256: str | None = None,
    seen: Mapping[str, Any] | None = None,
    risk: float | None = None,
    drawn: Mapping[str, Sequence[Sequence[str | None]]] | None = None,
    epsilon: float = EPSILON,
    family: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare a judge's verdicts with human labels.

    Intervals are 95 %, by groups (questions where no group is given). Items without a label are
    neither right nor wrong: metrics are over the scored items, ``coverage`` is their share, and
    ``accuracy_unscored_as_wrong`` is the accuracy over all items. The result holds plain values
    ready for JSON, ``None`` where a metric does not exist; the keys are those of ``report.json``.

    Raise ``NothingScored`` if no row got a label, and ``CustosError`` if there are no examples,
    people gave labels that are not declared, or any verdicts do not line up with the examples.

    Args:
        examples: Examples with people's labels.
        verdicts: The judge's verdicts, one per example in the same order.
        seconds: Wall time of the judge; ``None`` where it is not known.
        command: The command that repeats this report.
        references: Other judges' verdicts on the same examples, by name, to set beside the rules.
        uncalibrated: The same judge's verdicts before calibration, to show what calibration does.
        dataset_sha256: Hash of the data file.
        seen: What the judge's run says of this data (:func:`evaluation.report.evaluate.seen_data`).
        risk: Stated risk that the verdicts' ``needs_review`` was set at.
        drawn: Labels that judges gave when they were drawn anew: name, example, run.
        epsilon: Margin of the alternative annotator test.
        family: Family of the judge's backbone, as ``family_of`` says.
        seed: Seed of the resamples.
    """
    check_scored(verdicts)
    rivals = {**baseline_verdicts(examples), **(references or {})}
    before = [] if uncalibrated is None else [uncalibrated]
    labels = label_set(examples, verdicts, *rivals.values(), *before)
    judge = gather(examples, verdicts, labels)
    total = TallyDraws.of(judge).total
    measured = measure(judge, seed=seed)
    unscored = np.bincount(judge.human[~judge.scored], minlength=len(labels))
    answerers = [answerer_of(example) for example in examples]
    pairs = None
    if set(labels) <= set(PAIR_LABELS) and all(len(each.responses) == 2 for each in examples):
        parts = {"measures": measure_pairs, "order": order_effects, "length": verbosity_effect}
        pairs = {name: measured_by(examples, verdicts, seed) for name, measured_by in parts.items()}
    report: dict[str, Any] = {
        "n": len(examples),
        "questions": int(judge.clusters.max()) + 1,
        "questions_scored": len(np.unique(judge.clusters[judge.scored])),
        "coverage": measured["coverage"]["value"],
        "seconds": seconds,
        "items_per_second": len(examples) / seconds if seconds else None,
        "metrics": measured,
        "per_class": per_class(total),
        "error_types": measure_error_types(judge),
        "error_rates": error_rates(examples, verdicts),
        "pairs": pairs,
        "self_consistency": {
            name: self_consistency(runs, [each.group or each.asked for each in examples])
            for name, runs in (drawn or {}).items()
        },
        "confusion": {
            "labels": list(judge.labels),
            "rows": "people",
            "columns": "judge",
            "counts": total.confusion.astype(int).tolist(),
            "unscored_per_row": unscored.tolist(),
        },
        "slices": slice_metrics(examples, judge, seed),
        "tasks": measure_by_task(examples, verdicts, rivals, seed),
        "baselines": {
            name: _baseline(judge, gather(examples, rival, labels), seed)
            for name, rival in rivals.items()
        },
        "annotators": measure_people(examples, judge, rivals, epsilon, seed),
        "second_annotator": second_annotator(examples, judge),
        "answerer_ranking": rank_answerers(judge, answerers, seed),
        "favour": favour(judge, answerers, family),
        "calibration": _calibration(examples, judge, uncalibrated, labels, seed),
        "risk_coverage": risk_coverage(judge),
        "abstention": risk
        and abstention(judge, np.array([v.needs_review for v in verdicts]), risk),
        "statuses": dict(Counter(verdict.status for verdict in verdicts)),
        "unscored": unscored_reasons(verdicts),
        "truncated_input": sum(verdict.truncated_input for verdict in verdicts),
        "untrained_mode": sum(map(is_in_untrained_mode, verdicts)),
        "unequally_drawn": _unequally_drawn(examples, judge),
        "drawn_in_part": _drawn_in_part(examples),
        "needs_review": sum(verdict.needs_review for verdict in verdicts),
        "judge_names": sorted({v.judge_name for v in verdicts if v.judge_name}),
        "judges": sorted({verdict.judge for verdict in verdicts if verdict.judge}),
        "dataset_sha256": dataset_sha256,
        "seen_data": seen,
        "command": command,
        "seed": seed,
        "resamples": RESAMPLES,
        "versions": versions(),
    }
    cleaned: dict[str, Any] = without_nan(report)
    return {**cleaned, "cautions": cautions(cleaned)}


def _unequally_drawn(examples: Sequence[LabelledExample], judge: Outcomes) -> dict[str, Any] | None:
    """Compute the ``lowest`` and ``highest`` chance of being drawn, and a weighted accuracy.

    ``None`` where not all rows have a known chance or all have the same.
    """
    chances = np.array([example.sampling_probability or np.nan for example in examples])
    if np.isnan(chances).any() or np.ptp(chances) == 0:
        return None
    lowest, highest = float(chances.min()), float(chances.max())
    weighted, chances, judge = None, chances[judge.scored], judge.take(judge.scored)
    if len(np.unique(judge.clusters)) > 1:
        right = judge.right.astype(np.float64)
        found = corrected_rate(right, right, probabilities=chances, groups=judge.clusters)
        weighted = found.labelled._asdict()
    return {"lowest": lowest, "highest": highest, "accuracy": weighted}


def _drawn_in_part(examples: Sequence[LabelledExample]) -> dict[str, Any] | None:
    """Count the rows with a known chance of being drawn (``n``); list ``ids`` of the first others.

    ``None`` where all rows have one, or none has.
    """
    others = [each.id for each in examples if each.sampling_probability is None]
    known = len(examples) - len(others)
    return {"n": known, "ids": others[:MAX_IDS]} if known and others else None


def write_report(report: dict[str, Any], out_dir: Path) -> None:
    """Write ``report.json``, ``report.md`` and the pictures that the report has figures for."""
    from evaluation.report import plots

    out_dir.mkdir(parents=True, exist_ok=True)
    names = plots.draw_report(report, out_dir)
    write_text(out_dir / "report.md", render_markdown(report, names))
    write_json(out_dir / "report.json", report)


def per_class(total: Tally) -> dict[str, dict[str, float]]:
    """Compute precision, recall and F1 of every label, and count its uses by either side."""
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
    """Look up the versions of Python and of the installed packages among ``PACKAGES``."""
    installed = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def abstention(outcomes: Outcomes, needs_review: Mask, risk: float) -> dict[str, Any]:
    """Measure the verdicts that are kept at a stated risk, those that need no review.

    ``kept`` is their share of all items, ``error`` the share of wrong ones among them. ``level`` is
    ``shown`` if the whole interval of the error is below the ``risk``, ``exceeded`` if it is above,
    and else ``not shown``, or ``nothing kept``.
    """
    kept = outcomes.scored & ~needs_review
    of_all = share(kept, None, outcomes.clusters)
    error = share(~outcomes.right, kept, outcomes.clusters)
    if not error["n"]:
        level = "nothing kept"
    elif error["high"] < risk:
        level = "shown"
    else:
        level = "exceeded" if error["low"] > risk else "not shown"
    return {"risk": risk, "kept": of_all, "error": error, "level": level}


def risk_coverage(outcomes: Outcomes) -> dict[str, Any] | None:
    """Measure the error among the most confident verdicts, by the share of verdicts kept.

    ``coverage`` and ``error`` are at most :data:`MAX_POINTS` points of the curve; ``aurc`` is the
    area under the whole curve, and ``aurc_best`` that of the same verdicts if every wrong one came
    last. ``None`` without confidences.
    """
    has_confidence = ~np.isnan(outcomes.confidence)
    if not has_confidence.any():
        return None
    confidence = outcomes.confidence[has_confidence]
    wrong = ~outcomes.right[has_confidence]
    error = _error_by_rank(confidence, wrong)
    points = np.unique(np.linspace(0, len(error) - 1, MAX_POINTS).round().astype(int))
    return {
        "n": len(error),
        "coverage": ((points + 1) / len(error)).tolist(),
        "error": error[points].tolist(),
        "aurc": float(error.mean()),
        "aurc_best": float(_error_by_rank((~wrong).astype(np.float64), wrong).mean()),
    }


def _error_by_rank(confidence: Floats, wrong: Mask) -> Floats:
    """Compute the error among the ``k`` most confident verdicts, for every ``k``; ties share it."""
    _, group = np.unique(-confidence, return_inverse=True)
    shares = np.bincount(group, weights=wrong) / np.bincount(group)
    return np.asarray(np.cumsum(shares[np.sort(group)]) / np.arange(1, len(wrong) + 1))


def baseline_verdicts(examples: Sequence[LabelledExample]) -> dict[str, list[Verdict]]:
    """Give the verdicts of a constant, and of rules and regressions where labels are theirs."""
    if not examples:
        return {}
    baselines = {"majority_label": majority_verdicts(examples)}
    is_quick = {full_label(example) for example in examples} <= {CORRECT, "Partial", WRONG[0]}
    is_pairs = all(len(example.responses) == 2 for example in examples)
    rules = {**(QUICK_RULES if is_quick else {}), **(PAIR_RULES if is_pairs else {})}
    baselines |= {name: rule_verdicts(rule, examples) for name, rule in rules.items()}
    if (is_quick or is_pairs) and (by_overlap := overlap_verdicts(examples)):
        baselines[OVERLAP] = by_overlap
    if is_quick and (embed := minilm()) and (by_sentence := sentence_verdicts(examples, embed)):
        baselines[SENTENCES] = by_sentence
    return baselines


def _baseline(judge: Outcomes, baseline: Outcomes, seed: int) -> dict[str, Any]:
    """Measure a baseline on the rows that the judge labels, and compare the two.

    ``gain`` is the judge's accuracy less the baseline's on the rows that both label, and ``p`` that
    of the test by questions (:func:`evaluation.intervals.sign_flip_p`).
    """
    judge, baseline = judge.take(judge.scored), baseline.take(judge.scored)
    both = judge.scored & baseline.scored
    of_judge, of_baseline = judge.right[both], baseline.right[both]
    paired = paired_accuracies(of_judge.tolist(), of_baseline.tolist(), judge.clusters[both], seed)
    return {
        **measure(baseline, seed=seed),
        "error_types": measure_error_types(baseline),
        "gain": paired["difference"],
        "p": paired["p"],
        "judge_only_right": int((of_judge & ~of_baseline).sum()),
        "baseline_only_right": int((of_baseline & ~of_judge).sum()),
        "n_both_scored": int(both.sum()),
    }


def _calibration(
    examples: Sequence[LabelledExample],
    judge: Outcomes,
    uncalibrated: Sequence[Verdict] | None,
    labels: tuple[str, ...],
    seed: int,
) -> dict[str, Any] | None:
    """Measure what calibration changes; ``None`` without confidences.

    It changes labels, too: the accuracies before it are those that training alone gives.
    """
    stages = {} if uncalibrated is None else {"before": gather(examples, uncalibrated, labels)}
    accuracies = tuple(name for name in ACCURACIES if name in metrics_for(labels))
    measured: dict[str, Any] = {}
    for stage, outcomes in {**stages, "after": judge}.items():
        if np.isnan(outcomes.confidence).all():
            continue
        total = TallyDraws.of(outcomes).total
        figures = measure(outcomes, (*accuracies, "overconfidence"), seed)
        overconfidence = figures.pop("overconfidence")
        rows = outcomes.confidence, outcomes.right, outcomes.clusters
        measured[stage] = {
            **figures,
            **reliability_table(total.calibration),
            "overconfidence": overconfidence,
            "squared_error": squared_error(*rows),
            "slope": slope(*rows),
            "chance": chance_band(*rows, seed=seed),
            "brier": float(total.brier),
            "nll": float(total.nll),
        }
    return measured or None
