"""``custos prep critiques``: training rows for judges that write a critique before they decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.prep.construct.asking import Asking, OutFolder
from cli.shared.bad_rows import show_skipped
from cli.shared.options.groups import with_groups
from cli.shared.options.server import (
    MaxTokens,
    PriceOptions,
    RequestOptions,
    ServerUrl,
    Temperature,
    Writer,
)
from cli.shared.output_folders import check_keeps_sources
from cli.shared.progress import job_bar, show_spent
from data_prep.sources.conversations import PAIR_TASK
from data_prep.splits.manifest import describe_file, load_generic
from judging.errors import CustosError, FieldError
from judging.tasks import get_task
from judging.types import LabelledExample


@with_groups
def critiques(
    source: Annotated[
        Path,
        typer.Option(
            help="Read this JSONL, JSON or Parquet file of truthful-pair rows with labels."
        ),
    ],
    base_url: ServerUrl,
    model: Writer,
    out: OutFolder,
    *,
    request_options: RequestOptions,
    temperature: Temperature = None,
    max_tokens: MaxTokens = 2048,
    price_options: PriceOptions,
    show_reasons: Annotated[
        bool,
        typer.Option(
            "--show-reasons",
            help="Show the model people's scores and reasons too. In the paper it sees their label "
            "and the faults that they marked.",
        ),
    ] = False,
) -> None:
    """Have a strong model write the critiques that lead to what people preferred.

    Rows without a critique that ends in people's label are listed in OUT/rejects.jsonl. If the
    command is stopped, the same command continues where it stopped and sends failed requests again.

    Example: custos prep critiques --source pairs.jsonl --base-url https://api.openai.com/v1
    --model gpt-4o --key-env OPENAI_API_KEY --out data/critiques
    """
    from clients.messages import Decoding
    from data_prep.construction.critiques import CONVERSATIONS, write_critiques
    from data_prep.construction.model_writer import ROWS

    check_keeps_sources(out, (ROWS, CONVERSATIONS), [source])
    bad_rows: list[str] = []
    pairs = labelled_pairs(load_generic(source, bad_rows), bad_rows)
    show_skipped(bad_rows)
    if not pairs:
        raise CustosError(f"{source}: there are no labelled rows of task '{PAIR_TASK}'")
    asking = Asking(
        base_url,
        request_options,
        Decoding(temperature=temperature, max_tokens=max_tokens),
        {**describe_file(source), "bad_rows": len(bad_rows)},
        price_options.read(),
    )
    with job_bar(asking.prices) as show:
        manifest = write_critiques(
            pairs, asking.writer(model, out, show), show_reasons=show_reasons
        )
    for line in _report(manifest):
        typer.echo(line)
    show_spent(manifest)
    typer.echo(f"{out}")


def labelled_pairs(
    examples: Sequence[LabelledExample], bad_rows: list[str]
) -> list[LabelledExample]:
    """Return the examples that are labelled pairs; add what is wrong with the others to a list."""
    task = get_task(PAIR_TASK)
    pairs = []
    for example in examples:
        try:
            if example.task != PAIR_TASK:
                raise FieldError("task", f"expected '{PAIR_TASK}', got '{example.task}'")
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
    for name, title in (("counts", "kept"), ("rejected", "rejected")):
        counts = manifest[name]
        listed = ", ".join(f"{count} {reason}" for reason, count in counts.items())
        yield f"{title}: {sum(counts.values())}{f' ({listed})' if counts else ''}"
