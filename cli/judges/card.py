"""``custos card``: the reliability card of a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.command_line import command_line, read_assignments
from cli.shared.grading import Batch, RetryFailed
from cli.shared.labelled_examples import KeptMeasurement, read_examples
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import TABLE_FORMATS
from cli.shared.options.server import RivalOptions
from cli.shared.output_folders import check_own_files, output_folder
from data_prep.tables.mapping import TableMapping
from judging.files.kept_work import locked
from judging.judge import Judge
from judging.scoring.ask_model import WINDOW


@with_groups
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
            callback=output_folder,
            help="Write reliability.json and reliability.md to this folder. If it holds a "
            "README.md, as the judge's own folder does, that gets the card as a section.",
        ),
    ],
    *,
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
    seed: Annotated[int, typer.Option(min=0, help="Seed of the intervals and of --limit.")] = 0,
    retry_failed: RetryFailed = False,
    batch: Batch = WINDOW,
    rival_options: RivalOptions,
) -> None:
    """Measure a judge on several data sets and write its reliability card.

    For every data set the card holds the agreement with people beside baselines, figures by label
    and slice, calibration, what can be kept at a risk of 5 %, and the time. It names the rubrics of
    the judge that were not measured. The page of judges of custos serve shows the card that lies in
    the judge's folder.

    Verdicts are kept in OUT while the command runs. If it is stopped, the same command continues
    where it stopped. They stay as long as rows have failed, and --retry-failed grades these again.

    Example: custos card runs/mine --data nq=data/evouna/test.jsonl --data mine=data/mine/test.jsonl
    --out runs/mine
    """
    from evaluation.outcomes import NothingScored
    from evaluation.report.evaluate import resolve_examples
    from evaluation.report.markdown import with_interval
    from evaluation.report.reliability import (
        JSON,
        MARKDOWN,
        Attacks,
        Measured,
        make_card,
        read_readme,
        risk_to_state,
        write_card,
    )
    from judging.fingerprint import file_sha256

    named = read_assignments(data, "--data", "NAME=FILE, each once", once=True)
    files = {name: Path(file) for name, file in named.items()}
    rivals = rival_options.read()
    kept = {
        name: KeptMeasurement(out, f"reliability-{number}", batch, retry_failed, rivals)
        for number, name in enumerate(files, 1)
    }
    if not any(measurement.is_stopped() for measurement in kept.values()):
        check_own_files(out, (JSON, MARKDOWN), JSON, ("judge", "data", "not_measured"))
    read_readme(out)  # One that cannot be read is an error now, not after the grading.
    known_attacks = Attacks.load(attacks) if attacks else None
    examples = {
        name: read_examples(file, TableMapping(), False, limit, seed, check_pictures=True)
        for name, file in files.items()
    }
    hashes = {name: file_sha256(file) if file.is_file() else None for name, file in files.items()}
    loaded = Judge.load(run)
    measured: dict[str, Measured] = {}
    with locked(out / JSON):
        for name, measurement in kept.items():
            rows = resolve_examples(loaded, examples[name])
            try:
                report, verdicts = measurement.report(
                    loaded,
                    rows,
                    command=command_line(),
                    references={},
                    zero_shot=zero_shot,
                    dataset_sha256=hashes[name],
                    risk=risk_to_state(loaded, rows),
                    seed=seed,
                )
            except NothingScored as error:
                raise NothingScored(f"data set '{name}': {error}") from None
            measured[name] = Measured(rows, verdicts, report)
        made = make_card(loaded, measured, command=command_line(), attacks=known_attacks, seed=seed)
        write_card(made, out)
        for measurement in kept.values():
            measurement.finish()
    for name, data_set in made["data"].items():
        accuracy = with_interval(data_set["metrics"]["accuracy"])
        typer.echo(f"{name}: {data_set['n']} rows, accuracy {accuracy}")
    for rubric in made["not_measured"]:
        typer.echo(f"not measured: {rubric}")
    typer.echo(f"card: {out / MARKDOWN}")
