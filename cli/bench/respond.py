"""``custos bench respond``: a model answers a benchmark."""

from __future__ import annotations

import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.options import (
    ChatModel,
    Items,
    Name,
    PriceOptions,
    RequestOptions,
    command_line,
    with_groups,
)
from cli.shared.outputs import OutFile
from cli.shared.screen import counting_bar, job_bar, show_problems, spent_text, write_problems
from judging.errors import CustosError, FieldError
from judging.files.records import write_json


@with_groups
def respond(
    name: Name,
    items: Items,
    out: OutFile,
    base_url: str | None = None,
    model: ChatModel = None,
    backbone: str | None = None,
    style: str | None = None,
    no_image: Annotated[bool, typer.Option("--no-image")] = False,
    option_logits: Annotated[bool, typer.Option("--option-logits")] = False,
    limit: Annotated[int | None, typer.Option(min=1)] = None,
    wording: Annotated[Path | None, typer.Option("--wording")] = None,
    *,
    published: Annotated[str | None, typer.Option("--decoding", metavar="NAME")] = None,
    temperature: Annotated[float | None, typer.Option(min=0)] = None,
    top_p: Annotated[float | None, typer.Option(min=0.001, max=1)] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1)] = None,
    reasoning_effort: str | None = None,
    request_options: RequestOptions,
    price_options: PriceOptions,
) -> None:
    """Have a model answer a benchmark: its questions and pictures, at temperature 0 by default.

    An answer that ends at a token limit is marked in the field cut_off; no rule reads it.

    Answers are kept in OUT.answers.jsonl. If the command is stopped, the same command continues
    where it stopped, and it asks failed items again. Items without a response are listed and left
    out; then the exit status is 1.

    Example: custos bench respond charthal --items charthal.json --base-url https://api.openai.com/v1
    --model gpt-4o --key-env OPENAI_API_KEY --out gpt.response.json

    Options:
        out: Write items with their responses to this JSON or JSONL file.
        base_url: Ask the OpenAI-compatible server at this address, as in http://host:8000/v1.
            Default: ask the --backbone.
        backbone: Ask this local backbone: a hub id, a folder or embedded. Default: ask the server.
        style: Way of asking. Default: the first one that the benchmark has.
        no_image: Leave out the pictures, to see what the model knows blind.
        option_logits: With --backbone: write OUT.logits.json too, for custos bench lal: the logits
            of all options where the model names its own, after what it wrote before. Answers that
            name none are listed.
        limit: Ask only this many items, the first. Default: all.
        wording: Ask in the words of this YAML file (response field: text with {question}), to
            repeat a paper's exact prompt. Default: our own words of the style.
        published: Sample as the paper does, such as chat or mulberry of TruthfulVQA's Table 5;
            another name lists all. Default: temperature 0, no limit.
        temperature: Sampling temperature. Some servers' reasoning models need 1. Default: that of
            --decoding, else 0.
        top_p: Sample from this share of the probability. Default: that of --decoding, else the
            server's own.
        max_tokens: Stop an answer after this many tokens. Default: that of --decoding, else no
            limit on a server and 512 with --backbone.
        reasoning_effort: Have a reasoning model think so long, in the server's words, such as low
            or high. Default: the server's own.
    """
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import check_suffix, write_graded
    from benchmarks.framework.responses import (
        ask_backbone,
        build_questions,
        join_answers,
        read_wording,
    )
    from clients.chat import run_job
    from clients.messages import Decoding
    from judging.files.kept_work import locked

    if option_logits and backbone is None:
        raise CustosError("--option-logits: needs a local model: --backbone")
    benchmark = get_benchmark(name)
    check_suffix(out)

    def beside(ending: str) -> Path:
        return out.with_name(f"{out.name}.{ending}")

    with locked(out):
        rows = benchmark.load(items, out.with_name(f"{out.stem}-images"))[:limit]
        style, started = style or benchmark.styles[0], time.perf_counter()
        own_words = None if wording is None else read_wording(wording)
        try:
            questions = build_questions(benchmark, rows, style, not no_image, own_words)
        except FieldError as error:
            raise error.at(f"{items}: {error.location}") from None
        chats = [question.chat for question in questions]
        if published is not None and published not in benchmark.decodings:
            names = ", ".join(benchmark.decodings) or "nothing: its paper names none"
            raise CustosError(f"--decoding '{published}': '{benchmark.name}' has {names}")
        given: dict[str, float | str | None] = {"temperature": temperature, "top_p": top_p}
        given |= {"max_tokens": max_tokens, "reasoning_effort": reasoning_effort}
        decoding = benchmark.decodings[published] if published else Decoding(temperature=0.0)
        decoding = decoding.model_copy(update={k: v for k, v in given.items() if v is not None})
        price = price_options.read()
        if (backbone is None) == (base_url is None) or (base_url is not None and model is None):
            raise CustosError("name who answers: --base-url with --model, or --backbone")
        with job_bar(price) as show:
            answers = beside("answers.jsonl")
            if backbone is not None:
                result = ask_backbone(chats, backbone, decoding, answers=answers, on_progress=show)
            else:
                server = request_options.server(str(base_url), str(model))
                rejects = beside("rejects.jsonl")
                result = run_job(
                    chats, server, decoding, answers=answers, rejects=rejects, on_progress=show
                )
        complete, problems = join_answers(benchmark, rows, questions, result)
        if option_logits and backbone is not None:
            from benchmarks.truthfulvqa.logits import option_logits as logits_of

            with counting_bar("option logits", len(questions)) as count:
                logits, without = logits_of(
                    benchmark, rows, questions, result.replies, backbone, on_progress=count
                )
            write_json(beside("logits.json"), logits)
            problems |= without
        write_graded(out, complete, benchmark.keyed)
        show_problems(Path(items), problems)
        write_problems(beside("errors.jsonl"), problems)
        replies = result.replies.values()
        counts = {
            "items": len(rows),
            "responses": len(complete),
            "failed": len(problems),
            "empty": sum(not reply.text.strip() for reply in replies),
            "cut_off": sum(reply.finish_reason == "length" for reply in replies),
        }
        write_json(
            beside("manifest.json"),
            {
                "benchmark": name,
                "model": backbone or model,
                "style": style,
                "images": not no_image,
                "wording": None if wording is None else str(wording),
                "decoding": decoding.model_dump(exclude_none=True),
                **counts,
                **result.account(price),
                "seconds": None if result.num_reused else time.perf_counter() - started,
                "version": version("custos"),
                "command": command_line(),
            },
        )
    typer.echo(", ".join(f"{count} {what.replace('_', ' ')}" for what, count in counts.items()))
    typer.echo(f"{spent_text(result.usage, price)}: {out}")
    if problems:
        raise typer.Exit(1)
