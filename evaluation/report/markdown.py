"""The report as a page to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluation.error_types import PUBLISHED

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
    "brier": "Brier score",
    "nll": "Negative log-likelihood",
}
BASELINE_COLUMNS = ("accuracy", "kappa", "macro_f1", "fpr", "coverage")
CALIBRATION_COLUMNS = ("ece", "brier", "nll")
PAIR_NAMES = {
    "accuracy_ties_counted": "Accuracy, ties counted",
    "accuracy_ties_excluded": "Accuracy, people's ties excluded",
    "accuracy_ties_half": "Accuracy, ties half",
    "kappa": "Cohen's kappa",
    "fpr_ours": "Pairs given to the loser (our false-positive rate)",
    "ece_model": "Calibration error, the model's probability",
    "ece_stated": "Calibration error, the stated confidence",
    "coverage": "Coverage",
}
ORDERS = {"given": "given order alone", "swapped": "swapped order alone", "merged": "both merged"}
LENGTH_NAMES = {
    "preference": "Leaning to the longer response",
    "longer_against_people": "Longer chosen where people chose the shorter",
    "shorter_against_people": "Shorter chosen where people chose the longer",
    "difference": "The former minus the latter",
}
NOTE = (
    "Brackets hold 95 % intervals by resampling questions. Items without a label count only in "
    "coverage and in the accuracy named for them. Calibration error cannot be negative, so chance "
    "alone keeps it above zero; Brier score and log-likelihood do not have that floor."
)


def render_markdown(report: Mapping[str, Any], pictures: Sequence[str] = ()) -> str:
    """Lay out a report of ``build_report`` as Markdown, embedding the named pictures."""
    sections = [
        _head(report),
        _metrics(report["metrics"]),
        _baselines(report),
        *([_error_types(report)] if report["error_types"] else []),
        *([_pairs(report["pairs"])] if report["pairs"] else []),
        _labels(report),
        *([_calibration(report["calibration"])] if report["calibration"] else []),
        *([_ranking(report["answerer_ranking"])] if report["answerer_ranking"] else []),
        *(_slice(name, parts) for name, parts in report["slices"].items()),
        *(["\n\n".join(f"![{name}]({name})" for name in pictures)] if pictures else []),
        _origin(report),
    ]
    return "\n\n".join(sections) + "\n"


def number(value: float | None, digits: int = 3) -> str:
    """A figure, or a dash where it does not exist."""
    return "-" if value is None else f"{value:.{digits}f}"


def with_interval(measured: Mapping[str, Any] | None) -> str:
    """``0.914 [0.899, 0.928]``; without brackets where there is no interval."""
    if measured is None or measured["value"] is None:
        return "-"
    if measured["low"] is None:
        return number(measured["value"])
    return f"{number(measured['value'])} [{number(measured['low'])}, {number(measured['high'])}]"


def p_value(p: float) -> str:
    """A p-value, with a floor below which digits mean nothing."""
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table: first column to the left, the others to the right."""
    lines = [header, [":--", *["--:"] * (len(header) - 1)], *rows]
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _head(report: Mapping[str, Any]) -> str:
    statuses = ", ".join(f"{count} {name}" for name, count in sorted(report["statuses"].items()))
    speed = report["items_per_second"]
    lines = [
        "# Agreement with people",
        f"{report['n']} items on {report['questions']} questions ({statuses}) in "
        f"{report['seconds']:.1f} s" + (f", {speed:.1f} items/s." if speed else "."),
    ]
    if report["truncated_input"]:
        lines.append(f"{report['truncated_input']} responses were shortened to fit the budget.")
    return "\n\n".join([*lines, f"    {report['command']}"])


def _metrics(measured: Mapping[str, Any]) -> str:
    rows = [
        (METRIC_NAMES[name], with_interval(metric), metric["n"])
        for name, metric in measured.items()
    ]
    return f"## Metrics\n\n{table(('metric', 'value', 'n'), rows)}\n\n{NOTE}"


def _baselines(report: Mapping[str, Any]) -> str:
    header = ("judge", *BASELINE_COLUMNS, "only judge right", "only baseline right", "McNemar p")
    judged = report["metrics"]
    rows = [["**this judge**", *(with_interval(judged[m]) for m in BASELINE_COLUMNS), "", "", ""]]
    for name, other in report["baselines"].items():
        counts = (other["judge_only_right"], other["baseline_only_right"])
        rows.append(
            [
                name.replace("_", " "),
                *(with_interval(other[metric]) for metric in BASELINE_COLUMNS),
                *map(str, counts),
                p_value(other["mcnemar_p"]),
            ]
        )
    return f"## Beside other judges\n\n{table(header, rows)}"


