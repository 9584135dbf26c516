"""``custos load``: how much load the service bears on this machine."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.output_folders import output_file
from cli.shared.request_rows import read_requests
from judging import CustosError, JudgeRequest
from judging.files.records import write_json


def load(
    source: Annotated[
        Path, typer.Option("--in", help="Read requests from this JSONL, JSON or Parquet file.")
    ],
    out: Annotated[
        Path,
        typer.Option("--json", callback=output_file, help="Write the figures to this JSON file."),
    ],
    judge: Annotated[
        str, typer.Option(help="Run folder, shipped judge or backbone.")
    ] = "embedded-qs",
    rows: Annotated[int, typer.Option(min=1, help="Use at most this many rows.")] = 2000,
    clients: Annotated[int, typer.Option(min=1, help="Call from this many clients at once.")] = 64,
    rows_per_call: Annotated[
        int,
        typer.Option(min=1, help="Send this many rows in one call; our own client sends many."),
    ] = 1,
    overload: Annotated[
        float,
        typer.Option(
            min=1.0,
            help="Rows per second in the flood, as a multiple of what the clients got before.",
        ),
    ] = 5.0,
    seconds: Annotated[float, typer.Option(min=1.0, help="Seconds that the flood lasts.")] = 30.0,
) -> None:
    """Measure how many rows a second a judge grades alone and behind custos serve.

    The rows are graded by the judge alone, behind the service, behind the service in a flood of
    requests, and behind an app that grades one request at a time. Everything runs on this machine.

    Example: custos load --in data/evouna/test.jsonl --json runs/load.json
    """
    from experiments.cost.service_load import measure

    good = (request for _, request in read_requests(source) if isinstance(request, JudgeRequest))
    requests = list(itertools.islice(good, rows))
    if len(requests) < rows_per_call:
        raise CustosError(f"{source}: holds {len(requests)} requests, fewer than a call")
    report = measure(
        judge,
        requests,
        clients=clients,
        rows_per_call=rows_per_call,
        overload=overload,
        overload_seconds=seconds,
        show=lambda line: typer.echo(line, err=True),
    )
    write_json(out, report)
    typer.echo(
        f"{report['service_to_offline']:.0%} of offline "
        f"({report['service_to_offline_of_so_many']:.0%} with as few rows at once), "
        f"{report['overload_to_service']:.0%} of that in the flood: {out}"
    )
