"""Warnings that a reader needs before the figures of a report, each in one plain sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.baselines import OVERLAP
from evaluation.report.text import with_interval
from judging.judge.notes import untrained_mode_caution

WIDE_INTERVAL = 0.2
"""Width of the interval of an accuracy or a share from which nothing should be concluded."""
FEW_QUESTIONS = 30
"""Below this number of questions, intervals of 95 % hold the truth less often."""
COVERAGE = 0.6
"""Lowest share of simulated cases in which an interval on 5 to 20 questions held the truth: that of
the kappa of two people on ten rows with a rare label. Those of Brier score and likelihood where one
row in a hundred is wrong did in .7, and others in .9 or nearly so."""
KNOWN_QUESTIONS = 5
"""Fewest questions that were simulated."""
TESTABLE_QUESTIONS = 6
"""Fewest questions on which a two-sided test that flips signs can go below .05."""


def cautions(report: Mapping[str, Any]) -> list[str]:
    """List the cautions on a report of ``build_report``, the weightiest first."""
    found: list[str | None] = []
    rows = f"{report['n']:,} rows"
    if seen := report["seen_data"]:
        if seen["file"] is not None:
            found.append(
                f"The judge was {seen['file']} this very file: the figures say nothing of new rows."
            )
        elif seen["rows"]:
            found.append(
                f"The judge was trained on or chosen by the questions of {seen['rows']:,} of these "
                f"{rows}: measure it on questions that it has not seen."
            )
    if report["untrained_mode"]:
        found.append(untrained_mode_caution(report["untrained_mode"], report["n"]))
    if drawn := report["unequally_drawn"]:
        found.append(
            f"The rows were drawn with probabilities from {drawn['lowest']:.3g} to "
            f"{drawn['highest']:.3g}, and all other figures count each once. Over the rows that "
            f"they were drawn from, the accuracy is {with_interval(drawn['accuracy'])}."
        )
    if drawn := report["drawn_in_part"]:
        more = ", ..." if report["n"] - drawn["n"] > len(drawn["ids"]) else ""
        found.append(
            f"{drawn['n']:,} of {rows} have a `sampling_probability` and the others (id "
            f"{', '.join(drawn['ids'])}{more}) none: how many rows each of these stands for is not "
            "known, so all figures count each row once."
        )
    accuracy, questions = report["metrics"]["accuracy"], report["questions_scored"]
    scored = f"{accuracy['n']:,} scored row{'s' * (accuracy['n'] != 1)}"
    if accuracy["low"] is None:
        found.append(
            f"No interval can be given for {scored} on one question: nothing can be concluded."
        )
    else:
        counted = f"{scored} on {questions_text(questions)}"
        wide = too_wide(counted, "the accuracy", accuracy["low"], accuracy["high"])
        found.append(" ".join(filter(None, (wide, few_questions(questions)))))
    if unscored := sum(reason["n"] for reason in report["unscored"]):
        found.append(
            f"{unscored:,} of {rows} got no label: they count in the coverage and in the accuracy "
            "that takes them as wrong, and in no other figure of agreement."
        )
    gain = report["baselines"].get(OVERLAP, {}).get("gain")
    if gain and not (gain["low"] is not None and gain["low"] > 0):
        found.append(
            "The judge is not shown to beat a logistic regression on word overlap: on the rows "
            f"with a label from both, its accuracy less the regression's is {with_interval(gain)}."
        )
    return [text for text in found if text]


def few_questions(number: int) -> str | None:
    """Word the caution on intervals that rest on few questions; ``None`` on others."""
    if number >= FEW_QUESTIONS:
        return None
    held = "say little"
    if number >= KNOWN_QUESTIONS:
        held = f"held the truth in as few as {COVERAGE:.0%} of simulated cases"
    untestable = (
        ""
        if number >= TESTABLE_QUESTIONS
        else f", and no test by questions can go below p = {2.0 ** (1 - number):.4g}"
    )
    return (
        f"Intervals of 95 % that rest on no more than {questions_text(number)} {held}{untestable}: "
        f"measure on {FEW_QUESTIONS} questions or more."
    )


def too_wide(counted: str, figure: str, low: float, high: float) -> str | None:
    """Word the caution on a figure whose interval says too little; ``None`` on another one."""
    if high - low <= WIDE_INTERVAL:
        return None
    bounds = f"from {low:.3f} to {high:.3f}"
    verb = "is" if counted.startswith("1 ") else "are"
    return f"{counted} {verb} too few to conclude: {figure} may lie anywhere {bounds}."


def questions_text(number: int) -> str:
    """Write a number of questions as text."""
    return f"{number:,} question{'s' * (number != 1)}"
