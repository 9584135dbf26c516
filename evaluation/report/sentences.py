"""Sentences on a report, which its page, its Markdown and the screen share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evaluation.people.agreement import MIN_ROWS
from evaluation.report.text import number, with_interval
from judging.log_lines import one_line

LEVELS = {
    "shown": "the level is shown to hold",
    "not shown": "the level is not shown to hold",
    "exceeded": "the level is exceeded",
}
"""What is said of a stated risk, by ``level`` of ``evaluation.report.report.abstention``."""
FINDINGS = {"favoured": "favours", "harmed": "harms"}
MOST_NAMES = 3
"""Most favoured systems that a line names, and most harmed ones."""
UNCORRECTED = "uncorrected"


def people_sentences(report: Mapping[str, Any]) -> list[str]:
    """Say what the labels of several people show; no sentences without such labels."""
    measured = report["annotators"]
    if not measured:
        return []
    people, judge, best = (measured[name] for name in ("people", "judge", "best"))
    test = measured["alternative"]
    replacement = (
        "Whether the judge can take a person's place is not tested: nobody labelled "
        f"{MIN_ROWS} rows that another person and the judge labelled too."
    )
    if test["tested"]:
        may = "The judge can" if test["passes"] else "It is not shown that the judge can"
        two = len(measured["names"]) == 2
        few = " Three people or more would say more than two." if two else ""
        replacement = (
            f"{may} take a person's place (alternative annotator test, epsilon "
            f"{test['epsilon']:g}): it is shown to be no worse, by that margin, than "
            f"{test['wins']} of {test['tested']} people; half of them are needed. It is at least "
            "as near to the other people as a person is on "
            f"{with_interval(test['advantage'])} of rows.{few}"
        )
    ordinal = measured["alpha"]["ordinal"]
    distance = f", and {with_interval(ordinal)} with distances on the scale" if ordinal else ""
    sentences = [
        replacement,
        f"Two people of a row agree on {with_interval(people['agreement'])} of "
        f"{measured['n_common']:,} rows (kappa {with_interval(people['kappa'])}), the judge and "
        f"one of them on {with_interval(judge['agreement'])} (kappa "
        f"{with_interval(judge['kappa'])}). No judge could agree on more than "
        f"{number(best['agreement']['value'])}.",
        f"Krippendorff's alpha of people is "
        f"{with_interval(measured['alpha']['nominal'])}{distance}.",
    ]
    if soft := measured["soft"]:
        sentences.append(
            f"Against the shares of people, the judge's probabilities have a cross-entropy of "
            f"{with_interval(soft['cross_entropy'])} (at best "
            f"{number(soft['entropy']['value'])}) and a Brier score of "
            f"{with_interval(soft['brier'])}."
        )
    if measured["ties"] and len(measured["names"]) > 2:
        sentences.append(
            f"{measured['ties']:,} of {measured['n']:,} rows have several most frequent labels."
        )
    return sentences


def review_line(report: Mapping[str, Any]) -> str:
    """Say what is left to people, at the stated risk if there is one; empty if nothing is."""
    if at_risk := report["abstention"]:
        at_level = f"at a stated risk of {at_risk['risk']:g}"
        if at_risk["level"] not in LEVELS:
            return f"{at_level}, nothing is kept"
        error = f"the error among these is {with_interval(at_risk['error'])}"
        kept = f"{with_interval(at_risk['kept'])} is kept"
        return f"{at_level}, {kept}, and {error}: {LEVELS[at_risk['level']]}"
    if not report["needs_review"]:
        return ""
    share = report["needs_review"] / report["n"]
    return f"{report['needs_review']:,} of {report['n']:,} verdicts need review ({share:.1%})"


def favour_lines(favour: Mapping[str, Any] | None) -> list[str]:
    """Say whom the judge is shown to favour or to harm; no lines if nobody."""
    if favour is None:
        return []
    lines = []
    for finding, verb in FINDINGS.items():
        if named := favoured(favour, finding):
            lines.append(f"beside the other systems, the judge {verb} {named}")
    own = favour["own_family"]
    if own and own["finding"] in FINDINGS:
        lines.append(
            f"the judge {FINDINGS[own['finding']]} its own family ({favour['family']}, "
            f"{own['n']:,} rows): {with_interval(own['difference'])}"
        )
    return lines


def favoured(favour: Mapping[str, Any], finding: str) -> str:
    """Name the systems with a finding and how far each is favoured; empty without any."""
    systems = favour["systems"]
    names = [name for name in systems if systems[name]["finding"] == finding]
    if finding == "harmed":
        names.reverse()
    each = [
        f"{one_line(name)} ({with_interval(systems[name]['difference'])})"
        for name in names[:MOST_NAMES]
    ]
    if len(names) > MOST_NAMES:
        each.append(f"{len(names) - MOST_NAMES} more")
    return ", ".join(each)


def rate_lines(report: Mapping[str, Any], word: Callable[[str], str] = str) -> list[str]:
    """Write a line for each rubric: the share of its best label, as judged and as corrected.

    With more than two labels, a second line has the shares of all. ``word`` turns a label into the
    caller's word for it.
    """
    lines = []
    for rubric, measured in report["error_rates"].items():
        rate = f"share of {one_line(word(measured['label']))}, on as many rows without people's"
        lines.append(f"{rate} labels: {judged_text(measured['judged'])} ({rubric})")
        if shares := measured.get("shares"):
            each = "; ".join(
                f"{one_line(word(label))} {with_interval(share['people'])} by people, "
                f"{with_interval(share['judge'])} as judged"
                for label, share in shares.items()
            )
            lines.append(f"shares of all labels: {each} ({rubric})")
    return lines


def judged_text(judged: Mapping[str, Any]) -> str:
    """Write a judged rate (``JudgedRate.as_json``) and what its correction adds to the interval."""
    raw = f"as judged {with_interval(judged['raw'])}"
    if judged["corrected"] is None:
        return f"{raw}, {UNCORRECTED}: {judged['source']}"
    return (
        f"{raw}, corrected {with_interval(judged['corrected'])} by the errors on "
        f"{judged['source']}, which add {judged['added_width']:.3f} to the interval's width"
    )


def order_line(probabilities: Mapping[str, Any]) -> str:
    """Say in words what ``order_probabilities`` returns; empty where nothing is known."""
    names = {
        "same_winner": "people's best is the judge's",
        "same_order": "people's order is the judge's",
    }
    return " and ".join(
        f"{name} with probability {number(probabilities[key])}"
        for key, name in names.items()
        if probabilities.get(key) is not None
    )
