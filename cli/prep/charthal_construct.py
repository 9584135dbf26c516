"""``custos prep charthal-construct``: ChartHal-style questions about one's own charts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from cli.prep.construct.asking import Asking
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
from cli.shared.output_folders import Verb, check_is_new, output_file, output_folder
from cli.shared.progress import job_bar
from cli.shared.tables import count_table

FORM = "charthal"

app = typer.Typer(
    no_args_is_help=True,
    help="Have a model write ChartHal-style questions about charts, and people check them.",
)

Folder = Annotated[Path, typer.Argument(help="Folder that generate wrote.")]


@app.command(cls=Verb)
@with_groups
def generate(
    charts: Annotated[
        Path,
        typer.Option(
            help="Read this JSONL, JSON or Parquet file of charts with the fields id, images, "
            "num_subplots, discipline and chart_type, or the validation charts of this clone of "
            "CharXiv's repository, which ChartHal samples from (images.zip unpacked in images/)."
        ),
    ],
    count: Annotated[
        int, typer.Option(min=1, help="Sample this many charts; each gets 12 questions.")
    ],
    base_url: ServerUrl,
    model: Writer,
    out: Annotated[
        Path,
        typer.Option(
            callback=output_folder,
            help="Write questions, pictures and manifest.json to this folder.",
        ),
    ],
    seed: Annotated[int, typer.Option(min=0, help="Another seed samples other charts.")] = 0,
    *,
    request_options: RequestOptions,
    temperature: Temperature = None,
    max_tokens: MaxTokens = 4096,
    price_options: PriceOptions,
    allow_dropped: AllowDropped = False,
) -> None:
    """Sample charts and have a model write a question for every cell.

    Charts of one and two subplots come 3:2, disciplines in proportion, and every chart type stays
    in. If the command is stopped, the same command continues where it stopped and sends failed
    requests again.

    Example: custos prep charthal-construct generate --charts charts.jsonl --count 100
    --base-url https://api.openai.com/v1 --model o4-mini --key-env OPENAI_API_KEY --out data/mine
    """
    from clients.messages import Decoding
    from data_prep.construction.charthal import (
        FILES,
        generate_questions,
        load_charts,
        load_charxiv,
        sample_charts,
    )
    from data_prep.splits.manifest import describe_file

    bad_rows: list[str] = []
    source: dict[str, Any]
    if charts.is_dir():
        pool = load_charxiv(charts)
        source = {"charxiv": [describe_file(charts / name) for name in FILES]}
    else:
        pool, source = load_charts(charts, bad_rows), {**describe_file(charts)}
    check_skipped(charts, bad_rows, allow_dropped=allow_dropped)
    asking = Asking(
        base_url,
        request_options,
        Decoding(temperature=temperature, max_tokens=max_tokens),
        {**source, "bad_rows": len(bad_rows), "seed": seed},
        price_options.read(),
    )
    with job_bar(asking.prices) as show:
        writer = asking.writer(model, out, show)
        manifest = generate_questions(sample_charts(pool, count, seed), writer)
    _show_cells(manifest["counts"])
    rejected = sum(manifest["rejected"].values())
    written = sum(manifest["counts"].values())
    typer.echo(f"{written} questions on {manifest['charts']} charts, {rejected} rejected: {out}")


@app.command(cls=Verb)
def sheet(
    folder: Folder,
    out: Annotated[
        Path,
        typer.Option(
            callback=output_file,
            help="Write the annotator's sheet to this new file: .html for a page, .csv or .tsv for "
            "a spreadsheet.",
        ),
    ],
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives another order.")] = 0,
) -> None:
    """Write a sheet for one annotator, who says keep or discard and corrects in place.

    Example: custos prep charthal-construct sheet data/mine --out anna.csv
    """
    from data_prep.construction.charthal import rows_to_check
    from data_prep.construction.forms.base import FORMS
    from data_prep.construction.sheet_page import write_sheet
    from data_prep.construction.sheets import mix_in_gold

    check_is_new(out)  # it may be filled in
    rows = mix_in_gold(rows_to_check(folder), (), 0, seed)
    write_sheet(out, FORMS.get(FORM), rows)
    typer.echo(f"{len(rows)} questions: {out}")


@app.command(cls=Verb)
def collect(
    folder: Folder,
    sheets: Annotated[
        list[Path],
        typer.Option("--sheet", help="Read this filled-in sheet. Repeat for every annotator."),
    ],
    final: Annotated[
        Path | None,
        typer.Option(
            help="Sheet that settles what annotators differ on. Default: differences stay open."
        ),
    ] = None,
) -> None:
    """Bring sheets together into FOLDER/charthal.json and FOLDER/disagreements.json.

    Example: custos prep charthal-construct collect data/mine --sheet anna.csv --sheet ben.csv
    """
    from data_prep.construction.charthal import count_cells, rows_to_check, write_benchmark
    from data_prep.construction.forms.base import FORMS
    from data_prep.construction.sheets import collect as bring_together
    from data_prep.construction.sheets import read_table

    form = FORMS.get(FORM)
    collected = bring_together(
        form,
        rows_to_check(folder),
        [read_table(path, form) for path in sheets],
        read_table(final, form) if final else None,
    )
    kept = write_benchmark(folder, collected)
    _show_cells(count_cells(kept))
    typer.echo(
        f"{len(kept)} kept, {len(collected.discarded)} discarded, "
        f"{len(collected.disagreements)} disagreements, {len(collected.unfinished)} unchecked: "
        f"{folder}"
    )


def _show_cells(counts: dict[str, int]) -> None:
    Console(highlight=False).print(count_table("cell", "questions", counts))
