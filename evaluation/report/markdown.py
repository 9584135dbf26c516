"""The report as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.report.sentences import people_sentences, review_line
from evaluation.report.text import TEMPLATES, markdown_templates
from judging.tasks.hieval_ea import ERROR_TYPES

METRIC_NAMES = {
    "accuracy": "Accuracy",
    "accuracy_unscored_as_wrong": "Accuracy, unscored as wrong",
    "coverage": "Coverage",
    "kappa": "Cohen's kappa",
    "mcc": "Matthews correlation",
    "macro_f1": "Macro F1",
    "fpr": "False positives (Wrong called Correct)",
    "score_accuracy": "Score accuracy (error type ignored)",
    "type_accuracy": "Error-type accuracy (items with one)",
    "ece": "Calibration error (15 equal-mass bins)",
    "overconfidence": "Overconfidence (mean confidence less accuracy)",
    "brier": "Brier score",
    "nll": "Negative log-likelihood",
}
PAIR_NAMES = {
    "accuracy_ties_counted": "Accuracy, ties counted",
    "accuracy_ties_excluded": "Accuracy, people's ties excluded",
    "accuracy_ties_half": "Accuracy, ties half",
    "kappa": "Cohen's kappa",
    "fpr_ours": "Pairs given to the loser (our false-positive rate)",
    "ece_model": "Calibration error, the model's probability",
    "ece_stated": "Calibration error, the stated confidence",
    "ece_stated_equal_width": "The same in bins of equal width",
    "coverage": "Coverage",
}
ORDERS = {"given": "given order alone", "swapped": "swapped order alone", "merged": "both merged"}
LENGTH_NAMES = {
    "preference": "Leaning to the longer response",
    "longer_against_people": "Longer chosen where people chose the shorter",
    "shorter_against_people": "Shorter chosen where people chose the longer",
    "difference": "Difference of these two shares",
}
TABLE_4: Mapping[str, tuple[float, str, float, float]] = {
    "Gemini-2.0": (3367, "$0.1 + $0.4", 33.50, 70.40),
    "GPT-4o": (3194, "$2.5 + $10", 33.00, 81.30),
    "GPT-5-Mini": (16638, "$0.25 + $2", 45.20, 85.30),
    "GPT-5": (13899, "$1.25 + $10", 57.80, 90.40),
    "Kimi-VL-A3B": (630, "free", 8.00, 47.90),
    "Mimo-VL-7B": (10234, "free", 37.40, 80.90),
    "Qwen3-VL-4B": (757, "free", 43.80, 84.30),
    "HiEval-EA": (501, "free", 85.50, 93.80),
}
"""Judge to seconds, cost, A-Acc and S-Acc; accuracies in per cent."""
TABLE_5: Mapping[str, tuple[float, ...]] = {
    "Kimi-VL-A3B": (1.15, 10.19, 1.00, 0.00, 29.70, 8.00),
    "GPT-4o": (56.15, 64.53, 3.00, 4.76, 0.00, 33.00),
    "Gemini-2.0": (55.77, 21.89, 17.00, 54.29, 0.61, 33.50),
    "Mimo-RL-7B": (56.25, 50.22, 48.99, 35.18, 16.95, 41.77),
    "Qwen3-VL-4B": (60.38, 81.89, 62.00, 0.48, 0.61, 43.80),
    "GPT-5-mini": (55.00, 72.83, 47.00, 32.38, 0.61, 45.20),
    "GPT-5": (73.08, 67.55, 74.00, 64.29, 0.00, 57.80),
    "HiEval-EA": (73.85, 81.89, 98.00, 99.05, 84.85, 85.50),
}
"""Judge to A-Acc in per cent, for each of ``ERROR_TYPES`` and for all together, on the paper's test
of 1,000 responses with errors."""
JUDGES_IN_REPORTS = ("Qwen3-VL-4B", "GPT-5", "HiEval-EA")


def render_markdown(report: Mapping[str, Any], pictures: Sequence[str] = ()) -> str:
    """Lay out a report of ``build_report`` as Markdown, embedding the named pictures."""
    pair_rows: list[tuple[str, Mapping[str, Any]]] = []
    if pairs := report["pairs"]:
        order, length = pairs["order"], pairs["length"]
        pair_rows = [
            *((PAIR_NAMES[name], measured) for name, measured in pairs["measures"].items()),
            *((f"Accuracy, {ORDERS[name]}", share) for name, share in order["accuracy"].items()),
            ("Gain from the second order", order["merged_minus_given"]),
            ("Pairs on which the two orders disagree", order["flip_rate"]),
            *(
                (f"Leaning to the response shown first, {name}", bias)
                for name, bias in order["bias"].items()
            ),
            *((LENGTH_NAMES[name], share) for name, share in length.items()),
        ]
    template = markdown_templates(TEMPLATES).get_template("report.md")
    return template.render(
        report=report,
        pictures=pictures,
        published={name: published_shares(name) for name in JUDGES_IN_REPORTS},
        pair_rows=pair_rows,
        metric_names=METRIC_NAMES,
        people_sentences=people_sentences(report),
        review_line=review_line(report),
    )


def published_shares(judge: str) -> dict[str, float]:
    """Look up a judge's published figures as shares, under the names that a report gives them."""
    names = (*ERROR_TYPES, "type_accuracy", "score_accuracy")
    figures = (*TABLE_5[judge], TABLE_4[judge][-1])
    return {name: round(value / 100, 4) for name, value in zip(names, figures, strict=True)}
