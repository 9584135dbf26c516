"""``custos plan``: what a training run needs before anything is loaded, and how many labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.shared.options import AsJson, Keys, with_groups
from cli.shared.outputs import CommandGroup, Verb, claim_text, output_file
from cli.shared.screen import in_columns
from judging.errors import CustosError
from judging.files.atomic import write_text

if TYPE_CHECKING:
    from evaluation.intervals import Floats
    from train.plan.planner import RunPlan

HALF_WIDTH, MARGIN, RISK = 0.03, 0.02, 0.05
"""What is planned where nothing is asked for."""
ACCURACY, RATE, KEPT, SENSITIVITY = 0.9, 0.5, 0.8, 0.9
"""Guesses where nothing is known."""
POINTS = 60
"""Points of a curve of the page."""
LEAST_IN_MINUTES = 120
"""A time of at least so many seconds is given in minutes."""
FEW_ROWS = 8
"""With fewer rows in a step a GPU is likely to idle; a guess, not measured."""
MEANINGS = {
    "weights": "the frozen backbone",
    "adapter": "what is trained, in float32",
    "gradients": "one for each trained number",
    "optimizer": "two numbers of AdamW for each trained one",
    "gathered": "layers put together for a pass, and their gradients",
    "activations": "kept from the forward pass",
    "logits": "at supervised positions",
    "pictures": "pixels and the vision tower",
    "workspace": "intermediate results",
    "buckets": "gradients on their way between GPUs",
    "gaps": "between tensors, which the C library keeps",
    "reserve": "the process and its libraries",
}


class Plans(CommandGroup):
    """Group of plans; ``custos plan RECIPE`` is short for ``custos plan training RECIPE``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the verb before a recipe or its options."""
        if args and args[0] not in (*self.commands, "--help"):
            args = ["training", *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest


app = typer.Typer(
    no_args_is_help=True,
    help="Say what a training run needs ('custos plan RECIPE' for short), or how many labels.",
)


@app.command(cls=Verb)
@with_groups
def training(
    recipe: str,
    keys: Keys = None,
    gpus: Annotated[int, typer.Option(min=0)] = 1,
    shared: Annotated[bool, typer.Option("--shared")] = False,
    memory: Annotated[float | None, typer.Option(min=0.1)] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, metavar="TOKENS_PER_S")] = None,
    tokens_per_row: Annotated[int | None, typer.Option(min=8)] = None,
    pixels_per_row: Annotated[int, typer.Option(min=0)] = 0,
    rows: Annotated[int | None, typer.Option(min=1)] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a training run needs: memory by part, tokens, steps, time, and whether it fits.

    Nothing is loaded or trained. One step runs on tensors without data, with the recipe's model,
    adapter and longest rows, and what it would allocate is counted. This takes some seconds. Sizes
    of Qwen2.5-VL, Qwen3-VL and Qwen2.5-Coder are built in; other backbones need their config.json,
    and embedded ones are fetched first (98 MB) where they are not here. The exit status is 0
    whether the run fits or not.

    Example: custos plan training hieval_stage1 --gpus 8 --memory 80 --rate 20000
    --tokens-per-row 600 --rows 50000

    Example: custos plan training truthful_judge --gpus 4 --shared --memory 24 --tokens-per-row 1500
    --rows 10000

    Example: custos plan training embedded/mine --gpus 0 data.train=labelled.jsonl data.val=null

    Options:
        recipe: A file, a name in 'custos recipe list', or a task in 'custos tasks'.
        gpus: GPUs, one process for each; 0: the CPU.
        shared: Plan for GPUs that share one model, as 'custos train RECIPE --config-file fsdp2' has
            them do. Default: each holds a copy.
        memory: GiB of one GPU. Default: 78, an H100; with --gpus 0 that of this machine.
        rate: Tokens that one GPU trains on in a second, as a short run printed or you guess.
            Default: no time is given.
        tokens_per_row: Plan without data, with rows of so many tokens. Default: the recipe's files.
        pixels_per_row: Pixels of the picture of such a row.
        rows: Number of such rows. Default: unknown.
    """
    from train.launch.run_plan import plan_run

    result = plan_run(
        recipe,
        keys or [],
        gpus=gpus,
        memory=memory,
        rate=rate,
        shared=shared,
        tokens_per_row=tokens_per_row,
        pixels_per_row=pixels_per_row,
        num_rows=rows,
    )
    if as_json:
        facts = {
            "backbone": result.recipe.backbone,
            "parameters": result.memory.parameters,
            "trained": result.memory.trained,
            "rows": result.num_rows or None,
            "longest_row_tokens": result.longest.instruction + result.longest.length,
            "counted_by": result.counted,
            "batch_size": result.recipe.optim.batch_size,
            "micro_batch": result.micro_batch,
            "gradient_checkpointing": result.checkpointing,
            "checkpointing_reason": result.reason,
            "attention": result.attention,
            "tokens_per_step": result.tokens_per_step,
            "steps": result.steps,
            "seconds": result.seconds,
            "bytes": result.memory.parts(),
            "total_bytes": result.memory.total,
            **asdict(result.hardware),
            "fits": result.fits,
            "advice": result.advice,
        }
        typer.echo(json.dumps(facts, indent=1))
    else:
        typer.echo(_as_text(result))


