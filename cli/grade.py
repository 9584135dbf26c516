"""``custos grade``: a verdict for every row of a file, or of many on a Ray cluster."""

from __future__ import annotations

import functools
import json
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated

import typer

from cli.shared.judges import EngineOptions, is_address
from cli.shared.measuring import Batch, RetryFailed, fill_showing
from cli.shared.options import AllowFailed, Risk, with_groups
from cli.shared.outputs import output_file
from cli.shared.tables import (
    TABLE_FORMATS,
    TableOptions,
    file_digest,
    group_of,
    note_doubts,
    read_requests,
    trained_tasks,
    warn_of_open_modes,
    with_only_task,
)
from cli.shared.verdicts import JudgedRates, Summary, check_verdict_files, write_verdicts
from clients.kept_verdicts import NumberedRequest, partial_file
from data_prep.tables.examples import leaves_mode_open
from data_prep.tables.source import open_table
from judging.errors import CustosError, system_errors_at
from judging.files.kept_work import locked
from judging.types import JudgeRequest, Verdict


@with_groups
def grade(
    source: Annotated[
        str, typer.Option("--in", metavar="PATH", help=f"Read requests from this {TABLE_FORMATS}.")
    ],
    out: Annotated[str, typer.Option(metavar="PATH", callback=output_file)],
    judge: list[str] | None = None,
    *,
    table_options: TableOptions,
    table: Annotated[Path | None, typer.Option("--csv", callback=output_file)] = None,
    risk: Risk = None,
    allow_failed: AllowFailed = False,
    retry_failed: RetryFailed = False,
    batch: Batch = 256,
    engine_options: EngineOptions,
    ray: str | None = None,
    workers: Annotated[int | None, typer.Option(min=1)] = None,
    worker_gpus: Annotated[float | None, typer.Option(min=0)] = None,
    worker_price: Annotated[float, typer.Option(min=0)] = 0,
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

    Options:
        out: Write a verdict for every row to this file. JSONL: whole verdicts; CSV, TSV or Parquet:
            your own columns with the verdict beside them.
        judge: Run folder, shipped judge, a backbone for a zero-shot judge, or the URL of a custos
            serve; several URLs, each with --judge, share the rows. Default: for every row the
            shipped judge on the embedded backbone that knows its rubric best.
        table: Write such a CSV, TSV or Parquet file beside a JSONL OUT too. Default: none.
        ray: Grade many files with workers on the Ray cluster at this address (auto: the one that
            this machine belongs to), or on this machine alone (local). --in and --out are then
            patterns, such as 's3://bucket/answers/*.parquet' and 's3://bucket/verdicts/*.jsonl'.
            Default: grade one file here.
        workers: With --ray: number of workers. Default: as many as its GPUs or CPU cores.
        worker_gpus: With --ray: GPUs of each worker; .5 has two workers share one. Default: one,
            where there are GPUs and the judge is not behind an address.
        worker_price: With --ray: price of a worker for an hour, to show the cost.
    """
    in_table = table_options.read()
    load = functools.partial(engine_options.load_grader, judge or [])
    tasks = trained_tasks(judge or [])
    if ray is not None:
        if table is not None:
            raise CustosError(
                "--csv: with --ray, choose the form of the output by the ending of --out"
            )
        from cli.shards import RayPool, ShardSettings, grade_shards

        is_remote = engine_options.engine == "openai" or any(map(is_address, judge or []))
        pool = RayPool(ray, workers, 0 if is_remote and worker_gpus is None else worker_gpus)
        settings = ShardSettings(mapping=in_table, tasks=tasks, risk=risk, batch=batch)
        grade_shards(source, out, pool, load, settings, worker_price, retry_failed, allow_failed)
        return
    outputs = [Path(out)] if table is None else [Path(out), table]
    opened = open_table(source, in_table.text_format)
    in_table = with_only_task(in_table, opened, tasks)
    path = opened.path
    check_verdict_files(path, *outputs)
    note_doubts(opened, in_table)
    before = file_digest(path)
    groups = (group_of(row, in_table) for _, row in opened.rows())
    rows = ParsedRows(read_requests(opened, in_table, risk), groups, outputs[0])
    warn_of_open_modes(path, rows.num_open)
    partial = partial_file(outputs[0])
    with locked(partial.path):
        grader = load()  # only now: a file that cannot be read is no reason to load a model
        fill_showing(partial, grader, rows.read, len(rows.questions), batch, retry_failed)
        if file_digest(path) != before:
            raise CustosError(f"{path}: the file has changed while it was graded")
        for output in outputs:
            write_verdicts(output, opened, partial)
        summary, rates = Summary(partial.lines()), JudgedRates(in_table.labels)
        for line, question in zip(partial.lines(), rows.questions, strict=True):
            rates.add(line.verdict, question)
        judged = list(rates.lines(grader))
        partial.remove_unless_failed()
    summary.end(source, outputs, judged, table_options.words(), allow_failed)


class ParsedRows:
    """Requests of a table, parsed once into an unnamed file beside the output."""

    def __init__(self, rows: Iterable[NumberedRequest], groups: Iterable[str], out: Path) -> None:
        self.questions = array("q")
        """For each row, a number that stands for its group, or else its question."""
        self.num_open = 0
        """Number of rows that do not say how their references are meant."""
        folder = next(parent for parent in out.resolve().parents if parent.is_dir())
        with system_errors_at(out):
            self._file = TemporaryFile("w+", dir=folder, encoding="utf-8")
        for (number, row), group in zip(rows, groups, strict=True):
            is_request = isinstance(row, JudgeRequest)
            self.questions.append(hash(group or row.asked) if isinstance(row, JudgeRequest) else 0)
            self.num_open += isinstance(row, JudgeRequest) and leaves_mode_open(row)
            line = json.dumps([number, is_request, row.model_dump(exclude_unset=True)], default=str)
            with system_errors_at(out):
                self._file.write(f"{line}\n")

    def read(self) -> Iterator[NumberedRequest]:
        """Yield the numbered rows. Begin a second reading only after the first has ended."""
        self._file.seek(0)
        for line in self._file:
            number, is_request, fields = json.loads(line)
            yield number, (JudgeRequest if is_request else Verdict).model_validate(fields)
