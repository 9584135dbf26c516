"""The report as lines for the screen."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evaluation.outcomes import describe_reason
from evaluation.report.evaluate import Disagreement
from evaluation.report.sentences import (
    favour_lines,
    order_line,
    people_sentences,
    rate_lines,
    review_line,
)
from evaluation.report.text import chance_text, number, p_value, with_interval

WIDTH = 80
NAME_WIDTH = 16
MAX_PAIRS = 4
MAX_PEOPLE = 12


def summary_lines(
    name: str,
    report: Mapping[str, Any],
    disagreements: Sequence[Disagreement],
    word: Callable[[str], str] = str,
) -> list[str]:
    """Write the main figures: the judge beside others, a second person, and cautions.

    ``word`` turns a label into the caller's word for it. No line is longer than ``WIDTH``.
    """
    time = "" if report["seconds"] is None else f", in {report['seconds']:.1f} s"
    lines = [
        f"{report['n']:,} rows on {report['questions']:,} questions, "
        f"{report['coverage']:.1%} with a label{time}",
        "",
    ]
    rows: list[tuple[str, ...]] = [("judge", "scored", "accuracy", "kappa", "p")]
    for row, measured in {name: report["metrics"], **report["baselines"]}.items():
        scored = f"{measured['coverage']['value']:.0%} {measured['accuracy']['n']}"
        figures = (with_interval(measured[figure]) for figure in ("accuracy", "kappa"))
        rows.append((_cut(row, NAME_WIDTH), scored, *figures, _p(measured.get("p"))))
    for row, scored, accuracy, kappa, p in rows:
        line = f"{row:<{NAME_WIDTH}} {scored:>10} {accuracy:>20} {kappa:>22} {p:>7}"
        lines.append(line.rstrip())
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
    for line in (*rate_lines(report, word), order_line(report["answerer_ranking"] or {})):
        if line:
            lines += ["", *textwrap.wrap(line, WIDTH, subsequent_indent="  ")]
    if report["annotators"]:
        each = sorted(report["annotators"]["each"].items(), key=lambda person: -person[1]["n"])
        heading = ("person", "n", "with others", "judge with others", "p", "")
        people: list[tuple[str, ...]] = [heading]
        for person, measured in each[:MAX_PEOPLE]:
            sides = (with_interval(measured[side]["agreement"]) for side in ("person", "judge"))
            wins = "wins" if measured["wins"] else ""
            name = _cut(person, NAME_WIDTH)
            people.append((name, str(measured["n"]), *sides, _p(measured["p"]), wins))
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
    for note in map(_printable, notes):
        lines += textwrap.wrap(note, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _p(p: float | None) -> str:
    return "" if p is None else p_value(p).replace("< 0", "<0")


def _cut(text: str, width: int) -> str:
    plain = _printable(text)
    return plain if len(plain) <= width else f"{plain[: width - 3]}..."


def _printable(text: str) -> str:
    """Replace control characters, which could command the terminal, by spaces."""
    return "".join(char if char.isprintable() else " " for char in text)
