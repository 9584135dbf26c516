"""Options and output of the verbs that write train, val, cal and test files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from cli.shared.bad_rows import check_skipped
from cli.shared.command_line import command_line
from cli.shared.output_folders import check_keeps_sources, output_folder
from data_prep.splits.manifest import check_replaceable, write_prepared
from data_prep.splits.splits import SPLITS, HeldOut, Splits, split_examples
from judging.types import LabelledExample, parse_record

FILES = [f"{split}.jsonl" for split in SPLITS]


def _in_own_folder(ctx: typer.Context, param: typer.CallbackParam, path: Path) -> Path:
    """Return the folder of ``--out``, in which no file of the user's own would be replaced."""
    output_folder(ctx, param, path)
    check_replaceable(path, FILES)  # Now, and not after an hour of work.
    return path


SourceFile = Annotated[Path, typer.Option("--source", help="Read this file.")]
Out = Annotated[
    Path,
    typer.Option(
        callback=_in_own_folder,
        help="Write the four JSONL files and manifest.json to this folder.",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, help="Another seed gives another of the many balanced divisions.")
]
Val = Annotated[
    float, typer.Option(help="Size of the validation split: a share below 1, or so many examples.")
]
Cal = Annotated[
    float, typer.Option(help="Size of the calibration split: a share below 1, or so many examples.")
]
Test = Annotated[
    float, typer.Option(help="Size of the test split: a share below 1, or so many examples.")
]


@dataclass(frozen=True)
class HeldOutSizes:
    """Sizes of the splits that are not trained on."""

    val: Val = 0.05
    cal: Cal = 0.07
    test: Test = 0.12

    def read(self) -> HeldOut:
        """Return the sizes, checked.

        Raises:
            FieldError: If one is below 0.
        """
        return parse_record(HeldOut, vars(self), "--val, --cal, --test")


def check_keeps_splits(out: Path, sources: Iterable[Path]) -> None:
    """Refuse a folder in which the four files would replace one that the command reads."""
    check_keeps_sources(out, FILES, sources)


def split_and_write(
    examples: Sequence[LabelledExample],
    out: Path,
    source: Mapping[str, Any],
    held_out: HeldOut,
    seed: int,
    bad_rows: Sequence[str],
    num_filtered: int = 0,
    *,
    allow_dropped: bool,
) -> None:
    """Split the examples and write them; stop at bad rows unless they may be left out."""
    check_skipped(source["name"], bad_rows, allow_dropped=allow_dropped)
    left_out = {"bad_rows": len(bad_rows), "filtered": num_filtered}
    write_splits(split_examples(examples, held_out, seed), out, source, held_out, seed, left_out)


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
        command=command_line(),
        left_out=left_out,
    )
    show_splits(splits, out)
    for reason, num_rows in left_out.items():
        if num_rows:
            typer.echo(f"left out: {num_rows} {reason.replace('_', ' ')}")


def show_splits(splits: Splits, out: Path) -> None:
    """Print sizes and label shares of every split, and the folder that holds them."""
    groups = {example.group for rows in splits.values() for example in rows}
    Console(highlight=False).print(_summary(splits))
    typer.echo(f"{len(groups)} groups of questions in {out}")


def _summary(splits: Splits) -> Table:
    labels = sorted({example.label for split in SPLITS for example in splits[split]})
    table = Table("split")
    for heading in ("examples", *labels):
        table.add_column(heading, justify="right")
    for split in SPLITS:
        counts = Counter(example.label for example in splits[split])
        num_examples = len(splits[split])
        shares = (
            f"{counts[label]} ({counts[label] / max(1, num_examples):.1%})" for label in labels
        )
        table.add_row(split, str(num_examples), *shares)
    return table
