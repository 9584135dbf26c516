"""``custos prep benchmark-answers``: made responses for judges of three benchmarks."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer
from rich.console import Console

from cli.shared.options.groups import with_groups
from cli.shared.splits import HeldOutSizes, Out, Seed, write_splits
from cli.shared.tables import count_table
from data_prep.splits.splits import split_made
from data_prep.synthetic.benchmark_answers.generate import MAKERS, generate_benchmark_answers
from judging.errors import CustosError


@with_groups
def benchmark_answers(
    out: Out,
    rows: Annotated[int, typer.Option(min=1, help="Make this many examples, all splits together.")],
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            help="Make rows of this task: charthal, simplevqa or chartom-fact. May be repeated. "
            "Default: all three.",
        ),
    ] = None,
    seed: Seed = 0,
    *,
    sizes: HeldOutSizes,
) -> None:
    """Make questions and responses for judges of ChartHal, SimpleVQA and CHARTOM's FACT.

    Labels hold by construction: the rubric of the task follows from what a response claims, denies,
    leaves out or says for certain. SimpleVQA's rows are English and Chinese. Charts, questions and
    responses of the test split use topics and wordings that no other split shows. Examples whose
    question is too similar to one of the test split are left out.

    Example: custos prep benchmark-answers --rows 3500 --out data/benchmarks
    """
    if unknown := sorted(set(tasks or ()) - MAKERS.keys()):
        raise CustosError(f"--task '{unknown[0]}': expected one of {', '.join(MAKERS)}")
    chosen = tasks or list(MAKERS)
    held_out = sizes.read()
    splits, num_near_test = split_made(
        lambda number, split: generate_benchmark_answers(number, seed, split, chosen),
        rows,
        held_out,
        seed,
    )
    described = {"name": "benchmark-answers", "rows": rows, "tasks": chosen, "seed": seed}
    write_splits(splits, out, described, held_out, seed, {"near_duplicates_of_test": num_near_test})
    counts = Counter(f"{row.task}: {row.label}" for members in splits.values() for row in members)
    Console(highlight=False).print(count_table("task and label", "rows", dict(counts)))
