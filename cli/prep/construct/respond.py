"""``custos prep construct respond``: responses of several models to a file of questions."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.prep.construct.asking import Asking, OutFolder, Rows, show_rejected
from cli.shared.bad_rows import check_skipped
from cli.shared.command_line import command_line
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import AllowDropped
from cli.shared.options.server import PriceOptions, RequestOptions, ServerUrl, Temperature
from cli.shared.output_folders import check_keeps_sources
from cli.shared.progress import job_bar, show_spent


@with_groups
def respond(
    rows: Rows,
    base_url: ServerUrl,
    models: Annotated[
        list[str],
        typer.Option("--model", help="Ask this model on the server. May be repeated."),
    ],
    out: OutFolder,
    task: Annotated[
        str | None,
        typer.Option(help="Judge the responses under this task. Default: the row's, or hieval-qs."),
    ] = None,
    *,
    request_options: RequestOptions,
    temperature: Temperature = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Stop a response after this many tokens; metadata.cut_off marks it. Default: no "
            "limit.",
        ),
    ] = None,
    price_options: PriceOptions,
    allow_dropped: AllowDropped = False,
) -> None:
    """Have several models answer every question of a file.

    A row has the fields id and question, and may have references (or answer), reference_mode,
    choices, images, task, variant and metadata. All responses go to OUT/rows.jsonl, ready for
    custos grade and for people's sheets; each model's replies are kept in a folder of its own. If
    the command is stopped, the same command continues where it stopped. For models on another
    server, run it again with another --out and join the two files of rows.

    Example: custos prep construct respond --in questions.jsonl --base-url http://127.0.0.1:8000/v1
    --model model-a --model model-b --out data/answers
    """
    from clients.messages import Decoding
    from data_prep.construction.model_writer import ROWS, load_rows
    from data_prep.construction.responses import Question, model_folder, write_responses
    from data_prep.splits.manifest import describe_file
    from judging.tasks import get_task

    check_keeps_sources(out, (ROWS,), [rows])
    bad_rows: list[str] = []
    questions = load_rows(rows, Question, bad_rows)
    check_skipped(rows, bad_rows, allow_dropped=allow_dropped)
    if task is not None:
        get_task(task)
        questions = [question.model_copy(update={"task": task}) for question in questions]
    source = {**describe_file(rows), "bad_rows": len(bad_rows)}
    asking = Asking(
        base_url,
        request_options,
        Decoding(temperature=temperature, max_tokens=max_tokens),
        source,
        price_options.read(),
    )
    with job_bar(asking.prices) as show:
        writers = [asking.writer(model, model_folder(out, model), show) for model in models]
        manifest = write_responses(questions, writers, out, source, command_line())
    for model, account in manifest["models"].items():
        typer.echo(f"{model}: {account['counts']['out']} of {account['counts']['in']} answered")
        show_rejected(account["rejected"], model_folder(out, model))
        show_spent(account)
    typer.echo(f"{manifest['counts']['responses']} responses: {out / 'rows.jsonl'}")
