"""The verbs of ``custos bench``, in the order of its help, and the short ones themselves."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from cli.bench.grade import grade
from cli.bench.respond import respond
from cli.bench.table import compare, table
from cli.bench.tournament import tournament
from cli.shared.options import Items, JsonOut, Name, with_groups
from cli.shared.outputs import OutFile, OutFolder, Verb, claim
from cli.shared.screen import interval_table, wide_console
from judging.files.records import write_json


def list_benchmarks() -> None:
    """Print the benchmarks with their judge tasks and published tables.

    Example: custos bench list
    """
    from benchmarks.framework.base import BENCHMARKS

    table = Table("name", "what it measures", "judge tasks", "published")
    for benchmark in BENCHMARKS:
        sources = "; ".join(published.source for published in benchmark.published)
        tasks = ", ".join(benchmark.tasks) or "none (rules)"
        table.add_row(benchmark.name, benchmark.summary, tasks, sources)
    wide_console().print(table)


@with_groups
def example(
    name: Name,
    out: OutFile,
) -> None:
    """Write a small valid file of responses to a benchmark, to see the shape of such files.

    We made the items and their responses; they are not from the benchmark. Put your own in their
    place. custos bench grade takes the file as it is.

    Example: custos bench example simplevqa --out responses.json

    Options:
        out: Write the items to this JSON or JSONL file, which must not exist.
    """
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import check_suffix, write_graded
    from judging.tasks import get_task

    benchmark = get_benchmark(name)
    check_suffix(out)
    claim(out)
    write_graded(out, benchmark.example, keyed=False)
    has_rules = any(get_task(task).has_rules for task in benchmark.tasks)
    judge = "--judge rules " if has_rules else "--judge JUDGE " if benchmark.tasks else ""
    typer.echo(f"{len(benchmark.example)} items with responses: {out}")
    typer.echo(
        f"grade them: custos bench grade {name} --responses {shlex.quote(str(out))} "
        f"{judge}--out graded.json"
    )


@with_groups
def lal(
    results: Annotated[Path, typer.Option()],
    json_out: JsonOut = None,
) -> None:
    """Measure the logit advantage loss between the levels of TruthfulVQA, per set and on average.

    Example: custos bench lal --results logits.json --json lal.json

    Options:
        results: Read this JSON list of objects with case (set_id, id, level, answer) and
            result.option_logits.
    """
    from benchmarks.framework.files import error_location, read_file
    from benchmarks.truthfulvqa.logits import measure_lal
    from evaluation.estimate import without_nan

    rows = list(read_file(results))
    with error_location(results):
        measured = without_nan(measure_lal(rows))
    if json_out is not None:
        write_json(json_out, measured)
    console = wide_console()
    console.print(interval_table("logit advantage loss", {"mean": measured["intervals"]}))
    console.print(f"{measured['sets']} sets, {measured['complete_sets']} with all three levels")


@with_groups
def hmi(
    items: Items,
    out: OutFolder,
) -> None:
    """Report CHARTOM's human misleadingness index (HMI) from people's answers to FACT questions.

    Items need human_answers, as custos prep construct collect writes them, or an hmi. The report
    has the HMI of every chart with its interval, beside the other chart of its pair (Table 1), the
    acceptable answers and what people answered (Table 2), and all charts sorted (Figure 3).

    Example: custos bench hmi --items items.jsonl --out hmi

    Options:
        out: Write hmi.md, hmi.json and a picture to this folder.
    """
    from benchmarks.chartom.item import HEADINGS, measure_hmi, pair_rows, write_hmi_report
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import error_location

    claim(out, lambda out: True, names=("hmi.md", "hmi.json"), sources=[Path(items)])
    with error_location(Path(items)):
        charts = measure_hmi(get_benchmark("chartom").load(items, out / "images"))
    write_hmi_report(charts, out)
    pairs = Table(*HEADINGS)
    for row in pair_rows(charts):
        pairs.add_row(*row)
    console = wide_console()
    console.print(pairs)
    console.print(f"{len(charts)} charts: {out / 'hmi.md'}")


app = typer.Typer(no_args_is_help=True, help="Grade benchmarks and print their papers' tables.")
app.command("list", cls=Verb)(list_benchmarks)
for verb in (example, respond, grade, table, compare, tournament, lal, hmi):
    app.command(cls=Verb)(verb)
