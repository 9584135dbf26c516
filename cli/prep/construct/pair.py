"""``custos prep construct pair``: pairs of responses for people to compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.bad_rows import show_problems
from cli.shared.output_folders import check_own_rows, output_file
from cli.shared.request_rows import read_requests
from judging import CustosError, JudgeRequest
from judging.files.records import write_records


def pair(
    responses: Annotated[
        list[Path],
        typer.Option(
            "--in", help="Read this file of custos prep construct respond. May be repeated."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(callback=output_file, help="Write the pairs to this JSONL file."),
    ],
    match_ups: Annotated[
        int, typer.Option(min=1, help="Let each response meet at least this many others.")
    ] = 3,
    scores: Annotated[
        Path | None,
        typer.Option(
            callback=output_file,
            help="Write the responses to this JSONL file, too, up to four of a question in a row, "
            "for form truthful-scores. Default: none.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Another seed draws other pairs, and other responses as A.")
    ] = 0,
) -> None:
    """Pair responses to the same question, each with three others at least, as TruthfulJudge does.

    No more pairs are made than that takes. Questions with too few responses are left out and
    counted: three match-ups take the responses of four models. Who answered is in the metadata, and
    nobody who fills in a sheet sees it.

    Example: custos prep construct pair --in data/answers/rows.jsonl --out pairs.jsonl
    """
    from data_prep.construction.responses import KEYS, group_responses, pair_responses

    for option, path in (("--out", out), ("--scores", scores)):
        if path is not None:
            check_own_rows(option, path, KEYS)
    answered: list[JudgeRequest] = []
    for path in responses:
        problems: dict[int, str] = {}
        for number, request in read_requests(path):
            if isinstance(request, JudgeRequest):
                answered.append(request)
            else:
                problems[number] = request.message or request.status
        show_problems(path, problems)
    paired = pair_responses(answered, match_ups, seed)
    if not paired.pairs:
        raise CustosError(
            f"no question has the responses of {match_ups + 1} models, which {match_ups} match-ups "
            "of each response take; add models, or lower --match-ups"
        )
    write_records(out, paired.pairs)
    if scores is not None:
        groups = group_responses(answered, seed)
        write_records(scores, groups)
        typer.echo(f"{len(answered)} responses to score, in {len(groups)} rows: {scores}")
    typer.echo(
        f"{len(paired.pairs)} pairs, {len(paired.too_few)} questions with too few responses: {out}"
    )
