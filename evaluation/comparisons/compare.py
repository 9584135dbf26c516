"""Two judges on the same items: which is closer to people, by how much, and which is no worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evaluation.estimate import LEVEL, UNBOUNDED, lowest_difference, mean, without_nan
from evaluation.intervals import Mask, holm, sign_flip_p
from evaluation.measure import METRICS, TallyDraws, divisions, paired_difference
from evaluation.outcomes import (
    Outcomes,
    full_label,
    gather,
    label_set,
    load_evaluation,
)
from evaluation.people.agreement import gather_people
from evaluation.people.annotators import SMALLEST, advantage_by_row, duels
from evaluation.ranking.bradley_terry import answerer_of
from evaluation.ranking.favour import favour_change
from evaluation.report.cautions import few_questions
from evaluation.report.sentences import FINDINGS, favoured
from evaluation.report.text import markdown_table, number, p_value, with_interval
from judging.errors import CustosError, FieldError
from judging.types import LabelledExample, Verdict

MIN_COMMON = 20
COMPARED = (
    *("accuracy", "kappa", "mcc", "macro_f1", "fpr"),
    *("ece", "overconfidence", "brier", "nll"),
)
PEOPLE_NAMES = {
    "agreement": "agreement with a person",
    "advantage": "as near to people as a person",
    "cross_entropy": "cross-entropy, shares of people",
}


@dataclass(frozen=True)
class SharedItems:
    """The items of two evaluations that both have, with the verdicts of both judges."""

    examples: Sequence[LabelledExample]
    verdicts_a: Sequence[Verdict]
    verdicts_b: Sequence[Verdict]
    n_a: int
    """Items of the first evaluation, shared or not."""
    n_b: int

    @property
    def outcomes(self) -> tuple[Outcomes, Outcomes]:
        """Line up people's labels with those of each judge, over one set of labels."""
        labels = label_set(self.examples, self.verdicts_a, self.verdicts_b)
        return (
            gather(self.examples, self.verdicts_a, labels),
            gather(self.examples, self.verdicts_b, labels),
        )


def read_shared(first: Path, second: Path, min_common: int = MIN_COMMON) -> SharedItems:
    """Read the items that two evaluation folders share; errors as :func:`compare_evaluations`."""
    a, b = _read_by_id(first), _read_by_id(second)
    ids = [name for name in a if name in b]
    if len(ids) < min_common:
        raise CustosError(
            f"{first} ({len(a)} items) and {second} ({len(b)} items) share {len(ids)} ids, fewer "
            f"than {min_common}: evaluate both judges on the same data file"
        )
    for name in ids:
        same = [(e.question, e.responses, full_label(e)) for e in (a[name][0], b[name][0])]
        if same[0] != same[1]:
            raise CustosError(
                f"id '{name}' is not the same item in both folders (question, response or human "
                "label differ): evaluate both judges on the same data file"
            )
    examples, of_a = zip(*(a[name] for name in ids), strict=True)
    return SharedItems(examples, of_a, [b[name][1] for name in ids], len(a), len(b))


def compare_evaluations(
    first: Path, second: Path, *, min_common: int = MIN_COMMON, seed: int = 0
) -> dict[str, Any]:
    """Compare the folders of two judges, A and B, on the items that they share.

    Metrics are over the items that both judges scored; those on probabilities are over the ones of
    these for which both gave some. Each difference is B minus A, and its 95 % interval resamples
    questions for both judges at once. ``p`` is that of the test by questions, ``questions`` the
    number of those that both scored. The result holds plain values ready for JSON.

    Raise ``CustosError`` if a folder is incomplete, ids are missing or repeated, a label is not
    declared, an id means different items in the two, or too few items are shared or scored by both.
    """
    shared = read_shared(first, second, min_common)
    judge_a, judge_b = shared.outcomes
    ids = [example.id for example in shared.examples]
    both = judge_a.scored & judge_b.scored
    if both.sum() < min_common:
        raise CustosError(
            f"{first} and {second}: only {both.sum()} shared items have a label from both judges, "
            f"fewer than {min_common}"
        )
    people = _compare_with_people(shared.examples, judge_a, judge_b, seed)
    answerers = [answerer_of(example) for example in compress(shared.examples, both)]
    a, b, scored_ids = judge_a.take(both), judge_b.take(both), np.array(ids)[both]
    # Probabilities count where both judges gave some.
    unlike = np.isnan((a.probabilities + b.probabilities).sum(axis=1, keepdims=True))
    unsure = np.isnan(a.confidence + b.confidence)
    # The clusters are the same, so one seed resamples both judges alike.
    draws_a, draws_b = (
        TallyDraws.of(
            replace(
                judge,
                probabilities=np.where(unlike, np.nan, judge.probabilities),
                confidence=np.where(unsure, np.nan, judge.confidence),
            ),
            seed,
        )
        for judge in (a, b)
    )
    only_a, only_b = a.right & ~b.right, ~a.right & b.right
    comparison = {
        "a": str(first),
        "b": str(second),
        "judges": {
            name: sorted({verdict.judge for verdict in verdicts if verdict.judge})
            for name, verdicts in (("a", shared.verdicts_a), ("b", shared.verdicts_b))
        },
        "n_a": shared.n_a,
        "n_b": shared.n_b,
        "n_common": len(ids),
        "n_scored_a": int(judge_a.scored.sum()),
        "n_scored_b": int(judge_b.scored.sum()),
        "n_both_scored": int(both.sum()),
        "questions": len(np.unique(a.clusters)),
        "seed": seed,
        "metrics": {
            name: {
                "a": float(METRICS[name].value(draws_a.total)),
                "b": float(METRICS[name].value(draws_b.total)),
                "difference": paired_difference(METRICS[name], draws_a, draws_b),
            }
            for name in COMPARED
        },
        "p": sign_flip_p(b.right.astype(np.float64) - a.right, a.clusters),
        "n_both_right": int((a.right & b.right).sum()),
        "n_neither_right": int((~a.right & ~b.right).sum()),
        "n_only_a_right": int(only_a.sum()),
        "n_only_b_right": int(only_b.sum()),
        "n_labels_differ": int((a.predicted != b.predicted).sum()),
        "only_a_right": scored_ids[only_a].tolist(),
        "only_b_right": scored_ids[only_b].tolist(),
        "favour": favour_change(a, b, answerers),
        "annotators": people,
    }
    cleaned: dict[str, Any] = without_nan(comparison)
    return cleaned


