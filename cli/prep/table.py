"""``custos prep table``: a user's own table, read, shown and divided."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.shared.bad_rows import show_dropped
from cli.shared.options.filters import FilterOptions
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import TABLE_FORMATS, AllowDropped, TableOptions
from cli.shared.request_rows import note_doubts
from cli.shared.splits import (
    Cal,
    HeldOutSizes,
    Out,
    Seed,
    Val,
    check_keeps_splits,
    write_splits,
)
from data_prep.splits.balance import in_both_orders
from data_prep.splits.manifest import count_near_duplicate_clusters
from data_prep.splits.splits import (
    HeldOut,
    Splits,
    all_to_test,
    shuffled,
    split_examples,
)
from data_prep.tables.examples import (
    describe_source,
    read_examples,
    show_doubles,
    show_labels,
    show_lengths,
    show_row,
)
from data_prep.tables.reader import BadRow
from data_prep.tables.source import open_table
from judging import CustosError, LabelledExample

ALL = "all"


@with_groups
def table(
    source: Annotated[str, typer.Argument(metavar="TABLE", help=f"Read this {TABLE_FORMATS}.")],
    out: Out,
    *,
    table_options: TableOptions,
    allow_dropped: AllowDropped = False,
    show: Annotated[
        int, typer.Option(min=0, help="Show this many rows as the judge will see them.")
    ] = 10,
    filters: FilterOptions,
    both_orders: Annotated[
        bool, typer.Option(help="Write every training pair in both orders of its responses.")
    ] = False,
    seed: Seed = 0,
    val: Val = 0.05,
    cal: Cal = 0.07,
    test: Annotated[
        str,
        typer.Option(
            help="Size of the test split: a share below 1, so many examples, or all for a table "
            "that is only to measure with."
        ),
    ] = "0.12",
) -> None:
    """Read a table of your own, show what a judge will see of it, and divide it by question.

    Columns that no option names and that are not called like one of our fields go to metadata.

    Example: custos prep table labels.csv --map references=gold --map response=model_answer --map
    label=human_label --labels right=Correct,wrong=Wrong --reference-mode any --out data/mine
    """
    in_table = table_options.read()
    opened = open_table(source, in_table.text_format)
    check_keeps_splits(out, [opened.path])
    held_out = None if test == ALL else HeldOutSizes(val, cal, _size(test)).read()
    bad_rows: dict[int, BadRow] = {}
    rows = read_examples(
        source, in_table, bad_rows, allow_dropped=allow_dropped, image_folder=out / "images"
    )
    show_dropped(bad_rows)
    note_doubts(source, in_table)
    examples = [_named(example, number, opened.path.stem) for number, example in rows]
    kept = filters.apply(examples)
    if not kept:
        raise CustosError(f"{source}: no rows")
    if held_out is None:
        held_out = HeldOut(val=0, cal=0, test=len(kept))
        splits = all_to_test(kept, seed)
    else:
        splits = split_examples(kept, held_out, seed)
    if both_orders:
        splits["train"] = shuffled(in_both_orders(splits["train"]), seed)
    for number, example in rows[:show]:
        typer.echo(show_row(number, example))
    for line in (*show_labels(kept), *show_lengths(kept), *show_doubles(kept), *_near(splits)):
        typer.echo(line)
    left_out = {"bad_rows": len(bad_rows), "filtered": len(examples) - len(kept)}
    write_splits(splits, out, describe_source(opened, in_table), held_out, seed, left_out)


def _size(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CustosError(f"--test '{text}': expected a share, a number, or {ALL}") from None


def _named(example: LabelledExample, number: int, name: str) -> LabelledExample:
    """Return an example with an id and a source, if it has none of its own."""
    names = {"id": example.id or f"{name}-{number}", "source": example.source or name}
    return example.model_copy(update=names)


def _near(splits: Splits) -> list[str]:
    num_near = count_near_duplicate_clusters(row for rows in splits.values() for row in rows)
    return [f"{num_near} groups hold questions that are nearly the same"] if num_near else []
