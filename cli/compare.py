"""``custos compare``: two judges on the same items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.eval import FILES
from cli.shared.options import with_groups
from cli.shared.outputs import claim, output_file
from evaluation.comparisons.compare import (
    MARGIN,
    MIN_COMMON,
    compare_evaluations,
    gate,
    gate_outcome,
    render_comparison,
)
from judging.files.records import write_json

NOT_ENOUGH_ROWS = 3
"""Exit status where it is not shown that a judge is no worse; 2 is that of a wrong command line."""


@with_groups
def compare(
    a: Path,
    b: Path,
    json_out: Annotated[Path | None, typer.Option("--json", callback=output_file)] = None,
    gated: Annotated[bool, typer.Option("--gate")] = False,
    margin: Annotated[float, typer.Option(min=0.0, max=1.0)] = MARGIN,
    min_common: Annotated[int, typer.Option(min=1)] = MIN_COMMON,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Say which of two judges agrees better with people, and how sure that is.

    Both folders come from custos eval on the same data. Differences are B minus A, on the items
    that both judges scored. Intervals resample questions.

    With --gate, a line says for every part of the items whether B is shown to be no worse than A by
    the margin, worse, or neither. The tests are paired and one-sided and keep whole questions
    together. Those of a loss are corrected for their number (Holm), so that a judge that is nowhere
    worse is refused in at most 5 % of all cases. The exit status is 0 if B is shown to be no worse
    on all items and worse on no part, 1 if it is worse somewhere, 3 if there are not enough rows.

    Before a new judge replaces an old one: custos compare runs/old/eval runs/new/eval --gate

    Example: custos compare runs/plain/eval runs/focal/eval --json comparison.json

    Options:
        a: Evaluation folder of judge A.
        b: Evaluation folder of judge B.
        json_out: Write the comparison to this file too.
        gated: Exit with status 1 if B is significantly worse than A, on all items or on a data set,
            a label of people or a slice of the report; with 3 if the items are too few to show that
            B is no worse.
        margin: Take a loss of accuracy below this for none, with --gate.
        min_common: Refuse to compare on fewer shared items than this.
        seed: Seed of the bootstrap.
    """
    if json_out is not None:
        evaluated = [folder / name for folder in (a, b) for name in FILES]
        claim(json_out, lambda out: True, option="--json", sources=evaluated)
    comparison = compare_evaluations(a, b, min_common=min_common, seed=seed)
    if json_out is not None:
        write_json(json_out, comparison)
    typer.echo(render_comparison(comparison))
    if not gated:
        return
    checks = gate(a, b, margin=margin, min_common=min_common)
    typer.echo()
    for check in checks:
        typer.echo(str(check))
    outcome = gate_outcome(checks)
    if outcome == "worse":
        num_worse = sum(check.outcome == outcome for check in checks)
        typer.echo(f"B is significantly worse in {num_worse} of {len(checks)} checks", err=True)
        raise typer.Exit(1)
    if outcome == "not enough rows":
        typer.echo(
            f"not enough rows: B is nowhere significantly worse, but may lose "
            f"{-checks[0].lowest:.3f} on all items, which is not below the margin of {margin:g}; "
            f"these rows would show a loss of {checks[0].visible:.3f}",
            err=True,
        )
        raise typer.Exit(NOT_ENOUGH_ROWS)
    typer.echo(
        f"B is no worse: it loses less than {margin:g} on all items, and is significantly worse in "
        f"none of {len(checks)} checks"
    )
