"""``custos plan labels``: how many questions and rows people must label."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.shared.columns import in_columns
from cli.shared.options.output import AsJson
from cli.shared.output_folders import output_file
from judging import CustosError
from judging.files.atomic import write_text

if TYPE_CHECKING:
    from evaluation.correction.label_plan import Questions
    from evaluation.intervals import Floats
    from evaluation.outcomes import Outcomes

HALF_WIDTH, MARGIN, RISK = 0.03, 0.02, 0.05
"""What is planned where nothing is asked for."""
ACCURACY, RATE, KEPT, SENSITIVITY = 0.9, 0.5, 0.8, 0.9
"""Guesses where nothing is known."""
POINTS = 60
"""Points of a curve of the page."""
Line = tuple[str, str, int | None, int | None]
"""Key, what is to be shown, questions, rows."""


def labels(
    half_width: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=0.5,
            help="Half of the 95 % interval that you want: .03 is 3 points on either side. "
            "Default: .03 if nothing is asked for.",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=0.5,
            help="Loss that a judge that is as good is to be shown not to have, as 'custos compare "
            "--gate --margin' tests it. Default: .02 if nothing is asked for.",
        ),
    ] = None,
    risk: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=0.5,
            help="Share of wrong verdicts among those kept that is to be found and shown, as in "
            "'custos grade --risk'. Default: .05 if nothing is asked for.",
        ),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Number of graded rows of which people label some, so that a rate over all is "
            "known to the half-width. Default: people label every row.",
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            help="Folder of 'custos eval' whose accuracy, rows on a question and their correlation "
            "are taken. Default: those below."
        ),
    ] = None,
    rows_per_question: Annotated[
        float | None, typer.Option(min=1, help="Rows on a question. Default: 1.")
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="How far rows on a question are alike, right or wrong together. Default: .2, and "
            "with --like as measured, but for the difference of two judges.",
        ),
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(min=0.01, max=0.99, help="Your guess of the accuracy. Default: .9."),
    ] = None,
    changed: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1,
            help="Your guess of the share of rows on which just one of two judges is right. "
            "Default: 1 less the accuracy.",
        ),
    ] = None,
    kept: Annotated[
        float,
        typer.Option(min=0.01, max=1, help="Your guess of the share of verdicts kept at the risk."),
    ] = KEPT,
    error: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.5,
            help="Your guess of the true share of wrong ones among them. Default: half the risk.",
        ),
    ] = None,
    sensitivity: Annotated[
        float, typer.Option(min=0, max=1, help="Share of people's 1s that the judge calls 1.")
    ] = SENSITIVITY,
    specificity: Annotated[
        float, typer.Option(min=0, max=1, help="Share of people's 0s that the judge calls 0.")
    ] = SENSITIVITY,
    rate: Annotated[
        float, typer.Option(min=0.001, max=0.999, help="Your guess of people's share of 1s.")
    ] = RATE,
    html_out: Annotated[
        Path | None,
        typer.Option(
            "--html",
            callback=output_file,
            help="Write a page with a picture, labels against width, to this file. Default: none.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how many questions and rows people must label for what you want to show.

    Without --half-width, --margin or --risk, all three are planned. Rows on one question are alike,
    so that more questions help more than more rows on each. With --items, people label rows drawn
    by chance (as 'custos review --rows' draws them), and a judge's verdicts on the others help.
    Margin and risk are shown in four of five such samples.

    Example: custos plan labels --rows-per-question 5

    Example: custos plan labels --like runs/report --margin .03

    Example: custos plan labels --half-width .03 --items 2000 --sensitivity .9 --specificity .85
    """
    from evaluation.correction.label_plan import (
        MOST_QUESTIONS,
        Questions,
        gate_needs,
        judge_correlation,
        labels_needed,
        rate_needs,
        risk_needs,
        threshold_needs,
    )
    from evaluation.intervals import LIKENESS

    shape = Questions()
    if like is not None:
        outcomes = _outcomes(like)
        shape = Questions.like(outcomes.right.astype(float), outcomes.clusters)
        if accuracy is None:
            accuracy = min(0.99, max(0.01, float(outcomes.right.mean())))
    if rows_per_question is not None:
        shape = Questions(rows_per_question, rows_per_question, shape.correlation)
    if correlation is not None:
        shape = replace(shape, correlation=correlation)
    accuracy = ACCURACY if accuracy is None else accuracy
    is_open = half_width is margin is risk is items is None
    half_width = HALF_WIDTH if is_open or (items and half_width is None) else half_width
    margin, risk = (MARGIN, RISK) if is_open else (margin, risk)

    def planned() -> Iterator[Line]:
        if half_width is not None and items is None:
            text = f"an accuracy of {accuracy:.3g}, {half_width:g} either side"
            yield "accuracy", text, *rate_needs(half_width, accuracy, shape)
        if half_width is not None and items is not None:
            of_judge = judge_correlation(rate, sensitivity, specificity)
            both = labels_needed(half_width, items, rate, of_judge, shape)
            text = f"a share of {rate:g} of {items:,} rows, {half_width:g} either side"
            yield "with_judge", f"{text}, with the judge", None, both.with_judge
            yield "alone", f"{text}, with labels alone", None, both.alone
        if margin is not None:
            text = f"a judge that is as good is no worse by {margin:g} (compare --gate)"
            differing = 1 - accuracy if changed is None else changed
            # An evaluation of one judge does not show how far differences of two are alike.
            of_difference = LIKENESS if correlation is None else correlation
            found = gate_needs(margin, differing, replace(shape, correlation=of_difference))
            yield "gate", text, *found
        if risk is not None:
            wrong = risk / 2 if error is None else error
            if wrong >= risk:
                raise CustosError(
                    f"--error '{wrong:g}': is not below the risk of {risk:g}, which no number of "
                    "rows can show then; state a larger --risk"
                )
            text = f"a threshold for a risk of {risk:g} (calibrate), a row of each question"
            questions = threshold_needs(risk, wrong, kept)
            yield "threshold", text, questions, questions
            text = f"the risk of {risk:g} holds (eval --risk)"
            yield "risk", text, *risk_needs(risk, wrong, kept, shape)

    lines = list(planned())
    cells = [
        (text, "", _count(rows, items or 0))
        if key in ("with_judge", "alone")
        else (text, _count(questions, MOST_QUESTIONS), _count(rows, MOST_QUESTIONS))
        for key, text, questions, rows in lines
    ]
    if html_out is not None:
        width = half_width if half_width is not None else HALF_WIDTH
        of_judge = judge_correlation(rate, sensitivity, specificity)
        curves = (
            _accuracy_curves(width, accuracy, shape)
            if items is None
            else _corrected_curves(items, rate, of_judge, shape)
        )
        figure = f"an accuracy of {accuracy:.3g}" if items is None else f"a share of {rate:g}"
        write_text(html_out, _page(cells, _assumed(shape), curves, width, figure, items))
    if as_json:
        needs = {key: {"questions": questions, "rows": rows} for key, _, questions, rows in lines}
        typer.echo(json.dumps({**needs, "assumed": {**asdict(shape), "accuracy": accuracy}}))
        return
    for line in in_columns([("to show", "questions", "rows"), *cells]):
        typer.echo(line)
    typer.echo(_assumed(shape))


