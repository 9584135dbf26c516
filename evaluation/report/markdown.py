"""The report as Markdown and as lines for the screen, with the sentences and cells of both."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.outcomes import describe_reason
from evaluation.people.agreement import MIN_ROWS
from evaluation.report.evaluate import Disagreement
from judging.log_lines import one_line
from judging.tasks.hieval_ea import ERROR_TYPES

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
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
LEVELS = {
    "shown": "the level is shown to hold",
    "not shown": "the level is not shown to hold",
    "exceeded": "the level is exceeded",
}
"""What is said of a stated risk, by ``level`` of ``evaluation.report.report.abstention``."""
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
FINDINGS = {"favoured": "favours", "harmed": "harms"}
MOST_NAMES = 3
"""Most favoured systems that a line names, and most harmed ones."""
ORDERS = {"given": "given order alone", "swapped": "swapped order alone", "merged": "both merged"}
LENGTH_NAMES = {
    "preference": "Leaning to the longer response",
    "longer_against_people": "Longer chosen where people chose the shorter",
    "shorter_against_people": "Shorter chosen where people chose the longer",
    "difference": "Difference of these two shares",
}
UNCORRECTED = "uncorrected"
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


def published_shares(judge: str) -> dict[str, float]:
    """Look up a judge's published figures as shares, under the names that a report gives them."""
    names = (*ERROR_TYPES, "type_accuracy", "score_accuracy")
    figures = (*TABLE_5[judge], TABLE_4[judge][-1])
    return {name: round(value / 100, 4) for name, value in zip(names, figures, strict=True)}


def markdown_templates(folder: Path) -> Environment:
    """Build the environment of a folder's Markdown templates.

    Of its filters, ``intervals`` and ``numbers`` make a cell for each of the named figures, and
    ``header`` and ``row`` lines of a table.
    """
    # This is Markdown, and ``row`` escapes what would break a table.
    environment = templates([folder], autoescape=False, keep_trailing_newline=True)
    environment.filters |= {
        "chance": chance_text,
        "intervals": lambda figures, names: [with_interval(figures[name]) for name in names],
        "numbers": lambda figures, names: [number(figures.get(name)) for name in names],
        "header": table_header,
        "row": table_row,
        "prefix": lambda text, prefix: f"{prefix}{text}",
    }
    return environment


def templates(folders: Sequence[Path], **options: Any) -> Environment:
    """Build the environment of templates, with filters for figures and options of jinja2."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    options |= {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=FileSystemLoader(folders), **options)
    environment.filters |= {"number": number, "with_interval": with_interval, "p_value": p_value}
    return environment


def number(value: float | None, digits: int = 3) -> str:
    """Write a figure as text, or a dash where it does not exist."""
    return "-" if value is None else f"{value:.{digits}f}"


def with_interval(measured: Mapping[str, Any] | None) -> str:
    """Write ``0.914 [0.899, 0.928]``; without brackets where there is no interval.

    A calibration error has no interval; beside it stands what chance alone gives:
    ``0.033 (chance 0.030, up to 0.042)``.
    """
    if measured is None or measured["value"] is None:
        return "-"
    if chance := measured.get("chance"):
        return f"{number(measured['value'])} (chance {chance_text(chance)})"
    if measured["low"] is None and measured["high"] is None:
        return number(measured["value"])
    return f"{number(measured['value'])} [{number(measured['low'])}, {number(measured['high'])}]"


def chance_text(chance: Mapping[str, Any]) -> str:
    """Write the error that a calibrated judge has by chance: its mean and its 95th percentile."""
    return f"{number(chance['mean'])}, up to {number(chance['high'])}"


def p_value(p: float) -> str:
    """Write a p-value as text, with a floor below which digits mean nothing."""
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay out a Markdown table: first column to the left, the others to the right."""
    return "\n".join([table_header(header), *map(table_row, rows)])


def table_header(names: Sequence[str]) -> str:
    """Write the two lines that begin a Markdown table: names of the columns, and alignment."""
    return "\n".join([table_row(names), table_row([":--", *["--:"] * (len(names) - 1)])])


def table_row(values: Iterable[object]) -> str:
    r"""Write a row of a Markdown table.

    What would end a cell, or begin an HTML tag, a link or a picture, is escaped, as a viewer would
    fetch a picture that a response names. Control characters become escapes such as ``\x1b``.
    """
    cells = []
    for value in values:
        text = one_line(re.sub(r"[\r\n]+", " ", str(value)))
        text = re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", text).replace("](", "]&#40;")
        # Begins where a run does: else each run would be read again from each of its places.
        cells.append(re.sub(r"(?<!\\)(\\*)\|", r"\1\1\|", text))
    return f"| {' | '.join(cells)} |"


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