def render_comparison(comparison: Mapping[str, Any]) -> str:
    """Lay out a comparison as text: tables, two sentences, and a caution if it needs one."""

    def metric_table(heading: str, metrics: Mapping[str, Any]) -> str:
        rows = [
            (name, number(metric["a"]), number(metric["b"]), with_interval(metric["difference"]))
            for name, metric in metrics.items()
        ]
        return markdown_table((heading, "A", "B", "B - A, 95 % interval"), rows)

    lines = [
        f"A  {comparison['a']}",
        f"B  {comparison['b']}",
        "",
        f"{comparison['n_common']} items in common, {comparison['n_both_scored']} with a label "
        f"from both (A {comparison['n_scored_a']}, B {comparison['n_scored_b']}) on "
        f"{comparison['questions']} questions.",
        "",
        metric_table("metric", comparison["metrics"]),
        "",
    ]
    if people := comparison["annotators"]:
        metrics = {title: people[name] for name, title in PEOPLE_NAMES.items() if people[name]}
        lines += [metric_table(f"people, {people['n']} rows of two or more", metrics), ""]
    lines.append(
        f"Only A right: {comparison['n_only_a_right']}. Only B right: "
        f"{comparison['n_only_b_right']}. Labels differ: {comparison['n_labels_differ']}. "
        f"p by questions {p_value(comparison['p'])}."
    )
    for finding, verb in FINDINGS.items():
        if comparison["favour"] and (named := favoured(comparison["favour"], finding)):
            lines.append(f"Beside the other systems, B {verb} {named} more than A does.")
    if caution := few_questions(comparison["questions"]):
        lines.append(f"caution: {caution}")
    return "\n".join(lines)


def _read_by_id(folder: Path) -> dict[str, tuple[LabelledExample, Verdict]]:
    items: dict[str, tuple[LabelledExample, Verdict]] = {}
    examples, verdicts = load_evaluation(folder)
    for row, (example, verdict) in enumerate(zip(examples, verdicts, strict=True), 1):
        location = f"{folder} row {row}"
        if not example.id:
            raise FieldError("id", "is missing; give every row of the data one", location)
        if example.id in items:
            raise FieldError("id", f"'{example.id}' occurs twice; ids must be unique", location)
        items[example.id] = (example, verdict)
    return items