def _outcomes(folder: Path) -> Outcomes:
    """Return the rows of an evaluation that got a label."""
    from evaluation.declared_labels import label_set
    from evaluation.outcomes import gather, load_evaluation

    examples, verdicts = load_evaluation(folder)
    outcomes = gather(examples, verdicts, label_set(examples, verdicts))
    outcomes = outcomes.take(outcomes.scored)
    if len(set(outcomes.clusters.tolist())) < 2:
        raise CustosError(f"--like '{folder}': a plan needs labelled rows on two questions or more")
    return outcomes


def _assumed(shape: Questions) -> str:
    if shape.alike == 1:
        return "every row is its own question"
    rows = f"{shape.rows:.3g} rows on a question"
    uneven = "" if shape.even == 1 else f" (of a row on average {shape.alike:.3g})"
    return f"{rows}{uneven}, alike by {shape.correlation:.2g}"


def _accuracy_curves(
    half_width: float, accuracy: float, shape: Questions
) -> dict[str, tuple[Floats, Floats]]:
    """Return rows and half-widths of an accuracy, around the wanted one."""
    import numpy as np

    from evaluation.correction.label_plan import Questions, rate_half_width, rate_needs

    needed = rate_needs(half_width, accuracy, shape).questions or 1000
    questions = np.unique(np.round(np.geomspace(max(3, needed / 8), 3 * needed, POINTS)))
    curves = {
        "people's labels": (questions * shape.rows, rate_half_width(questions, accuracy, shape))
    }
    if shape.alike > 1:
        rows = questions * shape.rows
        single = rate_half_width(rows, accuracy, Questions())
        curves["as many rows, each its own question"] = (rows, single)
    return curves


def _corrected_curves(
    items: int, rate: float, correlation: float, shape: Questions
) -> dict[str, tuple[Floats, Floats]]:
    """Return labels and half-widths of a rate over all items."""
    import numpy as np

    from evaluation.correction.label_plan import expected_half_widths

    labels = np.unique(np.round(np.geomspace(min(20, items), items, POINTS)))
    with_judge, alone = expected_half_widths(labels, items, rate, correlation, shape)
    return {"with the judge": (labels, with_judge), "people's labels alone": (labels, alone)}


def _count(number: int | None, most: int) -> str:
    return f"more than {most:,}" if number is None else f"{number:,}"


def _page(
    needs: Sequence[Sequence[str]],
    assumed: str,
    curves: Mapping[str, tuple[Floats, Floats]],
    half_width: float,
    figure: str,
    items: int | None,
) -> str:
    """Return the page of a plan."""
    from evaluation.report.page import drawn_url, page_templates
    from evaluation.report.plots import draw_label_plan

    picture = drawn_url(lambda path: draw_label_plan(curves, half_width, path))
    template = page_templates().get_template("plan.html")
    return template.render(
        needs=needs,
        assumed=assumed,
        picture=picture,
        half_width=half_width,
        figure=figure,
        items=items,
    )
