"""The tables of ``experiments.findings.paradigms``, beside the published ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.report.markdown import number, p_value, table, with_interval

PUBLISHED_PARADIGMS = {
    "bradley-terry": (0.478, 0.721),
    "critique-score": (0.437, 0.558),
    "pure-label": (0.549, 0.575),
    "critique-label": (0.542, 0.884),
}
"""TruthfulJudge, Table 2: accuracy of the original and of the trained model, 812 pairs."""
PUBLISHED_JUDGES = {
    "TruthfulJudge": (0.884, 0.79, 0.12, 0.19, 0.11),
    "GPT-4o": (0.570, 0.32, 0.52, 0.20, 0.26),
    "Gemini-1.5-Pro": (0.638, 0.37, 0.36, 0.10, 0.21),
    "Claude-3.5-Sonnet": (0.595, 0.35, 0.41, 0.13, 0.28),
    "Qwen2.5-VL-72B": (0.522, 0.23, 0.48, 0.15, 0.25),
}
"""TruthfulJudge, Table 1: accuracy, kappa, FPR, self-consistency, ECE (.12 in its text)."""
STAGES = ("original", "trained")
ACCURACIES = {
    "accuracy_ties_counted": "Ties counted",
    "accuracy_ties_excluded": "Ties excluded",
    "accuracy_ties_half": "Ties half",
}
NOTE = (
    "Accuracy over all pairs, a tie being a label like the others; over pairs that people decided; "
    "and with half credit where one side ties. Rewards never tie and scores hardly ever, so the "
    "first holds them to the pairs that people decided. Published: Table 2 of TruthfulJudge, "
    "Qwen2.5-VL-7B, 812 human-labelled pairs; how it counts ties is not said."
)


def render_paradigms(result: Mapping[str, Any]) -> str:
    """Lay out what ``compare_paradigms`` returns as Markdown."""
    cells = result["cells"]
    sections = [
        "# Judges of pairs",
        f"{result['n']} pairs, 95 % intervals by resampling questions; critiques of at most "
        f"{result['critique_tokens']} tokens.",
        "## Paradigms, original to trained",
        *(f"{title}\n\n{_paradigms(cells, metric)}" for metric, title in ACCURACIES.items()),
        NOTE,
        _orderings(cells),
        f"## Judges\n\n{_judges(cells)}",
        "FPR here: share of the decided pairs won by the loser; the paper's has another "
        "definition. Self-consistency: mean entropy (nats) of five sampled labels, one order, on "
        "its own n; 0 is best. ECE: of the judge's probabilities and of the confidence that it "
        "states, as the paper's must be; how wide the paper's bins are is not said.",
        f"## Order of the responses\n\n{_order(cells)}",
        f"## By what decides the pair (ties counted)\n\n{_evidence(cells)}",
    ]
    return "\n\n".join(sections) + "\n"


def _paradigms(cells: Mapping[str, Any], metric: str) -> str:
    rows = [
        (
            name,
            *(with_interval(stages[s][metric]) if s in stages else "-" for s in STAGES),
            *(number(figure) for figure in PUBLISHED_PARADIGMS[name]),
            *(number(stages[s]["seconds_per_pair"]) if s in stages else "-" for s in STAGES),
        )
        for name, stages in cells.items()
    ]
    header = ("paradigm", *STAGES, *(f"{s}, published" for s in STAGES))
    return table((*header, *(f"s/pair, {s}" for s in STAGES)), rows)


def _orderings(cells: Mapping[str, Any]) -> str:
    """Say which paradigm is best, here and in the paper, over those measured in both."""
    trained = [name for name, stages in cells.items() if "trained" in stages]
    if len(trained) < 2:
        return "Fewer than two trained paradigms: no order to compare with the paper's."
    ours = sorted(
        trained,
        key=lambda name: -(cells[name]["trained"]["accuracy_ties_excluded"]["value"] or 0.0),
    )
    theirs = sorted(trained, key=lambda name: -PUBLISHED_PARADIGMS[name][1])
    verdict = "the same" if ours == theirs else "not the same"
    return (
        f"Trained, best first, ties excluded: {', '.join(ours)}; published: {', '.join(theirs)}; "
        f"{verdict} order."
    )


def _judges(cells: Mapping[str, Any]) -> str:
    columns = {
        "accuracy_ties_counted": "accuracy",
        "kappa": "kappa",
        "fpr_ours": "FPR",
        "self_consistency": "self-consistency",
        "ece_model": "ECE",
        "ece_stated": "ECE, stated",
        "ece_stated_equal_width": "ECE, stated, bins of equal width",
    }
    rows: list[tuple[object, ...]] = [
        (f"{name}, {stage}", *(with_interval(cell.get(column)) for column in columns))
        for name, stages in cells.items()
        for stage, cell in stages.items()
    ]
    for name, (*figures, ece) in PUBLISHED_JUDGES.items():
        shown = *(number(figure, 2) for figure in figures), "-", "-", number(ece, 2)
        rows.append((f"{name}, published", *shown))
    return table(("judge", *columns.values()), rows)


def _order(cells: Mapping[str, Any]) -> str:
    rows = [
        (
            f"{name}, {stage}",
            with_interval(effects["bias"]["given"]),
            with_interval(effects["flip_rate"]),
            with_interval(effects["accuracy"]["given"]),
            with_interval(effects["accuracy"]["merged"]),
            with_interval(effects["merged_minus_given"]),
            p_value(effects["test"]["p"]),
        )
        for name, stages in cells.items()
        for stage, cell in stages.items()
        if (effects := cell.get("order"))
    ]
    header = ("judge", "bias to the first", "flips", "one order", "both orders, twice the passes")
    return table((*header, "gain", "p by questions"), rows)


def _evidence(cells: Mapping[str, Any]) -> str:
    measured = [cell["by_evidence"] for stages in cells.values() for cell in stages.values()]
    kinds = sorted({kind for accuracies in measured for kind in accuracies})
    rows = [
        (f"{name}, {stage}", *(with_interval(cell["by_evidence"].get(kind)) for kind in kinds))
        for name, stages in cells.items()
        for stage, cell in stages.items()
    ]
    header = ("judge", *(f"{kind} (n={measured[0][kind]['n']})" for kind in kinds))
    return table(header, rows)
