"""``custos prep benchmark-answers``: made responses for judges of three benchmarks."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer
from rich.console import Console

from cli.shared.splits import Cal, Out, Seed, Test, Val, held_out_shares, write_splits
from cli.shared.tables import count_table
from data_prep.splits.splits import SPLITS, fill_by_group, shuffled
from data_prep.synthetic.benchmark_answers.generate import MAKERS, generate_benchmark_answers
from judging.errors import CustosError


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
    val: Val = 0.05,
    cal: Cal = 0.07,
    test: Test = 0.12,
) -> None:
    """Make questions and responses for judges of ChartHal, SimpleVQA and CHARTOM's FACT.

    Labels hold by construction: the rubric of the task follows from what a response claims, denies,
    leaves out or says for certain. SimpleVQA's rows are English and Chinese. Charts, questions and
    responses of the test split use topics and wordings that no other split shows.

    Example: custos prep benchmark-answers --rows 3500 --out data/benchmarks
    """
    if unknown := sorted(set(tasks or ()) - MAKERS.keys()):
        raise CustosError(f"--task '{unknown[0]}': expected one of {', '.join(MAKERS)}")
    chosen = tasks or list(MAKERS)
    held_out = held_out_shares(val, cal, test)
    sizes = held_out.targets(rows)
    num_test = round(sizes["test"])
    trained = list(generate_benchmark_answers(rows - num_test, seed, "train", chosen))
    dealt = fill_by_group(trained, lambda row: row.group, sizes, seed)
    dealt["test"] = list(generate_benchmark_answers(num_test, seed, "test", chosen))
    splits = {
        split: shuffled((row.model_copy(update={"split": split}) for row in dealt[split]), seed)
        for split in SPLITS
    }
    described = {"name": "benchmark-answers", "rows": rows, "tasks": chosen, "seed": seed}
    write_splits(splits, out, described, held_out, seed, {})
    counts = Counter(f"{row.task}: {row.label}" for row in (*trained, *dealt["test"]))
    Console(highlight=False).print(count_table("task and label", "rows", dict(counts)))
