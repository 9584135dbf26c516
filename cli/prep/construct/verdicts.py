"""``custos prep construct verdicts``: labels of several judges on the same responses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.prep.construct.asking import Asking, Models, OutFolder, Rows
from cli.shared.command_line import command_line
from cli.shared.options.groups import with_groups
from cli.shared.options.server import PriceOptions, RequestOptions
from cli.shared.progress import job_bar
from cli.shared.request_rows import read_requests
from judging import CustosError, JudgeRequest, Verdict


@with_groups
def verdicts(
    rows: Rows,
    out: OutFolder,
    base_url: Annotated[
        str | None,
        typer.Option(
            help="Ask the OpenAI-compatible server at this address. Default: ask none, take "
            "--graded files alone."
        ),
    ] = None,
    models: Models = None,
    graded: Annotated[
        list[Path] | None,
        typer.Option(
            help="Take the labels of this file of custos grade too: one more judge. May be "
            "repeated. Default: none."
        ),
    ] = None,
    *,
    request_options: RequestOptions,
    price_options: PriceOptions,
) -> None:
    """Collect the labels that several judges give the same responses.

    Chat models are told the instruction of each row's task and asked at temperature 0. The labels
    go to OUT/verdicts.json, in the shape that --verdicts of custos prep table and custos prep
    hieval take: they keep the rows on which enough judges differ from people. If the command is
    stopped, the same command continues where it stopped.

    Example: custos prep construct verdicts --in data/labels/rows.jsonl --base-url
    http://127.0.0.1:8000/v1 --model judge-a --model judge-b --out data/judges
    """
    from clients.messages import Decoding
    from data_prep.construction.responses import model_folder
    from data_prep.construction.verdict_lists import VERDICTS, write_verdicts
    from data_prep.splits.manifest import describe_file

    if (base_url is None) != (not models):
        raise CustosError("--base-url and --model go together; give both or neither")
    if not models and not graded:
        raise CustosError("name a judge: --base-url with --model, or --graded")
    requests = _requests(rows)
    source = dict(describe_file(rows))
    asking = Asking(
        base_url or "",
        request_options,
        Decoding(temperature=0.0),
        source,
        price_options.read(),
    )
    with job_bar(asking.prices) as show:
        judges = [asking.writer(model, model_folder(out, model), show) for model in models or ()]
        manifest = write_verdicts(requests, judges, graded or (), out, source, command_line())
    for judge, num_missing in manifest["without_label"].items():
        typer.echo(f"{judge}: {len(requests) - num_missing} of {len(requests)} labels")
    typer.echo(f"{len(manifest['without_label'])} judges: {out / VERDICTS}")


def _requests(rows: Path) -> list[JudgeRequest]:
    """Read responses to judge.

    Raises:
        CustosError: If a row cannot be judged, or two have the same id.
    """
    requests: dict[str, JudgeRequest] = {}
    for number, request in read_requests(rows):
        if isinstance(request, Verdict):
            raise CustosError(f"{rows} row {number}: {request.message}")
        if request.id in requests:
            raise CustosError(f"{rows} row {number}: id '{request.id}' occurs twice")
        requests[request.id] = request
    return list(requests.values())
