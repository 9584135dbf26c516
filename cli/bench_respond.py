"""``custos bench respond``: a model answers a benchmark."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from cli.shared.server_options import (
    CompletionPrice,
    Concurrency,
    Deadline,
    KeyEnv,
    PromptPrice,
    api_key,
    prices,
)
from judging.errors import CustosError
from judging.records import write_json

if TYPE_CHECKING:
    from benchmarks.framework.base import Benchmark
    from benchmarks.framework.files import Row
    from benchmarks.framework.responses import ItemQuestion
    from clients.jobs import JobResult
    from clients.messages import ChatItem, Decoding


def respond(
    name: Annotated[str, typer.Argument(help="Benchmark; custos bench list shows them.")],
    items: Annotated[str, typer.Option(help="Official items: file, folder or hub id.")],
    out: Annotated[
        Path, typer.Option(help="JSON or JSONL file for the items with their responses.")
    ],
    base_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server: http://host:8000/v1")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model to ask there.")] = None,
    backbone: Annotated[
        str | None, typer.Option(help="Or a local backbone: hub id, folder or embedded.")
    ] = None,
    style: Annotated[
        str | None, typer.Option(help="Way of asking, where a benchmark has several.")
    ] = None,
    no_image: Annotated[
        bool, typer.Option("--no-image", help="Ask without the pictures: what is known blind?")
    ] = False,
    option_logits: Annotated[
        bool,
        typer.Option(
            "--option-logits",
            help="With --backbone: write OUT.logits.json too, for custos bench lal.",
        ),
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask the first so many items.")] = None,
    temperature: Annotated[
        float, typer.Option(min=0, help="Some servers' reasoning models take 1 alone.")
    ] = 0.0,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest response.")] = 2048,
    key_env: KeyEnv = None,
    concurrency: Concurrency = 8,
    deadline: Deadline = 300,
    prompt_price: PromptPrice = 0,
    completion_price: CompletionPrice = 0,
) -> None:
    """Have a model answer a benchmark: the bare question and its pictures, at temperature 0.

    Answers are kept in OUT.answers.jsonl; the same command picks up where it was stopped and asks
    again for what failed. Items without a response are listed and left out, with exit code 1.

    Example: custos bench respond charthal --items charthal.json --base-url https://api.openai.com/v1
    --model gpt-4o --key-env OPENAI_API_KEY --out gpt.response.json
    """
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import check_output, write_graded
    from benchmarks.framework.responses import build_questions, join_answers
    from cli.grade import show_problems, write_problems
    from clients.chat import ModelServer
    from clients.jobs import run_job, spent
    from clients.messages import Decoding

    if option_logits and backbone is None:
        raise CustosError("--option-logits: needs a local model: --backbone")
    benchmark = get_benchmark(name)
    check_output(out, Path(items))
    rows = benchmark.load(items, out.with_name(f"{out.stem}-images"))[:limit]
    asked = build_questions(benchmark, rows, style or benchmark.styles[0], not no_image)
    chats = [question.chat for question in asked]
    decoding = Decoding(temperature=temperature, max_tokens=max_tokens)
    answers = out.with_name(f"{out.name}.answers.jsonl")
    price = prices(prompt_price, completion_price)
    started = time.perf_counter()
    if backbone is not None and base_url is None:
        result = _ask_backbone(chats, backbone, decoding, answers)
    elif base_url is not None and model is not None and backbone is None:
        server = ModelServer(
            base_url, model, api_key(key_env), concurrency=concurrency, deadline=deadline
        )
        rejects = out.with_name(f"{out.name}.rejects.jsonl")
        result = run_job(chats, server, decoding, answers=answers, rejects=rejects, prices=price)
    else:
        raise CustosError("name who answers: --base-url with --model, or --backbone")
    complete, problems = join_answers(rows, asked, result)
    if option_logits and backbone is not None:
        problems |= _write_option_logits(benchmark, rows, asked, backbone, out)
    write_graded(out, complete, benchmark.keyed)
    show_problems(Path(items), problems)
    write_problems(out.with_name(f"{out.name}.errors.jsonl"), problems)
    replies = result.replies.values()
    counts = {
        "items": len(rows),
        "responses": len(complete),
        "failed": len(problems),
        "empty": sum(not reply.text.strip() for reply in replies),
        "cut_off": sum(reply.finish_reason == "length" for reply in replies),
    }
    write_json(
        out.with_name(f"{out.name}.manifest.json"),
        {
            "benchmark": name,
            "model": model or backbone,
            "style": style or benchmark.styles[0],
            "images": not no_image,
            "decoding": decoding.model_dump(exclude_none=True),
            **counts,
            **result.account(price),
            "seconds": time.perf_counter() - started if not result.num_reused else None,
            "version": version("custos"),
            "command": shlex.join(["custos", *sys.argv[1:]]),
        },
    )
    typer.echo(", ".join(f"{count} {what.replace('_', ' ')}" for what, count in counts.items()))
    typer.echo(f"{spent(result.usage, price)}: {out}")
    if problems:
        raise typer.Exit(1)


def _ask_backbone(
    chats: Sequence[ChatItem], backbone: str, decoding: Decoding, answers: Path
) -> JobResult:
    from benchmarks.framework.responses import ask_backbone

    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("answering", total=len(chats))
        return ask_backbone(
            chats,
            backbone,
            decoding,
            answers=answers,
            on_progress=lambda done: progress.update(bar, completed=done),
        )


def _write_option_logits(
    benchmark: Benchmark,
    rows: Sequence[Row],
    asked: Sequence[ItemQuestion],
    backbone: str,
    out: Path,
) -> dict[int, str]:
    from benchmarks.truthfulvqa.option_logits import option_logits

    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("option logits", total=len(asked))
        found, problems = option_logits(
            benchmark,
            rows,
            asked,
            backbone,
            on_progress=lambda done: progress.update(bar, completed=done),
        )
    write_json(out.with_name(f"{out.name}.logits.json"), found)
    return problems
