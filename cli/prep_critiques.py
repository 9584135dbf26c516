"""``custos prep critiques`` and ``truthful``: training rows for judges that write critiques."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.prep import (
    Cal,
    Out,
    Seed,
    SourceFile,
    Strict,
    Test,
    Val,
    held_out_shares,
    show_bad_rows,
    split_and_write,
)
from cli.shared.server_options import (
    CompletionPrice,
    Concurrency,
    Deadline,
    KeyEnv,
    PromptPrice,
    ServerUrl,
    Temperature,
    Writer,
    api_key,
    prices,
)
from data_prep.sources.generic import load_generic
from data_prep.sources.judgement_text import PAIR_TASK
from data_prep.splits.manifest import describe_file
from judging.errors import CustosError
from judging.tasks import get_task
from judging.types import LabelledExample, parse_record


def critiques(
    source: Annotated[
        Path, typer.Option(help="JSONL, JSON or Parquet file of truthful-pair rows with labels.")
    ],
    base_url: ServerUrl,
    model: Writer,
    out: Annotated[Path, typer.Option(help="Folder for rows, rejects and manifest.json.")],
    key_env: KeyEnv = None,
    concurrency: Concurrency = 8,
    deadline: Deadline = 300,
    temperature: Temperature = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer.")] = 2048,
    prompt_price: PromptPrice = 0,
    completion_price: CompletionPrice = 0,
) -> None:
    """Have a strong model write the critiques that lead to what people preferred.

    Rows without a critique that ends in people's label are listed in OUT/rejects.jsonl. The same
    command picks up where it was stopped, and asks again where a request failed.

    Example: custos prep critiques --source pairs.jsonl --base-url https://api.openai.com/v1
    --model gpt-4o --key-env OPENAI_API_KEY --out data/critiques
    """
    from clients.chat import ModelServer
    from clients.messages import Decoding
    from data_prep.construction.critiques import write_critiques

    server = ModelServer(
        base_url, model, api_key(key_env), concurrency=concurrency, deadline=deadline
    )
    bad_rows: list[str] = []
    pairs = _pairs(load_generic(source, bad_rows), bad_rows)
    show_bad_rows(bad_rows)
    if not pairs:
        raise CustosError(f"{source}: there are no labelled rows of task '{PAIR_TASK}'")
    manifest = write_critiques(
        pairs,
        server,
        Decoding(temperature=temperature, max_tokens=max_tokens),
        prices(prompt_price, completion_price),
        out,
        source={**describe_file(source), "bad_rows": len(bad_rows)},
        command=shlex.join(["custos", *sys.argv[1:]]),
    )
    for line in _report(manifest):
        typer.echo(line)
    typer.echo(f"{out}")


def truthful(
    source: SourceFile,
    out: Out,
    question: Annotated[str, typer.Option(help="Heading of the question.")] = "[[Question]]",
    reference: Annotated[
        str, typer.Option(help="Heading of the reference answer, where there is one.")
    ] = "[[Reference Answer]]",
    response_a: Annotated[str, typer.Option(help="Heading of response A.")] = "[[Response A]]",
    response_b: Annotated[str, typer.Option(help="Heading of response B.")] = "[[Response B]]",
    seed: Seed = 0,
    val: Val = 0.05,
    cal: Cal = 0.07,
    test: Test = 0.12,
    strict: Strict = False,
) -> None:
    """Prepare judged pairs in the public format: chat messages with image marks, and images.

    Example: custos prep truthful --source judge_train.json --out data/truthful --test 812
    """
    from data_prep.sources.conversations import Headings, load_conversations

    headings = parse_record(
        Headings,
        {
            "question": question,
            "reference": reference,
            "response_a": response_a,
            "response_b": response_b,
        },
        "headings",
    )
    bad_rows: list[str] = []
    examples = load_conversations(
        source, headings, image_folder=out / "images", bad_rows=None if strict else bad_rows
    )
    held_out = held_out_shares(val, cal, test)
    split_and_write(examples, out, describe_file(source), held_out, seed, bad_rows)


def _pairs(examples: Sequence[LabelledExample], bad_rows: list[str]) -> list[LabelledExample]:
    """The examples that are labelled pairs; what is wrong with the others is reported."""
    task = get_task(PAIR_TASK)
    pairs = []
    for example in examples:
        try:
            if example.task != PAIR_TASK:
                raise CustosError(f"field 'task': expected '{PAIR_TASK}', got '{example.task}'")
            task.check(example)
            task.target(example)
            if ruling := task.rule(example):
                raise CustosError(ruling.message)
        except CustosError as error:
            bad_rows.append(f"row '{example.id}': {error}")
            continue
        pairs.append(example)
    return pairs


def _report(manifest: Mapping[str, Any]) -> Iterator[str]:
    for name in ("counts", "rejected"):
        counts = manifest[name]
        listed = ", ".join(f"{number} {what}" for what, number in counts.items())
        title = "kept" if name == "counts" else "rejected"
        yield f"{title}: {sum(counts.values())}{f' ({listed})' if counts else ''}"
    usage, cost = manifest["usage"], manifest["cost"]
    counted = f"{usage['prompt_tokens']:,} prompt and {usage['completion_tokens']:,} completion"
    yield f"tokens: {counted}{'' if cost is None else f', cost {cost:.4f}'}"
    if manifest["uncounted"]:
        yield f"answers whose tokens the server did not count: {manifest['uncounted']}"