def _compare_with_people(
    examples: Sequence[LabelledExample], a: Outcomes, b: Outcomes, seed: int
) -> dict[str, Any] | None:
    """Compare two judges on the rows that two people or more labelled; ``None`` without any.

    The result has ``n`` (rows that both judges labelled too), ``questions``, and the figures of
    :data:`PEOPLE_NAMES`; ``None`` stands for what does not exist.
    """
    people = gather_people(examples, a.labels)
    if people is None:
        return None
    common = (people.num_people >= 2) & a.scored & b.scored
    if not common.any():
        return None
    people, judges = people.take(common), (a.take(common), b.take(common))
    shares, clusters = people.counts / people.num_people[:, None], people.clusters
    places = np.arange(len(shares))
    figures = {"agreement": ([shares[places, judge.predicted] for judge in judges], clusters)}
    tested = [
        [duel for duel in duels(people, judge.predicted) if duel.is_tested] for judge in judges
    ]
    if tested[0]:
        (first_by_row, rows), (second_by_row, _) = (
            advantage_by_row(of_judge, len(shares)) for of_judge in tested
        )
        figures["advantage"] = [first_by_row, second_by_row], rows
    known = ~np.isnan(np.sum([judge.probabilities.sum(axis=1) for judge in judges], axis=0))
    if known.any():
        chances = [np.maximum(judge.probabilities, SMALLEST) for judge in judges]
        entropies = [-np.sum(shares * np.log(each), axis=1)[known] for each in chances]
        figures["cross_entropy"] = entropies, clusters[known]
    compared: dict[str, Any] = {"n": int(common.sum()), "questions": len(np.unique(clusters))}
    compared |= {"advantage": None, "cross_entropy": None}
    for name, ((of_a, of_b), of_rows) in figures.items():
        bounds = UNBOUNDED if name == "cross_entropy" else (-1.0, 1.0)
        apart = of_b - of_a
        difference = mean(apart, None, of_rows, seed, bounds=bounds, is_difference=True)
        both = {"a": float(of_a.mean()), "b": float(of_b.mean()), "difference": difference}
        compared[name] = both
    return compared


MARGIN = 0.02
"""Loss of accuracy that does not matter."""
Outcome = Literal["no worse", "worse", "not enough rows"]


@dataclass(frozen=True)
class Check:
    """The accuracies of two judges on one part of the items that they share."""

    name: str
    n: int
    a: float
    b: float
    lowest: float
    """Lower end of the one-sided 95 % interval of B minus A; -1 for a single question."""
    visible: float
    """Smallest loss that these rows would show in four of five cases; 1 for a single question."""
    adjusted_p: float
    """p-value of a loss, corrected for the number of all checks by Holm's method."""
    margin: float

    @property
    def outcome(self) -> Outcome:
        """Decide what is shown of the second judge.

        A loss that is shown to be within the margin does not matter.
        """
        if self.lowest > -self.margin:
            return "no worse"
        return "worse" if self.adjusted_p <= LEVEL else "not enough rows"

    def __str__(self) -> str:
        return (
            f"{self.outcome:<15}  {self.name}: A {number(self.a)}, B {number(self.b)}, n {self.n}, "
            f"B - A above {number(self.lowest)}, p of a loss {p_value(self.adjusted_p)}; a loss is "
            f"visible from {number(self.visible)} on"
        )


def gate(
    first: Path, second: Path, *, margin: float = MARGIN, min_common: int = MIN_COMMON
) -> list[Check]:
    """Check whether judge B is worse than judge A, over all shared items and then on their parts.

    The parts are data sets, people's labels and the divisions of the report's slices. An item
    without a label counts as not right, so that a judge cannot pass by answering less. A judge is
    no worse where the one-sided interval of the difference leaves out a loss of the margin
    (:func:`lowest_difference`), and worse where the sign-flip test of a loss is significant after
    Holm's correction for all checks. Errors are those of :func:`compare_evaluations`.
    """
    shared = read_shared(first, second, min_common)
    judges = shared.outcomes
    a, b = (outcomes.right.astype(np.float64) for outcomes in judges)
    clusters = judges[0].clusters
    parts = list(_parts(shared.examples))
    p_values = []
    for _, part in parts:
        is_loss = (b - a)[part].sum() < 0
        p = sign_flip_p((b - a)[part], clusters[part]) / 2 if is_loss else 1.0  # one-sided
        p_values.append(p)
    checks = []
    for (name, part), adjusted in zip(parts, holm(p_values), strict=True):
        accuracies = float(a[part].mean()), float(b[part].mean())
        bounds = lowest_difference((b - a)[part], clusters[part])
        checks.append(Check(name, int(part.sum()), *accuracies, *bounds, adjusted, margin))
    return checks


def gate_outcome(checks: Sequence[Check]) -> Outcome:
    """Combine checks into one outcome, the first of them being of all items.

    Worse anywhere is worse. Parts of a file seldom have the rows to be shown no worse, so that this
    is asked of all items alone.
    """
    if any(check.outcome == "worse" for check in checks):
        return "worse"
    return checks[0].outcome


def _parts(examples: Sequence[LabelledExample]) -> Iterator[tuple[str, Mask]]:
    """Yield the name and the mask of all items, then of every part of them that is not all."""
    yield "all", np.ones(len(examples), dtype=bool)
    named: list[tuple[str, list[str | None]]] = [
        ("data set", [example.source or None for example in examples]),
        ("people's label", [full_label(example) for example in examples]),
        *((name.replace("_", " "), parts) for name, parts in divisions(examples)),
    ]
    for name, parts in named:
        for part in sorted({part for part in parts if part is not None}):
            inside = np.array([other == part for other in parts])
            if not inside.all():
                yield f"{name} {part}", inside