def _as_text(plan: RunPlan) -> str:
    from train.plan.planner import in_gib

    memory, row, gpus = plan.memory, plan.longest, plan.hardware.gpus
    counted = f"counted by {plan.counted}" if plan.num_rows else f"from {plan.counted}"
    pictures = f", {row.patches:,} patches" if row.patches else ""
    num_rows = f"{plan.num_rows:,}" if plan.num_rows else "unknown"
    longest = f"the longest {row.instruction + row.length:,} tokens{pictures}, {counted}"
    reason = f": {plan.reason}" if plan.reason else ""
    facts = [
        ("backbone", plan.recipe.backbone),
        ("parameters", f"{memory.parameters:,}; trained {memory.trained:,}"),
        ("rows", f"{num_rows}; {longest}"),
    ]
    if gpus > 1:
        size = plan.recipe.optim.batch_size
        share = f"{size / gpus:.3g} of optim.batch_size={size}"
        if size < FEW_ROWS * gpus:
            share += (
                f": few, so GPUs may wait for each other; optim.batch_size={FEW_ROWS * gpus} gives "
                f"{FEW_ROWS}, and is another judge's run"
            )
        facts.append(("rows a GPU", share))
    facts += [
        ("micro-batch", f"{plan.micro_batch} of the longest rows"),
        ("checkpointing", f"{'on' if plan.checkpointing else 'off'}{reason}"),
        ("attention", plan.attention),
        ("tokens a step", f"{plan.tokens_per_step:,}"),
        ("steps", "unknown: give --rows" if plan.steps is None else f"{plan.steps:,}"),
    ]
    if plan.seconds:
        hours, minutes = divmod(round(plan.seconds / 60), 60)
        time = f"{hours:,} h {minutes} min" if hours else f"{minutes} min"
        is_short = plan.seconds < LEAST_IN_MINUTES
        facts.append(("time", f"{max(1, round(plan.seconds))} s" if is_short else time))
    sizes = [
        (f"  {part}", in_gib(size).rjust(10), MEANINGS[part])
        for part, size in plan.memory.parts().items()
        if size
    ]
    device = "on each GPU" if gpus else "on the CPU"
    total = f"{in_gib(plan.memory.total)} of {plan.hardware.memory:.3g} GiB"
    verdict = "fits" if plan.fits else f"does not fit; {plan.advice}"
    return "\n".join(
        [*in_columns(facts), f"memory {device}:", *in_columns(sizes), f"{total}: {verdict}"]
    )


