"""``custos prep generic``: rows that already have our shape."""

from __future__ import annotations

from cli.shared.filters import Disagreeing, MinWords, Models, Verdicts, filter_examples
from cli.shared.splits import (
    Cal,
    Out,
    Seed,
    SourceFile,
    Strict,
    Test,
    Val,
    held_out_shares,
    split_and_write,
)
from data_prep.sources.generic import load_generic
from data_prep.splits.manifest import describe_file


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
    kept = filter_examples(examples, min_words, verdicts, disagreeing, models)
    held_out, num_filtered = held_out_shares(val, cal, test), len(examples) - len(kept)
    split_and_write(kept, out, describe_file(source), held_out, seed, bad_rows, num_filtered)
