"""``custos prep construct screen``: drop the questions that all models answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.prep.construct.asking import Rows
from cli.shared.output_folders import check_own_rows, output_file
from cli.shared.request_rows import read_requests
from judging import CustosError, JudgeRequest
from judging.files.records import write_records


def screen(
    rows: Rows,
    responses: Annotated[
        list[Path],
        typer.Option(help="Read this file of custos prep construct respond. May be repeated."),
    ],
    verdicts: Annotated[
        list[Path],
        typer.Option(
            help="Read this file of custos prep construct verdicts on them. May be repeated."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(callback=output_file, help="Write the kept rows to this JSONL file."),
    ],
    models: Annotated[
        int, typer.Option(min=1, help="Drop a row only if this many models have answered it.")
    ] = 4,
) -> None:
    """Drop the questions that every model answers, as SimpleVQA does with four models.

    A response is right if all judges give it the best label of its task. A question is kept if at
    least one response is wrong; right_answers says which models answer it. Questions without a
    wrong response, for which responses or labels are missing, are in neither and are counted.

    Example: custos prep construct screen --in data/checked/rows.jsonl
    --responses data/answers/rows.jsonl --verdicts data/judges/verdicts.json --out data/hard.jsonl
    """
    from data_prep.construction.model_writer import load_rows
    from data_prep.construction.responses import RIGHT_ANSWERS
    from data_prep.construction.responses import screen as screen_rows
    from data_prep.construction.steps.base import StepRow
    from data_prep.splits.filters import read_verdicts

    check_own_rows("--out", out, [RIGHT_ANSWERS])
    items = load_rows(rows, StepRow)
    answered = [
        request
        for path in responses
        for _, request in read_requests(path)
        if isinstance(request, JudgeRequest)
    ]
    labels = {name: given for path in verdicts for name, given in read_verdicts(path).items()}
    screened = screen_rows(items, answered, labels, models)
    if not screened.kept:
        raise CustosError(f"{rows}: no question is left that a model answers wrongly")
    write_records(out, screened.kept)
    typer.echo(
        f"{len(screened.kept)} kept, {len(screened.dropped)} answered by all, "
        f"{len(screened.unscreened)} not screened: {out}"
    )
