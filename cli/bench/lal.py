"""``custos bench lal``: logit advantage loss between the levels of TruthfulVQA."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.options import JsonOut
from cli.shared.screen import interval_table, wide_console
from judging.files.records import write_json


def lal(
    results: Annotated[
        Path,
        typer.Option(
            help="Read this JSON list of objects with case (set_id, id, level, answer) and "
            "result.option_logits."
        ),
    ],
    json_out: JsonOut = None,
) -> None:
    """Measure the logit advantage loss between the levels of TruthfulVQA, per set and on average.

    Example: custos bench lal --results logits.json --json lal.json
    """
    from benchmarks.framework.files import error_location, read_file
    from benchmarks.truthfulvqa.logit_advantage import measure_lal
    from evaluation.estimate import without_nan

    rows = list(read_file(results))
    with error_location(results):
        measured = without_nan(measure_lal(rows))
    if json_out is not None:
        write_json(json_out, measured)
    console = wide_console()
    console.print(interval_table("logit advantage loss", {"mean": measured["intervals"]}))
    console.print(f"{measured['sets']} sets, {measured['complete_sets']} with all three levels")
