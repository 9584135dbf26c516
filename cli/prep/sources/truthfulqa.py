"""``custos prep truthfulqa``: answers that people judged true or false."""

from __future__ import annotations

from cli.shared.bad_rows import check_skipped
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import AllowDropped
from cli.shared.splits import HeldOutSizes, Out, Seed, SourceFile, check_keeps_splits, write_splits
from data_prep.sources.truthfulqa import load_truthfulqa
from data_prep.splits.manifest import describe_file
from data_prep.splits.splits import split_examples


@with_groups
def truthfulqa(
    source: SourceFile,
    out: Out,
    seed: Seed = 0,
    *,
    sizes: HeldOutSizes,
    allow_dropped: AllowDropped = False,
) -> None:
    """Prepare TruthfulQA: answers of models, judged true or false by people.

    Each row needs question, response, label (True or False) and the list correct_answers, whose
    members become references. Answers that say nothing are left out: they are true, but not right.

    Example: custos prep truthfulqa --source truthfulqa.jsonl --out data/truthfulqa
    """
    check_keeps_splits(out, [source])
    bad_rows: list[str] = []
    examples, left_out = load_truthfulqa(source, bad_rows)
    check_skipped(source.name, bad_rows, allow_dropped=allow_dropped)
    held_out = sizes.read()
    left_out = {"bad_rows": len(bad_rows), **left_out}
    splits = split_examples(examples, held_out, seed)
    write_splits(splits, out, describe_file(source), held_out, seed, left_out)
