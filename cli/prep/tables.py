"""The verbs of ``custos prep`` that divide, mix and balance a user's own rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.options import with_groups
from cli.shared.screen import check_skipped, show_skipped
from cli.shared.splits import Cal, FilterOptions, Out, Seed, SourceFile, SplitOptions, Val
from cli.shared.tables import (
    TABLE_FORMATS,
    AllowDropped,
    TableOptions,
    note_doubts,
    warn_of_open_modes,
)
from data_prep.splits.manifest import count_near_duplicate_clusters, describe_file, load_generic
from data_prep.splits.manifest import mix as mix_data_sets
from data_prep.splits.splits import (
    PUBLISHED_TEST,
    SPLITS,
    all_to_test,
    balanced_splits,
    class_of,
    hard_and_new_test,
    in_both_orders,
    item_of,
    shuffled,
)
from data_prep.tables.examples import (
    describe_source,
    leaves_mode_open,
    read_examples,
    show_doubles,
    show_labels,
    show_lengths,
    show_row,
)
from data_prep.tables.reader import BadRow
from data_prep.tables.source import open_table
from judging.errors import CustosError

ALL = "all"


@with_groups
def table(
    source: Annotated[str, typer.Argument(metavar="TABLE", help=f"Read this {TABLE_FORMATS}.")],
    out: Out,
    *,
    table_options: TableOptions,
    allow_dropped: AllowDropped = False,
    show: Annotated[int, typer.Option(min=0)] = 10,
    filters: FilterOptions,
    both_orders: bool = False,
    seed: Seed = 0,
    val: Val = 0.05,
    cal: Cal = 0.07,
    test: str = "0.12",
) -> None:
    """Read a table of your own, show what a judge will see of it, and divide it by question.

    Columns that no option names and that are not called like one of our fields go to metadata.

    Example: custos prep table labels.csv --map references=gold --map response=model_answer --map
    label=human_label --labels right=Correct,wrong=Wrong --reference-mode any --out data/mine

    Options:
        show: Show this many rows as the judge will see them.
        both_orders: Write every training pair in both orders of its responses.
        test: Size of the test split: a share below 1, so many examples, or all for a table that is
            only to measure with.
    """
    in_table = table_options.read()
    opened = open_table(source, in_table.text_format)
    try:
        division = SplitOptions(out, seed, val, cal, 0.0 if test == ALL else float(test))
    except ValueError:
        raise CustosError(f"--test '{test}': expected a share, a number, or {ALL}") from None
    division.keep(opened.path)
    bad_rows: dict[int, BadRow] = {}
    rows = read_examples(
        source, in_table, bad_rows, allow_dropped=allow_dropped, image_folder=out / "images"
    )
    show_skipped(row.error for row in bad_rows.values())
    note_doubts(opened, in_table)
    warn_of_open_modes(source, sum(leaves_mode_open(row) for _, row in rows))
    name = opened.path.stem
    examples = []
    for number, row in rows:
        names = {"id": row.id or f"{name}-{number}", "source": row.source or name}
        examples.append(row.model_copy(update=names))
    has_ids = any(row.id for _, row in rows)
    kept = filters.apply(examples, {} if has_ids else {f"{name}-{n}": n for n, _ in rows})
    if not kept:
        raise CustosError(f"{source}: no rows")
    if test == ALL:
        division = SplitOptions(out, seed, val=0, cal=0, test=len(kept))
    splits = all_to_test(kept, seed) if test == ALL else division.divide(kept)
    if both_orders:
        splits["train"] = shuffled(in_both_orders(splits["train"]), seed)
    for number, example in rows[:show]:
        typer.echo(show_row(number, example))
    for line in (
        *show_labels(kept),
        *show_lengths(kept),
        *show_doubles((row.id, row) for row in kept),
    ):
        typer.echo(line)
    if num_near := count_near_duplicate_clusters(row for each in splits.values() for row in each):
        typer.echo(f"{num_near} groups hold questions that are nearly the same")
    left_out = {"bad_rows": len(bad_rows), "filtered": len(examples) - len(kept)}
    division.write(splits, describe_source(opened, in_table), left_out)


@with_groups
def mix(sources: Annotated[list[str], typer.Option("--source")], out: Out, seed: Seed = 0) -> None:
    """Mix prepared data sets into one, with a stated number of rows of each.

    A question that is in different splits of two data sets stays in the stricter one: test, then
    cal, then val. The manifest says how many rows came from where.

    Example: custos prep mix --source data/evouna=6000 --source data/hard=6000 --out data/mixed

    Options:
        sources: FOLDER or FOLDER=ROWS: take so many training rows of this prepared data set, and
            the same share of its other splits. Repeat for every data set. Default: all rows.
    """
    ingredients: list[tuple[Path, int | None]] = []
    for text in sources:
        name, separator, rows = text.rpartition("=")
        if separator and not (rows.isdecimal() and int(rows)):
            raise CustosError(
                f"--source '{text}': expected FOLDER or FOLDER=ROWS with a number of rows"
            )
        named = (Path(name), int(rows)) if separator else (Path(text), None)
        if out.resolve() == named[0].resolve():
            raise CustosError(f"--out {out}: is one of the sources and would be replaced")
        ingredients.append(named)
    splits, rows_of, num_overlapping = mix_data_sets(ingredients, seed)
    described = [
        {
            "name": folder.name,
            "limit": limit,
            "rows": taken,
            "files": [
                describe_file(path)
                for split in SPLITS
                if (path := folder / f"{split}.jsonl").is_file()
            ],
        }
        for (folder, limit), taken in zip(ingredients, rows_of, strict=True)
    ]
    val, cal, test = (len(splits[split]) for split in SPLITS[1:])
    division = SplitOptions(out, seed, val, cal, test)
    left_out = {"in_a_stricter_split": num_overlapping}
    division.write(splits, {"name": "mixture", "sources": described}, left_out)
    for (folder, _), taken in zip(ingredients, rows_of, strict=True):
        counts = ", ".join(f"{count} {split}" for split, count in taken.items())
        typer.echo(f"{folder}: {counts}")


@with_groups
def error_types(
    source: SourceFile,
    hard: Annotated[Path, typer.Option()],
    out: Out,
    seen: list[Path] | None = None,
    test_per_type: Annotated[int, typer.Option(min=2)] = 200,
    published_test: Annotated[bool, typer.Option("--published-test")] = False,
    per_class: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Seed = 0,
    val: Val = 0.05,
    cal: Cal = 0.07,
    allow_dropped: AllowDropped = False,
) -> None:
    """Balance error types for training, and test on hard and new cases 60 to 40 of every type.

    Hard cases are those of the quick-scoring test split; if that was made with --verdicts, they are
    the ones that the models got wrong. Hard cases are never trained on. New cases, val and cal come
    from questions that no --seen split has. Train, val and cal have as many rows of each error
    type. Where errors have other shares, fit the calibration again with custos calibrate. The
    paper's rows are errors alone; Correct rows in --source are a sixth class, and never in the
    test.

    Example: custos prep error-types --source ea.jsonl --hard data/qs/test.jsonl
    --seen data/qs/train.jsonl --seen data/qs/val.jsonl --seen data/qs/cal.jsonl --out data/ea

    Options:
        hard: Test split of the quick-scoring stage. An example of --source that is also in it
            counts as hard.
        seen: Split that the quick-scoring stage was trained on or chosen by: train, val or cal.
            Questions in it are not new, and are not used for val or cal. May be repeated. Default:
            none.
        test_per_type: Test examples of each error type; 60 % of them are hard.
        published_test: Test on as many of each error type as the paper does (260, 265, 100, 210,
            165) instead of --test-per-type.
        per_class: Keep at most this many examples of each class in train: of each error type, and
            of Correct (the paper: 1709). Default: as many as the rarest error type has.
    """
    division = SplitOptions(out, seed, val, cal, test=0)
    division.keep(source, hard, *(seen or ()))
    bad_rows: list[str] = []
    examples = load_generic(source, bad_rows)
    check_skipped(source, bad_rows, allow_dropped=allow_dropped)
    hard_rows = load_generic(hard)
    seen_rows = [row for path in seen or () for row in load_generic(path)]
    sizes = PUBLISHED_TEST if published_test else test_per_type
    test, others = hard_and_new_test(examples, hard_rows, seen_rows, sizes, seed)
    splits = balanced_splits(others, test, division.held_out, seen_rows, per_class, seed)
    hard_items = {item_of(row) for row in hard_rows}
    cases = Counter(
        f"{class_of(row)}, {'hard' if item_of(row) in hard_items else 'new'}" for row in test
    )
    described = {
        **describe_file(source),
        "hard": describe_file(hard),
        "seen": [describe_file(path) for path in seen or ()],
        "per_class": per_class,
        "test_cases": dict(sorted(cases.items())),
    }
    left_out = {
        "bad_rows": len(bad_rows),
        "near_hard_or_drawn_cases": len(examples) - len(test) - len(others),
        "beyond_balance": len(others) + len(test) - sum(map(len, splits.values())),
    }
    division.write(splits, described, left_out)
