"""``custos prep hieval``: responses that are labelled on HiEval's three levels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.shared.command_line import read_assignments
from cli.shared.options.filters import FilterOptions
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import AllowDropped
from cli.shared.splits import HeldOutSizes, Out, Seed, check_keeps_splits, split_and_write
from data_prep.sources.hieval import Columns, load_hieval
from data_prep.splits.manifest import describe_file
from data_prep.tables.source import HubOptions, is_hub_id, split_files
from judging.types import parse_record


@with_groups
def hieval(
    source: Annotated[
        str,
        typer.Option(
            help="Read this CSV, TSV, JSONL, JSON or Parquet file, this folder of a hub data set, "
            "or this hub data set (owner/name)."
        ),
    ],
    out: Out,
    field: Annotated[
        list[str] | None,
        typer.Option(
            help="OURS=THEIRS: read our field OURS from the column THEIRS. OURS is one of "
            "question, references, response, label, error_type, id, group, images. May be "
            "repeated. Default: the columns question, answer, response and label."
        ),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            help="COLUMN or OURS=COLUMN: keep this column as metadata. May be repeated. "
            "Default: none."
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="THEIRS=OURS: read their label THEIRS as our label OURS. May be repeated. "
            "Default: the labels are called Correct, Partial and Wrong."
        ),
    ] = None,
    separator: Annotated[
        str, typer.Option(help="Text between the elements of an answer that is one string.")
    ] = ";",
    variant: Annotated[str, typer.Option(help="Variant of the task the labels follow.")] = "plain",
    hub_split: Annotated[str, typer.Option(help="Read this split of the hub data set.")] = "train",
    hub_config: Annotated[
        str | None,
        typer.Option(help="Read this configuration of the hub data set. Default: the only one."),
    ] = None,
    hub_revision: Annotated[
        str | None, typer.Option(help="Read this commit of the hub data set. Default: the newest.")
    ] = None,
    *,
    filters: FilterOptions,
    seed: Seed = 0,
    sizes: HeldOutSizes,
    allow_dropped: AllowDropped = False,
) -> None:
    """Prepare responses labelled Correct, Partial or Wrong, from a file or the Hugging Face hub.

    Pictures are kept for rows with types of errors. The quick score reads text alone.

    Example: custos prep hieval --source rows.parquet --field references=gold --metadata
    answerer=model --label 2=Correct --label 1=Partial --label 0=Wrong --out data/qs
    """
    check_keeps_splits(out, [Path(source), *Path(source).glob("*")])
    bad_rows: list[str] = []
    columns = _columns(field, metadata, label, separator)
    if columns.images is not None and columns.error_type is None:
        typer.echo("the quick score reads text alone: pictures are left out")
        columns = columns.model_copy(update={"images": None})
    examples = load_hieval(
        source,
        columns,
        variant=variant,
        hub=HubOptions(hub_split, hub_config, hub_revision),
        image_folder=out / "images",
        bad_rows=bad_rows,
    )
    on_hub = {"name": source, "split": hub_split, "config": hub_config, "revision": hub_revision}
    described = on_hub if is_hub_id(source) else _describe(Path(source), hub_split)
    kept = filters.apply(examples)
    held_out, num_filtered = sizes.read(), len(examples) - len(kept)
    split_and_write(
        kept, out, described, held_out, seed, bad_rows, num_filtered, allow_dropped=allow_dropped
    )


def _columns(
    field: Sequence[str] | None,
    metadata: Sequence[str] | None,
    label: Sequence[str] | None,
    separator: str,
) -> Columns:
    named = [text if "=" in text else f"{text}={text}" for text in metadata or ()]
    fields = {
        **read_assignments(field, "--field"),
        "metadata": read_assignments(named, "--metadata"),
        "labels": read_assignments(label, "--label"),
        "separator": separator,
    }
    return parse_record(Columns, fields, "--field, --label")


def _describe(source: Path, split: str) -> dict[str, Any]:
    """Return name and content hashes of a file or of the files of a split in a folder."""
    if source.is_file():
        return dict(describe_file(source))
    files = split_files(source, split)
    return {"name": source.name, "split": split, "files": [describe_file(path) for path in files]}
