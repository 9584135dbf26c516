"""``custos prep``: raw data to train, validation, calibration and test files."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from data_prep.sources.evouna import load_evouna
from data_prep.sources.generic import load_generic
from data_prep.sources.hieval import Columns, load_hieval
from data_prep.sources.hub import HubOptions, is_hub_id
from data_prep.splits.filters import MIN_WORDS, drop_trivial, keep_contested, parse_verdicts
from data_prep.splits.manifest import describe_file, write_prepared
from data_prep.splits.splits import SPLITS, HeldOut, Splits, split_beside_test, split_examples
from judging.errors import CustosError
from judging.types import LabelledExample, parse_record

app = typer.Typer(no_args_is_help=True, help="Turn raw data into train, val, cal and test files.")

MAX_BAD_ROWS_SHOWN = 10

SourceFile = Annotated[Path, typer.Option("--source", help="File to read.")]
Out = Annotated[Path, typer.Option(help="Folder for the four JSONL files and manifest.json.")]
Seed = Annotated[int, typer.Option(help="Which of the many balanced divisions to take.")]
Val = Annotated[float, typer.Option(help="Validation: a share below 1, or how many examples.")]
Cal = Annotated[float, typer.Option(help="Calibration: a share below 1, or how many examples.")]
Test = Annotated[float, typer.Option(help="Test: a share below 1, or how many examples.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first bad row.")]
MinWords = Annotated[
    int,
    typer.Option(
        min=0,
        help=f"Drop examples whose responses all have fewer words; 0 keeps all (try {MIN_WORDS}).",
    ),
]
Verdicts = Annotated[
    Path | None,
    typer.Option(help="JSON object from example id to a list of labels, one from each model."),
]
Disagreeing = Annotated[
    int, typer.Option(help="With --verdicts: keep what this many models get wrong.")
]
Models = Annotated[int, typer.Option(help="With --verdicts: how many models judged.")]


@app.command()
def evouna(
    source: SourceFile,
    out: Out,
    seed: Seed = 0,
    val: Val = 0.05,
    cal: Cal = 0.07,
    test: Test = 0.12,
    strict: Strict = False,
) -> None:
    """Prepare EVOUNA: answers of five systems to open questions, judged right or wrong by people.

    Example: custos prep evouna --source NQ.json --out data/evouna
    """
    bad_rows: list[str] = []
    examples = load_evouna(source, None if strict else bad_rows)
    split_and_write(
        examples, out, describe_file(source), held_out_shares(val, cal, test), seed, bad_rows
    )


@app.command()
def hieval(
    source: Annotated[
        str, typer.Option(help="JSONL, JSON or Parquet file, or hub data set (owner/name).")
    ],
    out: Out,
    field: Annotated[
        list[str] | None,
        typer.Option(
            help="OURS=THEIRS, a column under another name. OURS is one of question, references, "
            "response, label, error_type, id, group, images. May be repeated."
        ),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(help="COLUMN or OURS=COLUMN to keep as metadata. May be repeated."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="THEIRS=OURS, what one of their labels means. May be repeated."),
    ] = None,
    separator: Annotated[str, typer.Option(help="Between the elements of an answer.")] = ";",
    variant: Annotated[str, typer.Option(help="Variant of the task the labels follow.")] = "plain",
    hub_split: Annotated[str, typer.Option(help="Split of the hub data set.")] = "train",
    hub_config: Annotated[
        str | None, typer.Option(help="Configuration of the hub data set.")
    ] = None,
    hub_revision: Annotated[str | None, typer.Option(help="Commit of the hub data set.")] = None,
    min_words: MinWords = 0,
    verdicts: Verdicts = None,
    disagreeing: Disagreeing = 3,
    models: Models = 6,
    seed: Seed = 0,
    val: Val = 0.05,
    cal: Cal = 0.07,
    test: Test = 0.12,
    strict: Strict = False,
) -> None:
    """Prepare responses labelled Correct, Partial or Wrong, from a file or the Hugging Face hub.

    Columns are question, answer, response and label unless --field says otherwise.

    Example: custos prep hieval --source rows.parquet --field references=gold --metadata
    answerer=model --label 2=Correct --label 1=Partial --label 0=Wrong --out data/qs
    """
    columns = parse_record(
        Columns,
        {
            **_assignments(field, "--field"),
            "metadata": _assignments(
                [m if "=" in m else f"{m}={m}" for m in metadata or ()], "--metadata"
            ),
            "labels": _assignments(label, "--label"),
            "separator": separator,
        },
        "--field, --label",
    )
    hub = HubOptions(hub_split, hub_config, hub_revision)
    bad_rows: list[str] = []
    examples = load_hieval(
        source,
        columns,
        variant=variant,
        hub=hub,
        image_folder=out / "images",
        bad_rows=None if strict else bad_rows,
    )
    on_hub = {"name": source, "split": hub_split, "config": hub_config, "revision": hub_revision}
    described = on_hub if is_hub_id(source) else describe_file(Path(source))
    kept = _filter(examples, min_words, verdicts, disagreeing, models)
    split_and_write(
        kept,
        out,
        described,
        held_out_shares(val, cal, test),
        seed,
        bad_rows,
        len(examples) - len(kept),
    )


@app.command()
def generic(
    source: SourceFile,
    out: Out,
    min_words: MinWords = 0,
    verdicts: Verdicts = None,
    disagreeing: Disagreeing = 3,
    models: Models = 6,
    seed: Seed = 0,
    val: Val = 0.05,
    cal: Cal = 0.07,
    test: Test = 0.12,
    strict: Strict = False,
) -> None:
    """Prepare rows that already have our shape (question, references, response, label, ...).

    Example: custos prep generic --source annotated.jsonl --out data/ours --test 500
    """
    bad_rows: list[str] = []
    examples = load_generic(source, None if strict else bad_rows)
    kept = _filter(examples, min_words, verdicts, disagreeing, models)
    held_out = held_out_shares(val, cal, test)
    split_and_write(
        kept, out, describe_file(source), held_out, seed, bad_rows, len(examples) - len(kept)
    )


@app.command()
def synthetic(
    out: Out,
    rows: Annotated[
        int, typer.Option(min=1, help="How many examples to make, all splits together.")
    ],
    worlds: Annotated[
        Literal["all", "open"],
        typer.Option(help="open: English questions with one answer, the easiest to learn from."),
    ] = "all",
    seed: Seed = 0,
    val: Val = 0.05,
    cal: Cal = 0.07,
    test: Test = 0.12,
) -> None:
    """Make quick-scoring examples whose labels hold by construction.

    The test split is worded in surface forms that no other split shows; examples whose question is
    too like one of the test split are left out.

    Example: custos prep synthetic --out data/synthetic --rows 20000 --seed 1
    """
    from data_prep.synthetic.text import generate

    held_out = held_out_shares(val, cal, test)
    num_test = round(held_out.targets(rows)["test"])
    splits, num_near_test = split_beside_test(
        list(generate(rows - num_test, seed, "train", worlds)),
        list(generate(num_test, seed, "test", worlds)),
        held_out,
        seed,
    )
    described = {"name": "synthetic", "rows": rows, "worlds": worlds, "seed": seed}
    write_splits(splits, out, described, held_out, seed, {"near_duplicates_of_test": num_near_test})


def held_out_shares(val: float, cal: float, test: float) -> HeldOut:
    """Check the sizes of the held-out splits."""
    return parse_record(HeldOut, {"val": val, "cal": cal, "test": test}, "--val, --cal, --test")


def _assignments(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """Read ``NAME=VALUE`` options.

    Raises:
        CustosError: If one has no ``=`` or nothing on one side of it.
    """
    assigned = {}
    for text in given or ():
        name, _, value = text.partition("=")
        if not name or not value:
            raise CustosError(f"{option} '{text}': expected NAME=VALUE")
        assigned[name] = value
    return assigned


def _filter(
    examples: Sequence[LabelledExample],
    min_words: int,
    verdicts: Path | None,
    disagreeing: int,
    models: int,
) -> list[LabelledExample]:
    """Apply the filters that were asked for, in the paper's order."""
    kept = list(drop_trivial(examples, min_words))
    if verdicts is None:
        return kept
    try:
        decoded = json.loads(verdicts.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CustosError(f"{verdicts}: cannot read the verdicts: {error}") from None
    return list(keep_contested(kept, parse_verdicts(decoded, str(verdicts)), disagreeing, models))


def split_and_write(
    examples: Sequence[LabelledExample],
    out: Path,
    source: Mapping[str, Any],
    held_out: HeldOut,
    seed: int,
    bad_rows: Sequence[str],
    num_filtered: int = 0,
) -> None:
    """Report bad rows, split the rest and write it."""
    show_bad_rows(bad_rows)
    left_out = {"bad_rows": len(bad_rows), "filtered": num_filtered}
    write_splits(split_examples(examples, held_out, seed), out, source, held_out, seed, left_out)


def show_bad_rows(bad_rows: Sequence[str]) -> None:
    """Print the first bad rows to standard error, and how many more there are."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    for message in bad_rows[:MAX_BAD_ROWS_SHOWN]:
        errors.print(f"skipped: {message}", markup=False)
    if len(bad_rows) > MAX_BAD_ROWS_SHOWN:
        errors.print(f"skipped: {len(bad_rows) - MAX_BAD_ROWS_SHOWN} more bad rows")


def write_splits(
    splits: Splits,
    out: Path,
    source: Mapping[str, Any],
    held_out: HeldOut,
    seed: int,
    left_out: Mapping[str, int],
) -> None:
    """Write the four files and their manifest, and print how many of each label they hold."""
    write_prepared(
        out,
        splits,
        source=source,
        held_out=held_out,
        seed=seed,
        command=shlex.join(["custos", *sys.argv[1:]]),
        left_out=left_out,
    )
    show_splits(splits, out)
    console = Console(highlight=False)
    for reason, num_rows in left_out.items():
        if num_rows:
            console.print(f"left out: {num_rows} {reason.replace('_', ' ')}")


def show_splits(splits: Splits, out: Path) -> None:
    """Print sizes and label shares of every split, and where they lie."""
    groups = {example.group for rows in splits.values() for example in rows}
    console = Console(highlight=False)
    console.print(_summary(splits))
    console.print(f"{len(groups)} groups of questions in {out}", markup=False, soft_wrap=True)


def _summary(splits: Splits) -> Table:
    labels = sorted({example.label for split in SPLITS for example in splits[split]})
    table = Table("split")
    for heading in ("examples", *labels):
        table.add_column(heading, justify="right")
    for split in SPLITS:
        counts = Counter(example.label for example in splits[split])
        num_examples = len(splits[split])
        shares = (f"{counts[label] / max(1, num_examples):.1%}" for label in labels)
        table.add_row(split, str(num_examples), *shares)
    return table
