"""``custos grade``: a verdict for every row of a file, resumable."""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.shared.server_options import (
    BaseUrl,
    Concurrency,
    Deadline,
    Engine,
    KeyEnv,
    api_key,
    judge_on,
    service_key,
)
from clients.kept_work import (
    Grader,
    RetryFailed,
    fill_showing,
    locked,
    partial_of,
    read_saved,
    remove_unless_failed,
)
from judging import CustosError, Judge, JudgeRequest, LabelledExample, Verdict
from judging.best_judge import BestJudge
from judging.records import atomic_write, read_rows, with_absolute_images, write_records
from judging.tasks import get_task
from judging.types import Pass, parse_record

MAX_BAD_ROWS_SHOWN = 10
OUT_SUFFIXES = (".jsonl", ".parquet")


def grade(
    source: Annotated[Path, typer.Option("--in", help="JSONL, JSON or Parquet file of requests.")],
    out: Annotated[Path, typer.Option(help="JSONL or Parquet file for the verdicts.")],
    judge: Annotated[
        str | None,
        typer.Option(
            help="Run folder, shipped judge, a backbone for a zero-shot judge, or the URL of "
            "custos serve. Default: for every row the shipped judge that knows its rubric best."
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad row.")] = False,
    retry_failed: RetryFailed = False,
    batch: Annotated[int, typer.Option(min=1, help="Rows graded between two saves.")] = 256,
    engine: Engine = "tree",
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    concurrency: Concurrency = 64,
    deadline: Deadline = 300,
) -> None:
    """Grade every row of a file, one verdict per row in the same order.

    Verdicts are kept in OUT.partial while it runs; the same command picks up where it was stopped.
    Rows that cannot be judged are listed in OUT.errors.jsonl; where that is all of them, the exit
    status is 1. With --strict they keep OUT from being written. OUT.partial stays as long as there
    are any: --retry-failed asks for them again, the command alone for nothing.

    Example: custos grade --judge runs/qs --in answers.jsonl --out verdicts.jsonl
    """
    if out.suffix not in OUT_SUFFIXES:
        raise CustosError(f"--out '{out}': expected a file ending in {' or '.join(OUT_SUFFIXES)}")
    if out.resolve() == source.resolve():
        raise CustosError(f"--out '{out}': that is the input file")
    num_rows, refused = check_rows(source, strict)
    show_problems(source, refused)
    partial = partial_of(out)
    with locked(partial):  # which makes its folder, before a model is loaded for nothing
        loaded = load_judge(judge, engine, base_url, key_env, concurrency, deadline)
        fill_showing(partial, loaded, lambda: read_requests(source), num_rows, batch, retry_failed)
        failed = {
            saved.row: saved.verdict.message or "no verdict"
            for saved in read_saved(partial)
            if saved.failed
        }
        show_problems(source, failed)
        write_problems(out.with_name(f"{out.name}.errors.jsonl"), refused | failed)
        if strict and failed:
            raise CustosError(f"{len(failed)} rows could not be judged; {out} was not written")
        statuses = Counter(saved.verdict.status for saved in read_saved(partial))
        write_verdicts(out, (saved.verdict for saved in read_saved(partial)))
        remove_unless_failed(partial)
    counted = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    typer.echo(f"{num_rows} rows graded ({counted or 'none'}): {out}")
    if num_rows or refused:
        fail_without_verdict(source, statuses)


def load_judge(
    judge: str | None,
    engine: str,
    base_url: str | None,
    key_env: str | None,
    concurrency: int,
    deadline: float,
) -> Grader:
    """The judge or service that is asked for, or all shipped judges.

    Raises:
        CustosError: As :func:`cli.shared.server_options.judge_on`, or if the service does not
            answer.
    """
    if judge and judge.startswith(("http://", "https://")):
        from clients.judge_client import JudgeClient

        key = service_key(key_env)
        return JudgeClient.connect(judge, api_key=key, concurrency=concurrency, deadline=deadline)
    key = api_key(key_env)

    def open_one(source: str) -> Judge:
        return judge_on(engine, source, base_url, key, concurrency, deadline)

    if judge:
        return open_one(judge)
    from cli.serve import load, served_by_default

    return BestJudge(load({name: name for name in served_by_default()}, {}, open_one))


def check_rows(source: Path, strict: bool) -> tuple[int, dict[int, str]]:
    """Read the whole file once, before any model is loaded.

    Returns:
        How many rows are requests, and what is wrong with each of the others.

    Raises:
        CustosError: With ``strict``, on the first row that is no request or that its task refuses.
    """
    num_requests = 0
    problems = {}
    for row, parsed in _parsed_rows(source):
        if isinstance(parsed, CustosError):
            if strict:
                raise parsed
            problems[row] = str(parsed).removeprefix(f"{source} row {row}: ")
            continue
        num_requests += 1
        if strict:
            try:
                get_task(parsed.task).check(parsed)
            except CustosError as error:
                raise CustosError(f"{source} row {row}: {error}") from None
    return num_requests, problems


def read_requests(source: Path) -> Iterator[tuple[int, JudgeRequest]]:
    """Yield ``(row number, request)`` for the good rows; a row without an id gets its number."""
    for row, parsed in _parsed_rows(source):
        if isinstance(parsed, JudgeRequest):
            yield row, parsed if parsed.id else parsed.model_copy(update={"id": str(row)})


def _parsed_rows(source: Path) -> Iterator[tuple[int, JudgeRequest | CustosError]]:
    for row, decoded in read_rows(source):
        try:
            if isinstance(decoded, CustosError):
                raise decoded
            is_labelled = isinstance(decoded, dict) and "label" in decoded
            model = LabelledExample if is_labelled else JudgeRequest
            record = parse_record(model, decoded, f"{source} row {row}")
            parsed = with_absolute_images(record, source.parent)
            yield row, parsed.request() if isinstance(parsed, LabelledExample) else parsed
        except CustosError as error:
            yield row, error


def show_problems(source: Path, problems: dict[int, str]) -> None:
    """Print the first bad rows to standard error, and how many more there are."""
    for row, message in itertools.islice(problems.items(), MAX_BAD_ROWS_SHOWN):
        typer.echo(f"{source} row {row}: {message}", err=True)
    if len(problems) > MAX_BAD_ROWS_SHOWN:
        typer.echo(f"and {len(problems) - MAX_BAD_ROWS_SHOWN} more bad rows", err=True)


def fail_without_verdict(source: Path, statuses: Collection[str]) -> None:
    """Leave with exit status 1 if these are the statuses of rows without a single verdict."""
    if set(statuses) <= {"judge_error", "unparsed"}:
        typer.echo(f"error: {source}: no row got a verdict", err=True)
        raise typer.Exit(1)


def write_problems(path: Path, problems: dict[int, str]) -> None:
    """Write ``{"row", "message"}`` lines; without problems, remove what an earlier run left."""
    if not problems:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path) as file:
        for row, message in sorted(problems.items()):
            file.write(json.dumps({"row": row, "message": message}, ensure_ascii=False) + "\n")


def write_verdicts(out: Path, verdicts: Iterable[Verdict]) -> None:
    """Write verdicts to a file that appears only when it is complete."""
    if out.suffix == ".jsonl":
        write_records(out, verdicts)
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    unfinished = out.with_name(f".{out.name}.unfinished")
    with pq.ParquetWriter(unfinished, _parquet_schema(pa)) as writer:
        stream = iter(verdicts)
        while rows := [verdict.model_dump() for verdict in itertools.islice(stream, 10_000)]:
            writer.write_table(pa.Table.from_pylist(rows, writer.schema))
    os.replace(unfinished, out)


def _parquet_schema(pa: Any) -> Any:
    """Columns of a verdict; posteriors are maps, because labels differ between tasks."""
    text, number, flag = pa.string(), pa.float64(), pa.bool_()
    posterior = pa.map_(text, number)
    of_pass = {"posterior": posterior, "stated_confidence": number}
    one_pass = pa.struct({name: of_pass.get(name, text) for name in Pass.model_fields})
    special = {
        **dict.fromkeys(("score", "confidence", "stated_confidence", "label_mass"), number),
        **dict.fromkeys(("needs_review", "truncated_input"), flag),
        "score_range": pa.list_(number),
        "probabilities": posterior,
        "marginals": pa.map_(text, posterior),
        "passes": pa.list_(one_pass),
    }
    return pa.schema({name: special.get(name, text) for name in Verdict.model_fields})
