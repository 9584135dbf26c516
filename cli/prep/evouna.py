"""``custos prep evouna``: answers of five systems that people judged right or wrong."""

from __future__ import annotations

from cli.shared.options.mapping import AllowDropped
from cli.shared.splits import (
    Cal,
    Out,
    Seed,
    SourceFile,
    Test,
    Val,
    held_out_shares,
    split_and_write,
)
from data_prep.sources.evouna import load_evouna
from data_prep.splits.manifest import describe_file


def evouna(
    source: SourceFile,
    out: Out,
    seed: Seed = 0,
    val: Val = 0.05,
    cal: Cal = 0.07,
    test: Test = 0.12,
    allow_dropped: AllowDropped = False,
) -> None:
    """Prepare EVOUNA: answers of five systems to open questions, judged right or wrong by people.

    Example: custos prep evouna --source NQ.json --out data/evouna
    """
    bad_rows: list[str] = []
    examples = load_evouna(source, bad_rows)
    held_out = held_out_shares(val, cal, test)
    split_and_write(
        examples, out, describe_file(source), held_out, seed, bad_rows, allow_dropped=allow_dropped
    )
