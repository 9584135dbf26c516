"""``custos prep evouna``: answers of five systems that people judged right or wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
from data_prep.sources.evouna import load_evouna
from data_prep.splits.filters import read_excluded, without_excluded
from data_prep.splits.manifest import describe_file


@with_groups
def evouna(
    source: SourceFile,
    out: Out,
    exclude: Annotated[
        Path | None,
        typer.Option(
            help="Leave out the questions whose hashes this file lists, one a line: SHA-256 of the "
            "question in lower case, everything but letters and digits one space. Their "
            "near-duplicates are left out too. Default: none."
        ),
    ] = None,
    seed: Seed = 0,
    *,
    sizes: HeldOutSizes,
    allow_dropped: AllowDropped = False,
) -> None:
    """Prepare EVOUNA: answers of five systems to open questions, judged right or wrong by people.

    Example: custos prep evouna --source NQ.json --out data/evouna
    """
    check_keeps_splits(out, [source])
    excluded = read_excluded(exclude) if exclude else frozenset()
    bad_rows: list[str] = []
    examples = load_evouna(source, bad_rows)
    kept = without_excluded(examples, excluded) if excluded else examples
    described: dict[str, object] = dict(describe_file(source))
    if exclude:
        described["exclude"] = describe_file(exclude)
    held_out, num_filtered = sizes.read(), len(examples) - len(kept)
    split_and_write(
        kept, out, described, held_out, seed, bad_rows, num_filtered, allow_dropped=allow_dropped
    )
