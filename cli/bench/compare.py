"""``custos bench compare``: two graded files of one benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from cli.shared.options.benchmark import JsonOut, Name
from cli.shared.tables import wide_console
from judging.files.records import write_json


def compare(
    name: Name,
    a: Annotated[Path, typer.Argument(help="Graded file A.")],
    b: Annotated[Path, typer.Argument(help="Graded file B.")],
    measure: Annotated[
        str | None,
        typer.Option(
            help="Compare this measure, such as 'MIND squared error' of chartom; another name "
            "lists all. Default: the benchmark's main one."
        ),
    ] = None,
    json_out: JsonOut = None,
) -> None:
    """Compare two graded files of one benchmark, on the items that both score.

    The files may be of two models, of two ways of asking one model, or of a chat model and its
    reasoning variant. Differences are shown overall and for every part of the benchmark.

    Example: custos bench compare charthal gpt.eval.json qwen.eval.json
    """
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.compare import ScoredItems, compare_graded
    from benchmarks.framework.files import error_location, read_file
    from evaluation.report.cautions import few_questions
    from evaluation.report.markdown import p_value

    benchmark, graded = get_benchmark(name), []
    for path in (a, b):
        rows = list(read_file(path))
        with error_location(path):
            graded.append(ScoredItems.of(benchmark, rows, measure))
    result = compare_graded(benchmark, *graded, measure=measure)
    if json_out is not None:
        write_json(json_out, result)
    console = wide_console()
    console.print(_difference_table(result, a, b))
    console.print(
        f"higher in A on {result['a_higher']} items, in B on {result['b_higher']}: "
        f"p by questions {p_value(result['p'])}"
    )
    if caution := few_questions(result["clusters"]):
        console.print(f"caution: {caution}")
    console.print(f"scored on one side alone: {result['only_a']} in A, {result['only_b']} in B")


def _difference_table(result: dict[str, Any], a: Path, b: Path) -> Table:
    from benchmarks.framework.report.report import interval_cells

    table = Table(result["metric"], "value", "95 % interval", "n")
    for label, side in ((str(a), "a"), (str(b), "b"), ("B minus A", "difference")):
        table.add_row(label, *interval_cells(result[side]))
    for facet, parts in result["by"].items():
        for part, estimate in parts.items():
            table.add_row(f"B minus A, {facet} {part}", *interval_cells(estimate))
    return table
