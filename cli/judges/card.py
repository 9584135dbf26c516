"""``custos card``: the reliability card of a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.command_line import command_line, read_assignments
from cli.shared.labelled_examples import read_examples
from cli.shared.options.mapping import TABLE_FORMATS
from cli.shared.output_folders import check_own_files, in_known_folder
from data_prep.tables.mapping import TableMapping
from judging import Judge


def card(
    run: Annotated[str, typer.Argument(help="Run folder or shipped judge.")],
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            help=f"NAME=FILE: measure on the labelled examples of this {TABLE_FORMATS}, whose "
            "columns are called like our fields. May be repeated.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            callback=in_known_folder,
            help="Write reliability.json and reliability.md to this folder. If it holds a "
            "README.md, as the judge's own folder does, that gets the card as a section.",
        ),
    ],
    attacks: Annotated[
        Path | None,
        typer.Option(help="Show the figures of this attacks.json too. Default: none."),
    ] = None,
    zero_shot: Annotated[
        bool, typer.Option(help="Measure the judge's own backbone, untrained, beside it.")
    ] = True,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Take this many examples of each, drawn by --seed. Default: all."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the intervals and of --limit.")] = 0,
) -> None:
    """Measure a judge on several data sets and write its reliability card.

    For every data set the card holds the agreement with people beside baselines, figures by label
    and slice, calibration, what can be kept at a risk of 5 %, and the time. It names the rubrics of
    the judge that were not measured. The page of judges of custos serve shows the card that lies in
    the judge's folder.

    Example: custos card runs/mine --data nq=data/evouna/test.jsonl --data mine=data/mine/test.jsonl
    --out runs/mine
    """
    from evaluation.report.markdown import with_interval
    from evaluation.report.reliability import JSON, MARKDOWN, Attacks, make_card, write_card
    from judging.fingerprint import file_sha256

    check_own_files(out, (JSON, MARKDOWN), JSON, ("judge", "data", "not_measured"))
    named = read_assignments(data, "--data", "NAME=FILE, each once", once=True)
    files = {name: Path(file) for name, file in named.items()}
    known_attacks = Attacks.load(attacks) if attacks else None
    examples = {
        name: read_examples(file, TableMapping(), False, limit, seed, check_pictures=True)
        for name, file in files.items()
    }
    hashes = {name: file_sha256(file) if file.is_file() else None for name, file in files.items()}
    made = make_card(
        Judge.load(run),
        examples,
        hashes,
        command=command_line(),
        attacks=known_attacks,
        zero_shot=zero_shot,
        seed=seed,
    )
    write_card(made, out)
    for name, measured in made["data"].items():
        accuracy = with_interval(measured["metrics"]["accuracy"])
        typer.echo(f"{name}: {measured['n']} rows, accuracy {accuracy}")
    for rubric in made["not_measured"]:
        typer.echo(f"not measured: {rubric}")
    typer.echo(f"card: {out / MARKDOWN}")
