"""The report in lines of 80 columns, for the screen."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.outcomes import describe_reason
from evaluation.report.disagreements import Disagreement
from evaluation.report.markdown import (
    chance_text,
    favour_lines,
    number,
    order_line,
    p_value,
    people_sentences,
    rate_lines,
    review_line,
    with_interval,
)

WIDTH = 80
NAME_WIDTH = 16
MAX_PAIRS = 4
MAX_PEOPLE = 12


def summary_lines(
    name: str, report: Mapping[str, Any], disagreements: Sequence[Disagreement]
) -> list[str]:
    """Write the main figures: the judge beside others, a second person, and cautions.

    No line is longer than ``WIDTH``.
    """
    rows = {name: report["metrics"], **report["baselines"]}
    time = "" if report["seconds"] is None else f", in {report['seconds']:.1f} s"
    lines = [
        f"{report['n']:,} rows on {report['questions']:,} questions, "
        f"{report['coverage']:.1%} with a label{time}",
        "",
        _line("judge", "scored", "accuracy", "kappa", "p"),
    ]
    for row, measured in rows.items():
        lines.append(
            _line(
                _cut(row, NAME_WIDTH),
                f"{measured['coverage']['value']:.0%} {measured['accuracy']['n']}",
                with_interval(measured["accuracy"]),
                with_interval(measured["kappa"]),
                _p(measured.get("p")),
            )
        )
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
    for line in filter(None, [*rate_lines(report), order_line(report["answerer_ranking"] or {})]):
        lines += ["", *textwrap.wrap(line, WIDTH, subsequent_indent="  ")]
    if report["annotators"]:
        each = sorted(report["annotators"]["each"].items(), key=lambda person: -person[1]["n"])
        heading = ("person", "n", "with others", "judge with others", "p", "")
        people = [heading] + [
            (
                _cut(person, NAME_WIDTH),
                str(measured["n"]),
                with_interval(measured["person"]["agreement"]),
                with_interval(measured["judge"]["agreement"]),
                _p(measured["p"]),
                "wins" if measured["wins"] else "",
            )
            for person, measured in each[:MAX_PEOPLE]
        ]
        lines.append("")
        for person, n, of_person, of_judge, p, wins in people:
            line = f"{person:<{NAME_WIDTH}} {n:>6} {of_person:>20} {of_judge:>20} {p:>7} {wins:>5}"
            lines.append(line.rstrip())
        if len(each) > MAX_PEOPLE:
            lines.append(f"and {len(each) - MAX_PEOPLE} more people, in report.json")
        for sentence in people_sentences(report):
            lines += textwrap.wrap(sentence, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    ranked = Counter(row.pair for row in disagreements).most_common()
    lines += ["", f"{len(disagreements):,} disagreements"]
    lines += [_cut(f"  {count:>6,}  {pair}", WIDTH) for pair, count in ranked[:MAX_PAIRS]]
    if len(ranked) > MAX_PAIRS:
        lines.append(f"  {sum(n for _, n in ranked[MAX_PAIRS:]):>6,}  others")
    for line in (review_line(report), *favour_lines(report["favour"])):
        lines += textwrap.wrap(_printable(line), WIDTH, subsequent_indent="  ")
    notes = [f"caution: {text}" for text in report["cautions"]]
    notes += [f"no label: {describe_reason(reason)}" for reason in report["unscored"]]
    for note in notes:
        text = _printable(note)
        lines += textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _line(name: str, scored: str, accuracy: str, kappa: str, p: str) -> str:
    return f"{name:<{NAME_WIDTH}} {scored:>10} {accuracy:>20} {kappa:>22} {p:>7}".rstrip()


def _p(p: float | None) -> str:
    return "" if p is None else p_value(p).replace("< 0", "<0")


def _cut(text: str, width: int) -> str:
    plain = _printable(text)
    return plain if len(plain) <= width else f"{plain[: width - 3]}..."


def _printable(text: str) -> str:
    """Replace control characters of a text, which could command the terminal, by spaces."""
    return "".join(char if char.isprintable() else " " for char in text)
