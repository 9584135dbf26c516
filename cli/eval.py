"""``custos eval``: how far a judge agrees with people."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.shared.command_line import command_line
from cli.shared.judges import load_judge
from cli.shared.output_folders import in_known_folder
from cli.shared.server_options import BaseUrl, Concurrency, Deadline, Engine, KeyEnv, api_key
from evaluation.declared_labels import check_labels
from judging import LabelledExample
from judging.records import read_records


def evaluate(
    run: Annotated[
        str, typer.Argument(help="Run folder, shipped judge, or a backbone for a zero-shot judge.")
    ],
    data: Annotated[
        Path,
        typer.Option(help="Read labelled examples from this JSONL, JSON or Parquet file."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            callback=in_known_folder,
            help="Write report, pictures, examples and verdicts to this folder.",
        ),
    ],
    zero_shot: Annotated[
        bool, typer.Option(help="Measure the judge's own backbone, untrained, beside it.")
    ] = True,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Take this many examples, drawn by --seed. Default: all."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the intervals and of --limit.")] = 0,
    engine: Engine = "tree",
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    concurrency: Concurrency = 64,
    deadline: Deadline = 300,
) -> None:
    """Measure how far a judge agrees with human labels, beside baselines.

    Writes report.json, report.md and pictures, and the files that custos compare reads.

    Example: custos eval runs/qs --data data/qs/test.jsonl --out runs/qs/eval
    """
    from evaluation.evaluate import evaluate_judge, summary_table
    from evaluation.folder import save_evaluation
    from evaluation.report.report import write_report
    from judging.fingerprint import file_sha256

    examples = read_examples(data, limit, seed)
    judge = load_judge(engine, run, base_url, api_key(key_env), concurrency, deadline)
    report, verdicts = evaluate_judge(
        judge,
        examples,
        command=command_line(),
        zero_shot=zero_shot and engine == "tree",  # A server's weights may not be here.
        dataset_sha256=file_sha256(data),
        seed=seed,
    )
    write_report(report, out)
    save_evaluation(out, examples, verdicts)
    Console(highlight=False, soft_wrap=True).print(summary_table(judge.name, report))
    typer.echo(
        f"{report['n']} items, {report['coverage']:.1%} scored, in {report['seconds']:.1f} s: "
        f"{out / 'report.md'}"
    )


def read_examples(data: Path, limit: int | None, seed: int) -> list[LabelledExample]:
    """Read labelled examples, all or a random few in file order; a missing id is the row number.

    Raises:
        CustosError: On the first bad row, because an evaluation leaves out nothing silently, and if
            there are labels that the rubrics do not declare.
    """
    rows = list(read_records(data, LabelledExample))
    examples = [
        example if example.id else example.model_copy(update={"id": str(row)})
        for row, example in rows
    ]
    check_labels(examples, str(data), lambda index: f"row {rows[index][0]}")
    if limit is None or limit >= len(examples):
        return examples
    return [examples[i] for i in sorted(random.Random(seed).sample(range(len(examples)), limit))]
