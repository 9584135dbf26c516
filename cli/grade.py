"""``custos grade``: a verdict for every row of a file."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from cli.shards.options import Ray, WorkerGpus, WorkerPrice, Workers
from cli.shared.grading import Batch, RetryFailed, fill_showing
from cli.shared.judges import is_address
from cli.shared.options.engine import EngineOptions
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import TABLE_FORMATS, TableOptions
from cli.shared.options.output import AllowFailed, Risk
from cli.shared.output_folders import output_file
from cli.shared.request_rows import (
    leaves_mode_open,
    note_doubts,
    read_requests,
    source_digest,
    warn_of_open_modes,
)
from cli.shared.verdicts.files import check_verdict_files, write_verdicts
from cli.shared.verdicts.judged_rates import JudgedRates
from cli.shared.verdicts.summary import Summary, end_with
from clients.kept_verdicts import Grader, NumberedRequest, partial_file
from data_prep.tables.source import Table, open_table
from judging import CustosError, JudgeRequest
from judging.files.kept_work import locked


@with_groups
def grade(
    source: Annotated[
        str,
        typer.Option("--in", metavar="PATH", help=f"Read requests from this {TABLE_FORMATS}."),
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            callback=output_file,
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
    *,
    table_options: TableOptions,
    table: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            callback=output_file,
            help="Write such a CSV, TSV or Parquet file beside a JSONL OUT too. Default: none.",
        ),
    ] = None,
    risk: Risk = None,
    allow_failed: AllowFailed = False,
    retry_failed: RetryFailed = False,
    batch: Batch = 256,
    engine_options: EngineOptions,
    ray: Ray = None,
    workers: Workers = None,
    worker_gpus: WorkerGpus = None,
    worker_price: WorkerPrice = 0,
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

    Many files on a Ray cluster: custos grade --judge embedded-qs --ray auto
    --in 'answers/*.parquet' --out 'verdicts/*.jsonl'

    A spreadsheet, saved as CSV:

    Example: custos grade --in answers.csv --map references=gold --map response=model_answer
    --reference-mode any --out verdicts.jsonl --csv graded.csv
    """
    in_table = table_options.read()
    load = functools.partial(engine_options.load_grader, judge or [])
    if ray is None:
        read = functools.partial(read_requests, Path(source), in_table, risk)
        files = [Path(out)] if table is None else [Path(out), table]
        opened = open_table(source, in_table.text_format)
        check_verdict_files(opened.path, *files)
        note_doubts(source, in_table)
        summary = _grade_file(opened, files, read, load, batch, retry_failed)
        end_with(summary, Path(source), files, table_options.words(), allow_failed)
        return
    if table is not None:
        raise CustosError("--csv: with --ray, choose the form of the output by the ending of --out")
    from cli.shards.ray_pool import RayPool
    from cli.shards.records import ShardSettings
    from cli.shards.run import grade_shards

    is_remote = engine_options.engine == "openai" or any(map(is_address, judge or []))
    pool = RayPool(ray, workers, 0 if is_remote and worker_gpus is None else worker_gpus)
    settings = ShardSettings(mapping=in_table, risk=risk, batch=batch)
    grade_shards(source, out, pool, load, settings, worker_price, retry_failed, allow_failed)


def _grade_file(
    table: Table,
    outputs: Sequence[Path],
    read: Callable[[], Iterable[NumberedRequest]],
    load: Callable[[], Grader],
    batch: int,
    retry_failed: bool,
) -> Summary:
    source = table.path
    num_rows = num_open = 0
    questions = array("q")
    for _, request in read():  # A file that cannot be read is no reason to load a model.
        num_rows += 1
        questions.append(hash(request.question) if isinstance(request, JudgeRequest) else 0)
        num_open += isinstance(request, JudgeRequest) and leaves_mode_open(request)
    warn_of_open_modes(source, num_open)
    partial = partial_file(outputs[0])
    with locked(partial.path):
        before = source_digest(source)
        grader = load()
        fill_showing(partial, grader, read, num_rows, batch, retry_failed)
        if source_digest(source) != before:
            raise CustosError(f"{source}: the file has changed while it was graded")
        for output in outputs:
            write_verdicts(output, table, partial)
        summary = Summary(partial.lines())
        rates = JudgedRates()
        for line, question in zip(partial.lines(), questions, strict=True):
            rates.add(line.verdict, question)
        summary.rates = list(rates.lines(grader))
        partial.remove_unless_failed()
    return summary
