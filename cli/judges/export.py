"""``custos export``: a judge as a checkpoint for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.output_folders import output_folder
from cli.shared.request_rows import read_requests
from judging.errors import CustosError
from judging.types import JudgeRequest


def export(
    judge: Annotated[str, typer.Argument(help="Run folder or shipped judge.")],
    merged: Annotated[
        Path,
        typer.Option(
            callback=output_folder,
            help="Write the checkpoint to this new folder, with the adapter merged into the "
            "weights.",
        ),
    ],
    rows: Annotated[
        Path | None,
        typer.Option(
            help="Compare the checkpoint with the judge on the rows of this file. Default: a row "
            "for every rubric of the judge, and one with a picture."
        ),
    ] = None,
) -> None:
    """Export a judge as a checkpoint that transformers and vLLM load without custos.

    The folder has the files of the backbone as they were published, but for its weights, their
    format, and the judge's limits on pictures. Card, calibration and recipe are in the folder
    judge. Before the folder appears, the log-probabilities of all labels are computed through
    transformers in float32 and compared with the judge's own.

    Example: custos export embedded-qs --merged runs/embedded-qs-merged
    """
    from judging.judge.export import export_merged
    from judging.judge.notes import KNOWS_NOTHING

    done = export_merged(judge, merged, _requests(rows) if rows else ())
    parity = done.parity
    typer.echo(
        f"{merged}: {done.name} on {done.backbone}, merged, {done.dtype}, {done.num_bytes:,} bytes"
    )
    typer.echo(
        f"label log-probabilities through transformers ({parity.model_class}, "
        f"float32): at most {parity.largest:.1e} nats from the judge's "
        f"({parity.num_scores} labels of {parity.num_rows} rows)"
    )
    if done.random_weights:
        typer.echo(KNOWS_NOTHING)


def _requests(rows: Path) -> list[JudgeRequest]:
    """Return the requests of a file.

    Raises:
        CustosError: If it has none, or a row is no valid request.
    """
    requests = []
    for number, request in read_requests(rows):
        if not isinstance(request, JudgeRequest):
            raise CustosError(f"{rows}: row {number}: {request.message}")
        requests.append(request)
    if not requests:
        raise CustosError(f"{rows}: no rows; give some, or leave --rows out")
    return requests
