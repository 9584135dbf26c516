"""``custos grade``: a verdict for every row of a file, resumable."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Protocol, TextIO

import typer
from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cli.server_options import BaseUrl, Concurrency, Deadline, Engine, KeyEnv, api_key, judge_on
from judging import CustosError, JudgeRequest, LabelledExample, Verdict
from judging.fingerprint import picture_sha256
from judging.rows import atomic_write, read_rows, with_absolute_images, write_records
from judging.tasks import get_task
from judging.types import parse_record

MAX_BAD_ROWS_SHOWN = 10
OUT_SUFFIXES = (".jsonl", ".parquet")

Read = Callable[[], Iterator[tuple[int, JudgeRequest]]]


class Grader(Protocol):
    """What fills a file with verdicts: a judge of ours, or a chat model as a judge."""

    name: str

    def fingerprint(self, request: JudgeRequest) -> str:
        """Digest of everything that could change this request's verdict."""
        ...

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """One verdict per request, in order."""
        ...


class Saved(BaseModel):
    """A line of the partial file: a verdict, and what it is a verdict on."""

    row: int
    key: str
    verdict: Verdict


def grade(
    judge: Annotated[
        str,
        typer.Option(
            help="Run folder, shipped judge, a backbone for a zero-shot judge, or the URL of "
            "custos serve."
        ),
    ],
    source: Annotated[Path, typer.Option("--in", help="JSONL, JSON or Parquet file of requests.")],
    out: Annotated[Path, typer.Option(help="JSONL or Parquet file for the verdicts.")],
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad row.")] = False,
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
    status is 1.

    Example: custos grade --judge runs/qs --in answers.jsonl --out verdicts.jsonl
    """
    if out.suffix not in OUT_SUFFIXES:
        raise CustosError(f"--out '{out}': expected a file ending in {' or '.join(OUT_SUFFIXES)}")
    if out.resolve() == source.resolve():
        raise CustosError(f"--out '{out}': that is the input file")
    num_rows, refused = check_rows(source, strict)
    show_problems(source, refused)
    key = api_key(key_env)
    loaded: Grader
    if judge.startswith(("http://", "https://")):
        from clients.judge_client import JudgeClient

        loaded = JudgeClient.connect(judge, api_key=key, concurrency=concurrency, deadline=deadline)
    else:
        loaded = judge_on(engine, judge, base_url, key, concurrency, deadline)
    partial = partial_of(out)
    fill_showing(partial, loaded, lambda: read_requests(source), num_rows, batch)
    failed = {
        saved.row: saved.verdict.message or "no verdict"
        for saved in read_saved(partial)
        if saved.verdict.status == "judge_error"
    }
    show_problems(source, failed)
    write_problems(out.with_name(f"{out.name}.errors.jsonl"), refused | failed)
    if strict and failed:
        raise CustosError(f"{len(failed)} rows could not be judged; {out} was not written")
    statuses = Counter(saved.verdict.status for saved in read_saved(partial))
    write_verdicts(out, (saved.verdict for saved in read_saved(partial)))
    partial.unlink()
    counted = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    typer.echo(f"{num_rows} rows graded ({counted or 'none'}): {out}")
    if (num_rows or refused) and statuses.keys() <= {"judge_error", "unparsed"}:
        typer.echo(f"error: {source}: no row got a verdict", err=True)
        raise typer.Exit(1)


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


def partial_of(out: Path) -> Path:
    """Where the verdicts for a file are kept until it is complete."""
    return out.with_name(f"{out.name}.partial")


def fill_showing(partial: Path, judge: Grader, read: Read, total: int, batch: int) -> None:
    """``fill`` behind a progress bar on standard error."""
    with _progress() as progress:
        bar = progress.add_task("grading", total=total)
        for num_saved in fill(partial, judge, read, batch):
            progress.update(bar, completed=num_saved)


def fill(partial: Path, judge: Grader, read: Read, batch: int) -> Iterator[int]:
    """Bring a partial file up to one line per request; yield how many it holds as it grows.

    Lines that an earlier run wrote for the same requests and judge are kept, in whole batches, so
    that every batch is made of the same rows as in a run that was never stopped.

    Args:
        partial: The partial file.
        judge: Who grades.
        read: Starts over each time it is called: row numbers and requests.
        batch: Requests graded between two saves.

    Raises:
        CustosError: If another run is filling the same file.
    """
    partial.parent.mkdir(parents=True, exist_ok=True)
    with partial.open("a", encoding="utf-8") as file:
        _lock(file, partial)
        num_saved = keep_matching(partial, judge, read, batch)
        yield num_saved
        rest = itertools.islice(read(), num_saved, None)
        while rows := list(itertools.islice(rest, batch)):
            verdicts = judge.grade([request for _, request in rows])
            for (row, request), verdict in zip(rows, verdicts, strict=True):
                saved = Saved(row=row, key=request_key(judge, request), verdict=verdict)
                file.write(saved.model_dump_json(exclude_unset=True) + "\n")
            file.flush()
            os.fsync(file.fileno())
            num_saved += len(rows)
            yield num_saved


def _lock(file: TextIO, partial: Path) -> None:
    """Hold a file until it is closed; the system lets go of it when the process dies, too."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CustosError(f"{partial}: another run is writing it; wait for that one") from None


def keep_matching(partial: Path, judge: Grader, read: Read, batch: int) -> int:
    """Cut a partial file after its last whole batch that still holds; return how many lines stay.

    Cut-off or damaged lines, changed rows and another judge's verdicts all end what is kept.
    """
    num_kept = end = 0
    with partial.open("ab+") as file:
        file.seek(0)
        for number, (row, request) in enumerate(read(), 1):
            saved = _parse_saved(file.readline())
            if saved is None or (saved.row, saved.key) != (row, request_key(judge, request)):
                break
            if number % batch == 0:
                num_kept, end = number, file.tell()
        file.truncate(end)
    return num_kept


def request_key(judge: Grader, request: JudgeRequest) -> str:
    """SHA-256 of a request, its pictures' content and the judge that it was put to."""
    try:
        get_task(request.task).check(request)
        fingerprint = judge.fingerprint(request)
    except CustosError:  # the verdict says the same
        fingerprint = ""
    content = {
        **request.model_dump(),
        "images": [picture_sha256(source) for source in request.images],
        "judge": [judge.name, fingerprint],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def read_saved(partial: Path) -> Iterator[Saved]:
    """Read back a complete partial file."""
    with partial.open("rb") as file:
        for line in file:
            yield Saved.model_validate_json(line)


def _parse_saved(line: bytes) -> Saved | None:
    try:
        return Saved.model_validate_json(line) if line.endswith(b"\n") else None
    except ValidationError:
        return None


def show_problems(source: Path, problems: dict[int, str]) -> None:
    """Print the first bad rows to standard error, and how many more there are."""
    for row, message in itertools.islice(problems.items(), MAX_BAD_ROWS_SHOWN):
        typer.echo(f"{source} row {row}: {message}", err=True)
    if len(problems) > MAX_BAD_ROWS_SHOWN:
        typer.echo(f"and {len(problems) - MAX_BAD_ROWS_SHOWN} more bad rows", err=True)


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
    one_pass = pa.struct(
        {"order": text, "posterior": posterior, "critique": text, "finish_reason": text}
    )
    special = {
        **dict.fromkeys(("score", "confidence", "stated_confidence", "label_mass"), number),
        **dict.fromkeys(("needs_review", "truncated_input"), flag),
        "score_range": pa.list_(number),
        "probabilities": posterior,
        "marginals": pa.map_(text, posterior),
        "passes": pa.list_(one_pass),
    }
    return pa.schema({name: special.get(name, text) for name in Verdict.model_fields})


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
