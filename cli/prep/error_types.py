"""``custos prep error-types``: balanced errors to train on, hard and new ones to test on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.bad_rows import check_skipped
from cli.shared.options.mapping import AllowDropped
from cli.shared.splits import (
    Cal,
    HeldOutSizes,
    Out,
    Seed,
    SourceFile,
    Val,
    check_keeps_splits,
    write_splits,
)
from data_prep.splits.balance import (
    PUBLISHED_TEST,
    balanced_splits,
    class_of,
    hard_and_new_test,
    item_of,
)
from data_prep.splits.manifest import describe_file, load_generic


def error_types(
    source: SourceFile,
    hard: Annotated[
        Path,
        typer.Option(
            help="Test split of the quick-scoring stage. An example of --source that is also in it "
            "counts as hard."
        ),
    ],
    out: Out,
    seen: Annotated[
        list[Path] | None,
        typer.Option(
            help="Split that the quick-scoring stage was trained on or chosen by: train, val or "
            "cal. Questions in it are not new, and are not used for val or cal. May be repeated. "
            "Default: none."
        ),
    ] = None,
    test_per_type: Annotated[
        int, typer.Option(min=2, help="Test examples of each error type; 60 % of them are hard.")
    ] = 200,
    published_test: Annotated[
        bool,
        typer.Option(
            "--published-test",
            help="Test on as many of each error type as the paper does (260, 265, 100, 210, 165) "
            "instead of --test-per-type.",
        ),
    ] = False,
    per_class: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Keep at most this many examples of each class in train: of each error type, and "
            "of Correct (the paper: 1709). Default: as many as the rarest error type has.",
        ),
    ] = None,
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
    """
    check_keeps_splits(out, [source, hard, *(seen or ())])
    bad_rows: list[str] = []
    examples = load_generic(source, bad_rows)
    check_skipped(source, bad_rows, allow_dropped=allow_dropped)
    hard_rows = load_generic(hard)
    seen_rows = [row for path in seen or () for row in load_generic(path)]
    sizes = PUBLISHED_TEST if published_test else test_per_type
    test, others = hard_and_new_test(examples, hard_rows, seen_rows, sizes, seed)
    held_out = HeldOutSizes(val, cal, 0).read()
    splits = balanced_splits(others, test, held_out, seen_rows, per_class, seed)
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
    write_splits(splits, out, described, held_out, seed, left_out)
