"""``custos prep truthful``: judged pairs in TruthfulJudge's public format."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import AllowDropped
from cli.shared.splits import (
    HeldOutSizes,
    Out,
    Seed,
    SourceFile,
    check_keeps_splits,
    split_and_write,
)
from data_prep.splits.manifest import describe_file
from judging.types import parse_record


@with_groups
def truthful(
    source: SourceFile,
    out: Out,
    question: Annotated[
        str, typer.Option(help="Heading of the question in the messages.")
    ] = "[[Question]]",
    reference: Annotated[
        str, typer.Option(help="Heading of the reference answer, where there is one.")
    ] = "[[Reference Answer]]",
    response_a: Annotated[str, typer.Option(help="Heading of response A.")] = "[[Response A]]",
    response_b: Annotated[str, typer.Option(help="Heading of response B.")] = "[[Response B]]",
    shown: Annotated[
        Literal["shown", "hidden", "both"],
        typer.Option(
            "--reference-answer",
            help="Keep the reference answers of the rows, leave them out as the paper's chat turn "
            "does, or write every row that has one both ways.",
        ),
    ] = "shown",
    seed: Seed = 0,
    *,
    sizes: HeldOutSizes,
    allow_dropped: AllowDropped = False,
) -> None:
    """Prepare judged pairs in the public format: chat messages with image marks, and images.

    Example: custos prep truthful --source judge_train.json --out data/truthful --test 812
    """
    from data_prep.sources.conversations import Headings, load_conversations, with_references

    check_keeps_splits(out, [source])
    texts = {
        "question": question,
        "reference": reference,
        "response_a": response_a,
        "response_b": response_b,
    }
    headings = parse_record(Headings, texts, "headings")
    bad_rows: list[str] = []
    examples = load_conversations(source, headings, image_folder=out / "images", bad_rows=bad_rows)
    examples = with_references(examples, shown)
    held_out = sizes.read()
    split_and_write(
        examples, out, describe_file(source), held_out, seed, bad_rows, allow_dropped=allow_dropped
    )
