"""``custos grade``: a verdict for every row of a file."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.bad_rows import fail_without_verdict, show_problems, write_problems
from cli.shared.grading import Batch, RetryFailed, fill_showing
from cli.shared.judges import load_grader
from cli.shared.mapping_options import (
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
from cli.shared.output_folders import in_known_folder
from cli.shared.request_rows import check_rows, read_requests
from cli.shared.server_options import BaseUrl, Concurrency, Deadline, Engine, KeyEnv
from cli.shared.verdict_files import check_verdict_file, write_verdicts
from clients.kept_verdicts import partial_file
from clients.kept_work import locked
from judging import CustosError


def grade(
    source: Annotated[Path, typer.Option("--in", help=f"Read requests from this {TABLE_FORMATS}.")],
    out: Annotated[
        Path,
        typer.Option(
            callback=in_known_folder, help="Write verdicts to this JSONL or Parquet file."
        ),
    ],
    judge: Annotated[
        str | None,
        typer.Option(
            help="Run folder, shipped judge, a backbone for a zero-shot judge, or the URL of a "
            "custos serve. Default: for every row the shipped judge that knows its rubric best."
        ),
    ] = None,
    columns: Map = None,
    labels: Labels = None,
    mapping: Mapping = None,
    separator: Separator = None,
    reference_mode: ReferenceModeOption = None,
    task: Task = None,
    variant: Variant = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Stop at the first bad row, and do not write OUT if a row cannot be judged.",
        ),
    ] = False,
    retry_failed: RetryFailed = False,
    batch: Batch = 256,
    engine: Engine = "tree",
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    concurrency: Concurrency = 64,
    deadline: Deadline = 300,
) -> None:
    """Grade every row of a file, one verdict per row in the same order.

    Verdicts are kept in OUT.partial while the command runs. If it is stopped, the same command
    continues where it stopped. Rows that cannot be judged are listed in OUT.errors.jsonl, and
    OUT.partial stays as long as there are any: then --retry-failed grades them again. If no row got
    a verdict, the exit status is 1.

    Example: custos grade --in answers.csv --map references=gold --map response=model_answer
    --reference-mode any --out verdicts.jsonl
    """
    check_verdict_file(out, source)
    in_table = table_mapping(columns, labels, mapping, separator, reference_mode, task, variant)
    num_rows, refused = check_rows(source, in_table, strict)
    show_problems(source, refused)
    partial = partial_file(out)
    with locked(partial.path):  # This makes the folder too, before a model is loaded in vain.
        grader = load_grader(judge, engine, base_url, key_env, concurrency, deadline)
        rows = functools.partial(read_requests, source, in_table)
        fill_showing(partial, grader, rows, num_rows, batch, retry_failed)
        failed = {
            line.row: line.verdict.message or "no verdict"
            for line in partial.lines()
            if line.failed
        }
        show_problems(source, failed)
        write_problems(out.with_name(f"{out.name}.errors.jsonl"), refused | failed)
        if strict and failed:
            raise CustosError(f"{len(failed)} rows could not be judged; {out} was not written")
        statuses = Counter(line.verdict.status for line in partial.lines())
        write_verdicts(out, (line.verdict for line in partial.lines()))
        partial.remove_unless_failed()
    counts = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    typer.echo(f"{num_rows} rows graded ({counts or 'none'}): {out}")
    if num_rows or refused:
        fail_without_verdict(source, statuses)
