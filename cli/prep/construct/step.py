"""``custos prep construct step``: one request to a model about each row."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.prep.construct.asking import Asking, OutFolder, Rows, show_rejected
from cli.shared.bad_rows import check_skipped
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import AllowDropped
from cli.shared.options.server import (
    MaxTokens,
    PriceOptions,
    RequestOptions,
    ServerUrl,
    Temperature,
    Writer,
)
from cli.shared.output_folders import check_keeps_sources
from cli.shared.progress import job_bar, show_spent


@with_groups
def step(
    name: Annotated[str, typer.Argument(help="Name of the step; see custos prep construct steps.")],
    rows: Rows,
    base_url: ServerUrl,
    model: Writer,
    out: OutFolder,
    *,
    request_options: RequestOptions,
    temperature: Temperature = None,
    max_tokens: MaxTokens = 4096,
    price_options: PriceOptions,
    allow_dropped: AllowDropped = False,
) -> None:
    """Have a model do one step of a construction on every row; write the rows that come of it.

    The rows are in OUT/rows.jsonl, for the next step. The model replies in JSON, and each reply is
    checked against the step's schema; one that does not fit is asked for once more. Rows without a
    usable reply are listed in OUT/rejects.jsonl. If the command is stopped, the same command
    continues where it stopped and sends failed requests again.

    Example: custos prep construct step simplevqa-rewrite --in seeds.jsonl
    --base-url https://api.openai.com/v1 --model gpt-4o --key-env OPENAI_API_KEY --out data/new
    """
    from clients.messages import Decoding
    from data_prep.construction.model_writer import ROWS, load_rows, run_step
    from data_prep.construction.steps.base import STEPS
    from data_prep.splits.manifest import describe_file

    chosen = STEPS.get(name)
    check_keeps_sources(out, (ROWS,), [rows])
    bad_rows: list[str] = []
    loaded = load_rows(rows, chosen.row_type, bad_rows)
    check_skipped(rows, bad_rows, allow_dropped=allow_dropped)
    asking = Asking(
        base_url,
        request_options,
        Decoding(temperature=temperature, max_tokens=max_tokens),
        {**describe_file(rows), "bad_rows": len(bad_rows)},
        price_options.read(),
    )
    with job_bar(asking.prices) as show:
        manifest = run_step(chosen, loaded, asking.writer(model, out, show))
    counts = manifest["counts"]
    show_rejected(manifest["rejected"], out)
    show_spent(manifest)
    typer.echo(f"{counts['in']} rows in, {counts['out']} rows out: {out / 'rows.jsonl'}")
