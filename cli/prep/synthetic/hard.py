"""``custos prep hard``: hard responses to labelled questions, right and wrong in equal words."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.shared.bad_rows import check_skipped
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import AllowDropped
from cli.shared.splits import HeldOutSizes, Out, Seed, check_keeps_splits, write_splits
from cli.shared.tables import count_table
from data_prep.sources.generic import load_generic
from data_prep.splits.manifest import describe_file
from data_prep.splits.splits import SPLITS, Splits, shuffled, split_examples
from data_prep.synthetic.hard import options
from data_prep.synthetic.hard.frames import kinds
from data_prep.synthetic.hard.generate import generate_hard
from judging.errors import CustosError
from judging.types import LabelledExample, Split


@with_groups
def hard(
    source: Annotated[
        Path,
        typer.Option(
            help="Read labelled rows of task hieval-qs: a file, or a folder that custos prep "
            "wrote, whose splits are kept."
        ),
    ],
    out: Out,
    per_question: Annotated[
        int, typer.Option(min=1, help="Draw this many wordings for each question.")
    ] = 6,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Make only this kind of row. May be repeated. Default: every kind."),
    ] = None,
    seed: Seed = 0,
    *,
    sizes: HeldOutSizes,
    allow_dropped: AllowDropped = False,
) -> None:
    """Make responses that deceive a judge, and right ones in the same words.

    Denials, corrections, hedges, look-alikes, forged fields and grades, instructions to the judge,
    listed options and others: each wording is written once with a right and once with a wrong
    answer. Questions whose references are sentences or yes and no are passed over.

    Example: custos prep hard --source data/evouna --out data/hard
    """
    every = [*kinds(), options.KIND]
    chosen = kind or every
    if unknown := sorted(set(chosen) - {*every}):
        raise CustosError(f"--kind '{unknown[0]}': expected one of {', '.join(every)}")
    bad_rows: list[str] = []
    files = {split: source / f"{split}.jsonl" for split in SPLITS}
    files = {name: path for name, path in files.items() if path.is_file()}
    if source.is_dir() and not files:
        raise CustosError(f"{source}: holds no train.jsonl; make it with 'custos prep'")
    check_keeps_splits(out, files.values() or [source])

    held_out = sizes.read()
    labelled: Splits = (
        {split: load_generic(path, bad_rows) for split, path in files.items()}
        if files
        else split_examples(load_generic(source, bad_rows), held_out, seed)
    )
    framed = [name for name in chosen if name in kinds()]
    made = {
        split: list(generate_hard(rows, per_question, seed, framed, split)) if framed else []
        for split, rows in labelled.items()
    }
    if options.KIND in chosen:
        for split, rows in labelled.items():
            made[split] += options.generate_options(rows, per_question, seed, split)
    check_skipped(source, bad_rows, allow_dropped=allow_dropped)
    if not any(made.values()):
        raise CustosError(
            f"{source}: no question to make hard responses to: rows of task hieval-qs with short "
            "references and without options or pictures are needed"
        )
    described = {
        "name": source.name,
        "files": [describe_file(path) for path in files.values() or [source]],
        "per_question": per_question,
        "kinds": chosen,
    }
    splits = _kept(made, seed)
    write_splits(splits, out, described, held_out, seed, {"bad_rows": len(bad_rows)})
    counts = Counter(str(row.metadata["kind"]) for rows in splits.values() for row in rows)
    Console(highlight=False).print(count_table("kind", "rows", dict(counts)))


def _kept(made: dict[Split, list[LabelledExample]], seed: int) -> Splits:
    """Return the rows in the splits of the questions they were made for."""
    return {
        split: shuffled(
            (row.model_copy(update={"split": split}) for row in made.get(split, ())), seed
        )
        for split in SPLITS
    }
