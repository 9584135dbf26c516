"""Warnings that a reader needs before the figures of a report, each in one plain sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.attacks.shares import Share
from evaluation.comparisons.overlap_regression import NAME
from evaluation.report.markdown import with_interval
from judging.judge.notes import untrained_mode_caution

WIDE_INTERVAL = 0.2
"""Width of the interval of an accuracy or a share from which nothing should be concluded."""
FEW_QUESTIONS = 30
"""Below so many questions intervals of 95 % are less sure than they say."""
COVERAGE = 0.7
"""Lowest share of simulated cases in which an interval on 5 to 20 questions held the truth: that of
Brier score and likelihood where one row in a hundred is wrong. Others did in .9 or nearly so."""
KNOWN_QUESTIONS = 5
"""Fewest questions that were simulated."""
TESTABLE_QUESTIONS = 6
"""Fewest questions on which a two-sided test that flips signs can go below .05."""


def cautions(report: Mapping[str, Any]) -> list[str]:
    """Return the cautions on a report, the weightiest first; none if all is well.

    Args:
        report: Report of ``build_report``, without its cautions.
    """
    return [
        text
        for text in (
            _seen(report),
            _untrained_mode(report),
            _unequally_drawn(report),
            _too_few(report),
            _left_out(report),
            _not_better(report),
        )
        if text is not None
    ]


def _seen(report: Mapping[str, Any]) -> str | None:
    seen = report["seen_data"]
    if seen is None:
        return None
    if seen["file"] is not None:
        return f"The judge was {seen['file']} this very file: the figures say nothing of new rows."
    if seen["rows"]:
        return (
            f"The judge was trained on or chosen by the questions of {seen['rows']:,} of these "
            f"{report['n']:,} rows: measure it on questions that it has not seen."
        )
    return None


def _untrained_mode(report: Mapping[str, Any]) -> str | None:
    number = report["untrained_mode"]
    return untrained_mode_caution(number, report["n"]) if number else None


def _unequally_drawn(report: Mapping[str, Any]) -> str | None:
    drawn = report["unequally_drawn"]
    if drawn is None:
        return None
    return (
        f"The rows were drawn with probabilities from {drawn['lowest']:.3g} to "
        f"{drawn['highest']:.3g}, and all other figures count each once. Over the rows that they "
        f"were drawn from, the accuracy is {with_interval(drawn['accuracy'])}."
    )


def _too_few(report: Mapping[str, Any]) -> str | None:
    accuracy = report["metrics"]["accuracy"]
    rows = f"{accuracy['n']:,} scored row{'s' * (accuracy['n'] != 1)}"
    if accuracy["low"] is None:
        return f"No interval can be given for {rows} on one question: nothing can be concluded."
    counted = f"{rows} on {_questions(report['questions_scored'])}"
    too_wide = _too_wide(counted, "the accuracy", accuracy["low"], accuracy["high"])
    return " ".join(filter(None, (too_wide, few_questions(report["questions_scored"])))) or None


def few_questions(number: int) -> str | None:
    """Return the caution on intervals that rest on few questions; ``None`` on others."""
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
        f"Intervals of 95 % that rest on no more than {_questions(number)} {held}{untestable}: "
        f"measure on {FEW_QUESTIONS} questions or more."
    )


def attack_caution(num_questions: int, shares: Mapping[str, Share]) -> str | None:
    """Return the caution on an attack with too few questions; ``None`` if they suffice.

    Args:
        num_questions: Questions that the attack was made from.
        shares: Shares by name. The caution is on the one with the widest interval.
    """
    intervals = {
        name: (rate.low, rate.high)
        for name, rate in shares.items()
        if rate.low is not None and rate.high is not None
    }
    if not intervals:
        return None
    name, (low, high) = max(intervals.items(), key=lambda share: share[1][1] - share[1][0])
    # The share may be of fewer rows than there are questions, as that of the suffix search is.
    counted = _questions(min(num_questions, shares[name].n))
    if shares[name].wordings > 1:
        counted = f"{shares[name].wordings} wordings on {counted}"
    return _too_wide(counted, f"the share of '{name}'", low, high) or few_questions(num_questions)


def _too_wide(counted: str, figure: str, low: float, high: float) -> str | None:
    """Return the caution on a figure whose interval says too little; ``None`` on another one."""
    if high - low <= WIDE_INTERVAL:
        return None
    bounds = f"from {low:.3f} to {high:.3f}"
    verb = "is" if counted.startswith("1 ") else "are"
    return f"{counted} {verb} too few to conclude: {figure} may lie anywhere {bounds}."


def _questions(number: int) -> str:
    return f"{number:,} question{'s' * (number != 1)}"


def _left_out(report: Mapping[str, Any]) -> str | None:
    unscored = sum(reason["n"] for reason in report["unscored"])
    if not unscored:
        return None
    return (
        f"{unscored:,} of {report['n']:,} rows got no label: they count in the coverage and in the "
        "accuracy that takes them as wrong, and in no other figure of agreement."
    )


def _not_better(report: Mapping[str, Any]) -> str | None:
    """Say that the judge does not beat the regression on word overlap, if it was measured."""
    rival = report["baselines"].get(NAME)
    if rival is None:
        return None
    gain = rival["gain"]
    if gain["low"] is not None and gain["low"] > 0:
        return None
    return (
        "The judge is not shown to beat a logistic regression on word overlap: on the rows with a "
        f"label from both, its accuracy less the regression's is {with_interval(gain)}."
    )
