"""``custos grade``: a verdict for every row of a file."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.grading import Batch, RetryFailed, fill_showing
from cli.shared.judges import load_grader
from cli.shared.options.mapping import (
    TABLE_FORMATS,
    Labels,
    Map,
    Mapping,
    ReferenceModeOption,
    Separator,
    Task,
    Variant,
    table_mapping,
)
from cli.shared.options.output import AllowFailed, Risk
from cli.shared.options.server import BaseUrl, Concurrency, Deadline, Engine, KeyEnv
from cli.shared.output_folders import in_known_folder
from cli.shared.request_rows import read_requests, source_digest
from cli.shared.verdicts.files import check_verdict_files, write_verdicts
from cli.shared.verdicts.summary import Summary, end_with
from clients.kept_verdicts import partial_file
from clients.kept_work import locked
from judging import CustosError


def grade(
    source: Annotated[Path, typer.Option("--in", help=f"Read requests from this {TABLE_FORMATS}.")],
    out: Annotated[
        Path,
        typer.Option(
            callback=in_known_folder,
            help="Write a verdict for every row to this file. JSONL: whole verdicts; CSV, TSV or "
            "Parquet: your own columns with the verdict beside them.",
        ),
    ],
    judge: Annotated[
        list[str] | None,
        typer.Option(
            help="Run folder, shipped judge, a backbone for a zero-shot judge, or the URL of a "
            "custos serve; several URLs, each with --judge, share the rows. Default: for every row "
            "the shipped judge that knows its rubric best."
        ),
    ] = None,
    columns: Map = None,
    labels: Labels = None,
    mapping: Mapping = None,
    separator: Separator = None,
    reference_mode: ReferenceModeOption = None,
    task: Task = None,
    variant: Variant = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            callback=in_known_folder,
            help="Write such a CSV, TSV or Parquet file beside a JSONL OUT too. Default: none.",
        ),
    ] = None,
    risk: Risk = None,
    allow_failed: AllowFailed = False,
    retry_failed: RetryFailed = False,
    batch: Batch = 256,
    engine: Engine = "tree",
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    concurrency: Concurrency = 64,
    deadline: Deadline = 300,
) -> None:
    """Grade every row of a file, one verdict per row in the same order.

    A row that cannot be read or judged gets a verdict too: its status is invalid or judge_error,
    and its message says why. Then the exit status is 1.

    Verdicts are kept in OUT.partial while the command runs. If it is stopped, the same command
    continues where it stopped. OUT.partial stays as long as rows have failed: the same command
    grades those that you have changed since, and with --retry-failed all of them.

    With --risk .05, at most 5 % of the verdicts without needs_review are wrong, on data like those
    the judge was calibrated on; custos review writes the others to a file for people.

    Rows in our own format: custos grade --in answers.jsonl --out verdicts.jsonl

    A running service: custos grade --judge http://127.0.0.1:8000 --in answers.jsonl
    --out verdicts.jsonl (--key-env names the variable of its key; default CUSTOS_KEY)

    A spreadsheet, saved as CSV:

    Example: custos grade --in answers.csv --map references=gold --map response=model_answer
    --reference-mode any --out verdicts.jsonl --csv graded.csv
    """
    check_verdict_files(source, out, table)
    in_table = table_mapping(columns, labels, mapping, separator, reference_mode, task, variant)
    rows = functools.partial(read_requests, source, in_table, risk)
    num_rows = sum(1 for _ in rows())  # A file that cannot be read is no reason to load a model.
    outputs = [out] if table is None else [out, table]
    partial = partial_file(out)
    with locked(partial.path):
        before = source_digest(source)
        grader = load_grader(judge or [], engine, base_url, key_env, concurrency, deadline)
        fill_showing(partial, grader, rows, num_rows, batch, retry_failed)
        if source_digest(source) != before:
            raise CustosError(f"{source}: the file has changed while it was graded")
        for output in outputs:
            write_verdicts(output, source, partial)
        summary = Summary(partial.lines())
        partial.remove_unless_failed()
    end_with(summary, source, outputs, allow_failed)
