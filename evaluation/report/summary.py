"""The report in lines of 80 columns, for the screen."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.report.disagreements import Disagreement
from evaluation.report.markdown import (
    ANNOTATOR_ROWS,
    chance_text,
    favour_lines,
    number,
    p_value,
    review_line,
    with_interval,
)
from evaluation.unscored import describe_reason

WIDTH = 80
NAME_WIDTH = 16
MAX_PAIRS = 4


def summary_lines(
    name: str, report: Mapping[str, Any], disagreements: Sequence[Disagreement]
) -> list[str]:
    """Return the main figures: the judge beside others, a second person, and cautions.

    No line is longer than ``WIDTH``.

    Args:
        name: Name of the judge.
        report: Report of ``build_report``.
        disagreements: Rows on which judge and people differ.
    """
    rows = {name: report["metrics"], **report["baselines"]}
    time = "" if report["seconds"] is None else f", in {report['seconds']:.1f} s"
    lines = [
        f"{report['n']:,} rows on {report['questions']:,} questions, "
        f"{report['coverage']:.1%} with a label{time}",
        "",
        _line("judge", "scored", "accuracy", "kappa", "p"),
        *(_judge_line(row, measured) for row, measured in rows.items()),
    ]
    if report["metrics"]["ece"]["value"] is not None:
        ece, surplus = report["metrics"]["ece"], report["metrics"]["overconfidence"]
        lines += [
            "",
            f"calibration error {number(ece['value'])} on {ece['n']:,} rows; a calibrated judge: "
            f"{chance_text(ece['chance'])}",
            f"confidence less accuracy {with_interval(surplus)}",
        ]
    for name, entropy in report["self_consistency"].items():
        lines += textwrap.wrap(
            f"self-consistency of {_printable(name)}: entropy {with_interval(entropy)} nats over "
            f"{entropy['runs']} drawn labels of {entropy['n']:,} rows",
            WIDTH,
            subsequent_indent="  ",
        )
    if report["second_annotator"]:
        lines += ["", *_annotator_lines(report["second_annotator"])]
    lines += ["", *_disagreement_lines(disagreements)]
    for line in (review_line(report), *favour_lines(report["favour"])):
        lines += textwrap.wrap(_printable(line), WIDTH, subsequent_indent="  ")
    notes = [f"caution: {text}" for text in report["cautions"]]
    notes += [f"no label: {describe_reason(reason)}" for reason in report["unscored"]]
    for note in notes:
        text = _printable(note)
        lines += textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _judge_line(name: str, measured: Mapping[str, Any]) -> str:
    p = measured.get("p")
    return _line(
        _cut(name, NAME_WIDTH),
        f"{measured['coverage']['value']:.0%} {measured['accuracy']['n']}",
        with_interval(measured["accuracy"]),
        with_interval(measured["kappa"]),
        "" if p is None else p_value(p).replace("< 0", "<0"),
    )


def _line(name: str, scored: str, accuracy: str, kappa: str, p: str) -> str:
    return f"{name:<{NAME_WIDTH}} {scored:>10} {accuracy:>20} {kappa:>22} {p:>7}".rstrip()


def _annotator_lines(second: Mapping[str, Any]) -> list[str]:
    width = 32
    lines = [f"{'agreement, n ' + str(second['people']['accuracy']['n']):<{width}} "
             f"{'accuracy':>22} {'kappa':>23}"]  # fmt: skip
    for name, title in ANNOTATOR_ROWS.items():
        measured = second[name]
        accuracy, kappa = with_interval(measured["accuracy"]), with_interval(measured["kappa"])
        lines.append(f"{_cut(title, width):<{width}} {accuracy:>22} {kappa:>23}")
    return lines


def _disagreement_lines(disagreements: Sequence[Disagreement]) -> list[str]:
    counts: dict[str, int] = {}
    for row in disagreements:
        counts[row.pair] = counts.get(row.pair, 0) + 1
    ranked = sorted(counts.items(), key=lambda pair: -pair[1])
    lines = [f"{len(disagreements):,} disagreements"]
    lines += [_cut(f"  {count:>6,}  {pair}", WIDTH) for pair, count in ranked[:MAX_PAIRS]]
    if len(ranked) > MAX_PAIRS:
        lines.append(f"  {sum(n for _, n in ranked[MAX_PAIRS:]):>6,}  others")
    return lines


def _cut(text: str, width: int) -> str:
    plain = _printable(text)
    return plain if len(plain) <= width else f"{plain[: width - 3]}..."


def _printable(text: str) -> str:
    """Return a text without control characters, which could command the terminal."""
    return "".join(char if char.isprintable() else " " for char in text)
