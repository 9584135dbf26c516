"""``custos bench grade``: a benchmark's responses under a judge."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.shared.server_options import (
    CompletionPrice,
    Concurrency,
    Deadline,
    KeyEnv,
    PromptPrice,
    api_key,
    prices,
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
from judging import CustosError, Judge, JudgeRequest, Verdict
from judging.records import write_json

RUBRICS_OF = "charthal"
"""The benchmark whose rubrics can be replaced."""


def grade(
    name: Annotated[str, typer.Argument(help="Benchmark; custos bench list shows them.")],
    responses: Annotated[
        Path, typer.Option(help="Items with their responses, in the benchmark's own shape.")
    ],
    out: Annotated[Path, typer.Option(help="JSON or JSONL file for the graded items.")],
    judge: Annotated[
        str | None,
        typer.Option(
            help="Run folder, shipped judge, a backbone for a zero-shot judge, or the URL of "
            "custos serve or, with --model, of an OpenAI-compatible server. Not needed where "
            "rules decide everything."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model to ask on that server.")] = None,
    items: Annotated[
        str | None,
        typer.Option(
            help="Official items (file, folder or hub id), for responses that hold only ids."
        ),
    ] = None,
    rubric_file: Annotated[
        Path | None,
        typer.Option(
            help="charthal: YAML file of rubric names and your own instructions, to repeat a "
            "published grader; for zero-shot judges and servers."
        ),
    ] = None,
    retry_failed: RetryFailed = False,
    batch: Annotated[int, typer.Option(min=1, help="Requests graded between two saves.")] = 256,
    key_env: KeyEnv = None,
    concurrency: Concurrency = 8,
    deadline: Deadline = 300,
    prompt_price: PromptPrice = 0,
    completion_price: CompletionPrice = 0,
) -> None:
    """Grade responses to a benchmark and write them in its own graded shape.

    Verdicts are kept in OUT.partial while it runs; the same command picks up where it was stopped.
    OUT.partial stays as long as it holds failed requests: --retry-failed asks for them again, the
    command alone for nothing. Where the judge gave no verdict at all the exit status is 1. Time and
    cost go into OUT.run.json, where custos bench table finds them; for what several runs took
    together they are not known.

    Example: custos bench grade charthal --responses gpt.response.json
    --judge runs/charthal/fold-1/judge --out gpt.eval.json
    """
    from benchmarks.framework.base import get_benchmark, join_responses
    from benchmarks.framework.files import (
        check_ids,
        check_output,
        error_location,
        read_file,
        run_file,
        write_graded,
    )
    from cli.grade import fail_without_verdict, show_problems

    benchmark = get_benchmark(name)
    for given in (responses, items):
        if given is not None:
            check_output(out, Path(given))
    pictures = out.with_name(f"{out.stem}-images")
    rows = list(read_file(responses))
    official = benchmark.load(items, pictures) if items is not None else None
    with error_location(responses):
        if official is not None:
            rows = join_responses(official, rows, benchmark.item_id)
        rows = [benchmark.with_images(row, responses.parent, pictures) for row in rows]
        if benchmark.keyed:
            check_ids(rows)
        asked = [benchmark.requests(row) for row in rows]
    if rubric_file is not None:
        asked = _reworded(asked, name, rubric_file)

    def read() -> Iterator[tuple[int, JudgeRequest]]:
        for number, requests in enumerate(asked):
            yield from ((number, request) for request in requests)

    verdicts: list[list[Verdict]] = [[] for _ in rows]
    unfinished = partial_of(out)
    with locked(unfinished):
        run_file(out).unlink(missing_ok=True)
        if any(asked):
            if judge is None:
                raise CustosError(f"--judge: '{name}' needs one, for {', '.join(benchmark.tasks)}")
            grader = load_grader(judge, model, key_env, concurrency, deadline)
            if rubric_file is not None and not _takes_any_wording(grader):
                raise CustosError(
                    f"--rubric-file: judge '{grader.name}' was trained under other instructions; "
                    "use a backbone or, with --model, the URL of a server as the judge"
                )
            started, was_stopped = time.perf_counter(), unfinished.exists()
            fill_showing(unfinished, grader, read, sum(map(len, asked)), batch, retry_failed)
            for saved in read_saved(unfinished):
                verdicts[saved.row].append(saved.verdict)
            seconds = None if was_stopped else time.perf_counter() - started
            price = prices(prompt_price, completion_price)
            usage = getattr(grader, "usage", None)
            write_json(
                run_file(out),
                {
                    "judge": grader.name,
                    "rubric_file": str(rubric_file) if rubric_file else None,
                    "requests": sum(map(len, asked)),
                    "seconds": seconds,
                    "usage": usage.model_dump() if usage else None,
                    "cost": _cost(usage, price, was_stopped),
                    "version": version("custos"),
                    "command": shlex.join(["custos", *sys.argv[1:]]),
                },
            )
        graded = (benchmark.graded(row, own) for row, own in zip(rows, verdicts, strict=True))
        write_graded(out, graded, benchmark.keyed)
        remove_unless_failed(unfinished)
    unscored = {
        number: verdict.message or verdict.status
        for number, own in enumerate(verdicts, 1)
        for verdict in own
        if verdict.label is None
    }
    show_problems(responses, unscored)
    typer.echo(f"{len(rows)} items graded, {len(unscored)} without a label: {out}")
    if any(asked):
        fail_without_verdict(responses, {verdict.status for own in verdicts for verdict in own})


def load_grader(
    source: str, model: str | None, key_env: str | None, concurrency: int, deadline: float
) -> Grader:
    """A judge by run folder, name or backbone; a service's judges, or a chat model, by URL."""
    if not source.startswith(("http://", "https://")):
        return Judge.load(source)
    from clients.chat import ModelServer
    from clients.chat_judge import ChatJudge
    from clients.judge_client import JudgeClient

    if model is None and not source.rstrip("/").endswith("/v1"):
        key = service_key(key_env)
        return JudgeClient.connect(source, api_key=key, concurrency=concurrency, deadline=deadline)
    if model is None:
        raise CustosError("--model: name the model to ask on the server")
    server = ModelServer(
        source, model, api_key(key_env), concurrency=concurrency, deadline=deadline
    )
    return ChatJudge(server)


def _takes_any_wording(grader: Grader) -> bool:
    """Whether it was not trained under instructions of ours."""
    from clients.chat_judge import ChatJudge

    is_zero_shot = isinstance(grader, Judge) and grader.card is None
    return is_zero_shot or isinstance(grader, ChatJudge)


def _reworded(
    asked: list[tuple[JudgeRequest, ...]], name: str, rubric_file: Path
) -> list[tuple[JudgeRequest, ...]]:
    """The same requests under the user's wording."""
    from judging.tasks.charthal import register_rubrics

    if name != RUBRICS_OF:
        raise CustosError(f"--rubric-file: only {RUBRICS_OF} has rubrics to replace")
    task = register_rubrics(rubric_file)
    return [
        tuple(request.model_copy(update={"task": task}) for request in requests)
        for requests in asked
    ]


def _cost(usage: Any, price: Any, was_stopped: bool) -> float | str | None:
    """What grading cost; ``free`` on one's own machine, ``None`` where it is not known."""
    if usage is None:
        return "free"
    return None if price is None or was_stopped else float(price.cost(usage))
