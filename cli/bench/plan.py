"""``custos bench plan``: how many items people must label."""

from __future__ import annotations

from typing import Annotated

import typer


def plan(
    half_width: Annotated[
        float,
        typer.Option(
            help="Half of the 95 % interval that you want: .03 is 3 points on either side."
        ),
    ],
    items: Annotated[int, typer.Option(help="Number of items of the benchmark.")],
    sensitivity: Annotated[
        float, typer.Option(min=0, max=1, help="Share of people's 1s that the judge calls 1.")
    ],
    specificity: Annotated[
        float, typer.Option(min=0, max=1, help="Share of people's 0s that the judge calls 0.")
    ],
    rate: Annotated[float, typer.Option(help="Your guess of people's share of 1s.")] = 0.5,
) -> None:
    """Say how many items people must label, at random, for the interval that you want.

    Items count as independent. Where several share a picture, more are needed.

    Example: custos bench plan --half-width .03 --items 2000 --sensitivity .9 --specificity .85
    """
    from evaluation.correction.label_plan import judge_correlation, labels_needed

    correlation = judge_correlation(rate, sensitivity, specificity)
    needed = labels_needed(half_width, items, rate, correlation)
    for name, labels in (("with the judge", needed.with_judge), ("labels alone", needed.alone)):
        typer.echo(f"{name}: {labels if labels is not None else f'more than {items}'}")
