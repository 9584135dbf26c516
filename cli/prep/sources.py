"""The verbs of ``custos prep`` that read published data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.shared.options import read_assignments, with_groups
from cli.shared.screen import check_skipped
from cli.shared.splits import FilterOptions, SourceFile, SplitOptions
from cli.shared.tables import AllowDropped
from data_prep.sources.conversations import Headings, load_conversations, with_references
from data_prep.sources.evouna import load_evouna
from data_prep.sources.hieval import COLUMNS, load_hieval
from data_prep.sources.truthfulqa import load_truthfulqa
from data_prep.splits.filters import read_excluded, without_excluded
from data_prep.splits.manifest import describe_file
from data_prep.tables.mapping import TableMapping
from data_prep.tables.source import HubOptions, is_hub_id, split_files
from judging.types import parse_record


@with_groups
def evouna(
    source: SourceFile,
    exclude: Path | None = None,
    *,
    division: SplitOptions,
    allow_dropped: AllowDropped = False,
) -> None:
    """Prepare EVOUNA: answers of five systems to open questions, judged right or wrong by people.

    Example: custos prep evouna --source NQ.json --out data/evouna

    Options:
        exclude: Leave out the questions whose hashes this file lists, one a line: SHA-256 of the
            question in lower case, everything but letters and digits one space. Their
            near-duplicates are left out too. Default: none.
    """
    division.keep(source)
    excluded = read_excluded(exclude) if exclude else frozenset()
    bad_rows: list[str] = []
    examples = load_evouna(source, bad_rows)
    kept = without_excluded(examples, excluded) if excluded else examples
    described: dict[str, object] = dict(describe_file(source))
    if exclude:
        described["exclude"] = describe_file(exclude)
    check_skipped(source.name, bad_rows, allow_dropped=allow_dropped)
    left_out = {"bad_rows": len(bad_rows), "filtered": len(examples) - len(kept)}
    division.write(division.divide(kept), described, left_out)


@with_groups
def truthfulqa(
    source: SourceFile, *, division: SplitOptions, allow_dropped: AllowDropped = False
) -> None:
    """Prepare TruthfulQA: answers of models, judged true or false by people.

    Each row needs question, response, label (True or False) and the list correct_answers, whose
    members become references. Answers that say nothing are left out: they are true, but not right.

    Example: custos prep truthfulqa --source truthfulqa.jsonl --out data/truthfulqa
    """
    division.keep(source)
    bad_rows: list[str] = []
    examples, left_out = load_truthfulqa(source, bad_rows)
    check_skipped(source.name, bad_rows, allow_dropped=allow_dropped)
    left_out = {"bad_rows": len(bad_rows), **left_out}
    division.write(division.divide(examples), describe_file(source), left_out)


@with_groups
def hieval(
    source: Annotated[str, typer.Option()],
    field: list[str] | None = None,
    metadata: list[str] | None = None,
    label: list[str] | None = None,
    separator: str = ";",
    variant: str = "plain",
    hub_split: str = "train",
    hub_config: str | None = None,
    hub_revision: str | None = None,
    *,
    filters: FilterOptions,
    division: SplitOptions,
    allow_dropped: AllowDropped = False,
) -> None:
    """Prepare responses labelled Correct, Partial or Wrong, from a file or the Hugging Face hub.

    Pictures are kept for rows with types of errors. The quick score reads text alone.

    Example: custos prep hieval --source rows.parquet --field references=gold --metadata
    answerer=model --label 2=Correct --label 1=Partial --label 0=Wrong --out data/qs

    Options:
        source: Read this CSV, TSV, JSONL, JSON or Parquet file, this folder of a hub data set, or
            this hub data set (owner/name).
        field: OURS=THEIRS: read our field OURS from the column THEIRS. OURS is one of question,
            references, response, label, error_type, id, group, images. May be repeated. Default:
            the columns question, answer, response and label.
        metadata: COLUMN or OURS=COLUMN: keep this column as metadata. May be repeated. Default:
            none.
        label: THEIRS=OURS: read their label THEIRS as our label OURS. May be repeated. Default: the
            labels are called Correct, Partial and Wrong.
        separator: Text between the elements of an answer that is one string.
        variant: Variant of the task the labels follow.
        hub_split: Read this split of the hub data set.
        hub_config: Read this configuration of the hub data set. Default: the only one.
        hub_revision: Read this commit of the hub data set. Default: the newest.
    """
    path = Path(source)
    division.keep(path, *path.glob("*"))
    named = [text if "=" in text else f"{text}={text}" for text in metadata or ()]
    columns = {**COLUMNS, **read_assignments(field, "--field")}
    if "images" in columns and "error_type" not in columns:
        typer.echo("the quick score reads text alone: pictures are left out")
        del columns["images"]
    settings = {
        "columns": columns,
        "labels": read_assignments(label, "--label"),
        "separator": separator,
        "variant": variant,
    }
    bad_rows: list[str] = []
    examples = load_hieval(
        source,
        parse_record(TableMapping, settings, "--field, --label"),
        read_assignments(named, "--metadata"),
        hub=HubOptions(hub_split, hub_config, hub_revision),
        image_folder=division.out / "images",
        bad_rows=bad_rows,
    )
    described: dict[str, Any] = {"name": source, "split": hub_split}
    if is_hub_id(source):
        described |= {"config": hub_config, "revision": hub_revision}
    elif path.is_file():
        described = dict(describe_file(path))
    else:
        files = [describe_file(file) for file in split_files(path, hub_split)]
        described |= {"name": path.name, "files": files}
    kept = filters.apply(examples)
    check_skipped(described["name"], bad_rows, allow_dropped=allow_dropped)
    left_out = {"bad_rows": len(bad_rows), "filtered": len(examples) - len(kept)}
    division.write(division.divide(kept), described, left_out)


@with_groups
def truthful(
    source: SourceFile,
    question: str = "[[Question]]",
    reference: str = "[[Reference Answer]]",
    response_a: str = "[[Response A]]",
    response_b: str = "[[Response B]]",
    shown: Annotated[
        Literal["shown", "hidden", "both"], typer.Option("--reference-answer")
    ] = "shown",
    *,
    division: SplitOptions,
    allow_dropped: AllowDropped = False,
) -> None:
    """Prepare judged pairs in the public format: chat messages with image marks, and images.

    Example: custos prep truthful --source judge_train.json --out data/truthful --test 812

    Options:
        question: Heading of the question in the messages.
        reference: Heading of the reference answer, where there is one.
        response_a: Heading of response A.
        response_b: Heading of response B.
        shown: Keep the reference answers of the rows, leave them out as the paper's chat turn does,
            or write every row that has one both ways.
    """
    division.keep(source)
    texts = {
        "question": question,
        "reference": reference,
        "response_a": response_a,
        "response_b": response_b,
    }
    headings = parse_record(Headings, texts, "headings")
    bad_rows: list[str] = []
    images = division.out / "images"
    examples = load_conversations(source, headings, image_folder=images, bad_rows=bad_rows)
    check_skipped(source.name, bad_rows, allow_dropped=allow_dropped)
    left_out = {"bad_rows": len(bad_rows), "filtered": 0}
    splits = division.divide(with_references(examples, shown))
    division.write(splits, describe_file(source), left_out)