def _error_types(report: Mapping[str, Any]) -> str:
    kinds = tuple(report["error_types"])
    columns = (*kinds, "type_accuracy", "score_accuracy")
    counts = [report["error_types"][kind]["n"] for kind in kinds]
    judged = {
        "**this judge**": {**report["error_types"], **report["metrics"]},
        **{
            name.replace("_", " "): {**other["error_types"], **other}
            for name, other in report["baselines"].items()
        },
    }
    rows = [
        ("n", *counts, *(report["metrics"][name]["n"] for name in columns[-2:])),
        *((name, *(with_interval(row[c]) for c in columns)) for name, row in judged.items()),
        *(
            (f"{name}, published", *(number(row.get(c)) for c in columns))
            for name, row in PUBLISHED.items()
        ),
    ]
    return (
        f"## Error types\n\n{table(('', *kinds, 'A-Acc', 'S-Acc'), rows)}\n\n"
        "Share of the items of each type whose type is named; A-Acc over all items with an error, "
        "S-Acc over all items. Published figures are HiEval's Table 5, on its own test."
    )


def _pairs(pairs: Mapping[str, Any]) -> str:
    order, length = pairs["order"], pairs["length"]
    rows = [
        *((PAIR_NAMES[name], measured) for name, measured in pairs["measures"].items()),
        *((f"Accuracy, {ORDERS[name]}", found) for name, found in order["accuracy"].items()),
        ("What the second order adds", order["merged_minus_given"]),
        ("Pairs on which the two orders disagree", order["flip_rate"]),
        *((f"Leaning to the response shown first, {name}", b) for name, b in order["bias"].items()),
        *((LENGTH_NAMES[name], found) for name, found in length.items()),
    ]
    lines = [(name, with_interval(found), found["n"]) for name, found in rows]
    return (
        f"## Pairs\n\n{table(('measure', 'value', 'n'), lines)}\n\n"
        "One order against both merged, which costs twice as much: McNemar p "
        f"{p_value(order['mcnemar']['p'])}. Leanings are beyond what people prefer; 0 is none. "
        "Orders, merged too, are read before calibration."
    )


def _labels(report: Mapping[str, Any]) -> str:
    columns = ("people", "judge", "precision", "recall", "f1")
    classes = [
        (label, row["people"], row["judge"], *(number(row[name]) for name in columns[2:]))
        for label, row in report["per_class"].items()
    ]
    confusion = report["confusion"]
    counts = [
        (f"people: {label}", *row, unscored)
        for label, row, unscored in zip(
            confusion["labels"], confusion["counts"], confusion["unscored_per_row"], strict=True
        )
    ]
    header = ("", *(f"judge: {label}" for label in confusion["labels"]), "unscored")
    return (
        f"## Labels\n\n{table(('label', *columns), classes)}\n\n"
        f"### Confusion\n\n{table(header, counts)}"
    )


def _calibration(calibration: Mapping[str, Any]) -> str:
    rows = [
        (
            stage if len(calibration) > 1 else "as judged",
            *(number(row[m]) for m in CALIBRATION_COLUMNS),
        )
        for stage, row in calibration.items()
    ]
    return f"## Calibration\n\n{table(('', *CALIBRATION_COLUMNS), rows)}"


def _ranking(ranking: Mapping[str, Any]) -> str:
    rows = [
        (name, row["n"], with_interval(row["people"]), with_interval(row["judge"]))
        for name, row in ranking["answerers"].items()
    ]
    return (
        "## Ranking of the answering systems\n\n"
        "Share called Correct, best first by people. Kendall's tau-b between the two orders: "
        f"{with_interval(ranking['kendall_tau'])}.\n\n"
        f"{table(('answerer', 'n', 'people', 'judge'), rows)}"
    )


def _slice(name: str, parts: Mapping[str, Any]) -> str:
    rows = [
        (part, row["n"], *(with_interval(row[m]) for m in ("accuracy", "kappa", "coverage")))
        for part, row in parts.items()
    ]
    header = (name.replace("_", " "), "n", "accuracy", "kappa", "coverage")
    return f"## By {name.replace('_', ' ')}\n\n{table(header, rows)}"


def _origin(report: Mapping[str, Any]) -> str:
    rows = [
        ("judge", ", ".join(report["judges"]) or "-"),
        ("data SHA-256", report["dataset_sha256"] or "-"),
        ("bootstrap", f"{report['resamples']} resamples, seed {report['seed']}"),
        *report["versions"].items(),
    ]
    return f"## Origin\n\n{table(('what', 'which'), rows)}"