@app.command(cls=Verb)
@with_groups
def labels(
    half_width: Annotated[float | None, typer.Option(min=0.001, max=0.5)] = None,
    margin: Annotated[float | None, typer.Option(min=0.001, max=0.5)] = None,
    risk: Annotated[float | None, typer.Option(min=0.001, max=0.5)] = None,
    items: Annotated[int | None, typer.Option(min=2)] = None,
    like: Path | None = None,
    rows_per_question: Annotated[float | None, typer.Option(min=1)] = None,
    correlation: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    accuracy: Annotated[float | None, typer.Option(min=0.01, max=0.99)] = None,
    changed: Annotated[float | None, typer.Option(min=0.001, max=1)] = None,
    kept: Annotated[float, typer.Option(min=0.01, max=1)] = KEPT,
    error: Annotated[float | None, typer.Option(min=0, max=0.5)] = None,
    sensitivity: Annotated[float, typer.Option(min=0, max=1)] = SENSITIVITY,
    specificity: Annotated[float, typer.Option(min=0, max=1)] = SENSITIVITY,
    rate: Annotated[float, typer.Option(min=0.001, max=0.999)] = RATE,
    html_out: Annotated[Path | None, typer.Option("--html", callback=output_file)] = None,
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

    Options:
        half_width: Half of the 95 % interval that you want: .03 is 3 points on either side.
            Default: .03 if nothing is asked for.
        margin: Loss that a judge that is as good is to be shown not to have, as 'custos compare
            --gate --margin' tests it. Default: .02 if nothing is asked for.
        risk: Share of wrong verdicts among those kept that is to be found and shown, as in 'custos
            grade --risk'. Default: .05 if nothing is asked for.
        items: Number of graded rows of which people label some, so that a rate over all is known to
            the half-width. Default: people label every row.
        like: Folder of 'custos eval' whose accuracy, rows on a question and their correlation are
            taken. Default: those below.
        rows_per_question: Rows on a question. Default: 1.
        correlation: How far rows on a question are alike, right or wrong together. Default: .2, and
            with --like as measured, but for the difference of two judges.
        accuracy: Your guess of the accuracy. Default: .9.
        changed: Your guess of the share of rows on which just one of two judges is right. Default:
            1 less the accuracy.
        kept: Your guess of the share of verdicts kept at the risk.
        error: Your guess of the true share of wrong ones among them. Default: half the risk.
        sensitivity: Share of people's 1s that the judge calls 1.
        specificity: Share of people's 0s that the judge calls 0.
        rate: Your guess of people's share of 1s.
        html_out: Write a page with a picture, labels against width, to this file. Default: none.
    """
    import numpy as np

    from evaluation.correction.label_plan import (
        MOST_QUESTIONS,
        Questions,
        expected_half_widths,
        gate_needs,
        judge_correlation,
        labels_needed,
        rate_half_width,
        rate_needs,
        risk_needs,
        threshold_needs,
    )
    from evaluation.intervals import LIKENESS
    from evaluation.outcomes import gather, label_set, load_evaluation
    from evaluation.report.page import drawn_url, page_templates
    from evaluation.report.plots import draw_label_plan

    claim_text(html_out, "--html", "Content-Security-Policy", "<title>How many labels?</title>")
    shape = Questions()
    if like is not None:
        examples, verdicts = load_evaluation(like)
        outcomes = gather(examples, verdicts, label_set(examples, verdicts))
        outcomes = outcomes.take(outcomes.scored)
        if len(set(outcomes.clusters.tolist())) < 2:
            raise CustosError(
                f"--like '{like}': a plan needs labelled rows on two questions or more"
            )
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

    of_judge = judge_correlation(rate, sensitivity, specificity)

    def planned() -> Iterator[tuple[str, str, int | None, int | None]]:
        """Yield a key, what is to be shown, questions, and rows."""
        if half_width is not None and items is None:
            text = f"an accuracy of {accuracy:.3g}, {half_width:g} either side"
            yield "accuracy", text, *rate_needs(half_width, accuracy, shape)
        if half_width is not None and items is not None:
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
    assumed = "every row is its own question"
    if shape.alike != 1:
        uneven = "" if shape.even == 1 else f" (of a row on average {shape.alike:.3g})"
        assumed = f"{shape.rows:.3g} rows on a question{uneven}, alike by {shape.correlation:.2g}"
    if html_out is not None:
        width = half_width if half_width is not None else HALF_WIDTH
        curves: dict[str, tuple[Floats, Floats]]
        if items is None:
            figure = f"an accuracy of {accuracy:.3g}"
            needed = rate_needs(width, accuracy, shape).questions or 1000
            spread = np.unique(np.round(np.geomspace(max(3, needed / 8), 3 * needed, POINTS)))
            rows = spread * shape.rows
            curves = {"people's labels": (rows, rate_half_width(spread, accuracy, shape))}
            if shape.alike > 1:
                alone = rate_half_width(rows, accuracy, Questions())
                curves["as many rows, each its own question"] = (rows, alone)
        else:
            figure = f"a share of {rate:g}"
            drawn = np.unique(np.round(np.geomspace(min(20, items), items, POINTS)))
            widths = expected_half_widths(drawn, items, rate, of_judge, shape)
            named = zip(("with the judge", "people's labels alone"), widths, strict=True)
            curves = {name: (drawn, of_curve) for name, of_curve in named}
        page = page_templates().get_template("plan.html")
        picture = drawn_url(lambda path: draw_label_plan(curves, width, path))
        facts = {"assumed": assumed, "half_width": width, "figure": figure, "items": items}
        write_text(html_out, page.render(needs=cells, picture=picture, **facts))
    if as_json:
        needs = {key: {"questions": questions, "rows": rows} for key, _, questions, rows in lines}
        typer.echo(json.dumps({**needs, "assumed": {**asdict(shape), "accuracy": accuracy}}))
        return
    for line in (*in_columns([("to show", "questions", "rows"), *cells]), assumed):
        typer.echo(line)


def _count(number: int | None, most: int) -> str:
    return f"more than {most:,}" if number is None else f"{number:,}"
