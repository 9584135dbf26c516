"""``custos bench``: benchmarks graded by our judges, in their papers' own tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from cli.bench_grade import grade
from cli.bench_respond import respond
from cli.bench_tournament import tournament
from judging import CustosError
from judging.records import atomic_write, write_json

app = typer.Typer(no_args_is_help=True, help="Grade benchmarks and print their papers' tables.")

app.command()(respond)
app.command()(grade)
app.command()(tournament)

WIDTH_IN_FILES = 160
"""Columns for tables that are piped or kept, where rich would wrap them at 80."""

Name = Annotated[str, typer.Argument(help="Benchmark; custos bench list shows them.")]
JsonOut = Annotated[Path | None, typer.Option("--json", help="Write this file too.")]


@app.command()
def plan(
    half_width: Annotated[
        float, typer.Option(help="Wanted half of the 95 % interval: .03 is 3 points either side.")
    ],
    items: Annotated[int, typer.Option(help="Items of the benchmark.")],
    sensitivity: Annotated[
        float, typer.Option(min=0, max=1, help="Share of people's 1s that the judge calls 1.")
    ],
    specificity: Annotated[
        float, typer.Option(min=0, max=1, help="Share of people's 0s that the judge calls 0.")
    ],
    rate: Annotated[float, typer.Option(help="Rate of people's 1s, a guess.")] = 0.5,
) -> None:
    """Say how many items people must label, at random, for a wanted interval.

    Items count as independent; where several share a picture, more are needed.

    Example: custos bench plan --half-width .03 --items 2000 --sensitivity .9 --specificity .85
    """
    from evaluation.correction.label_plan import judge_correlation, labels_needed

    correlation = judge_correlation(rate, sensitivity, specificity)
    found = labels_needed(half_width, items, rate, correlation)
    for name, labels in (("with the judge", found.with_judge), ("labels alone", found.alone)):
        typer.echo(f"{name}: {labels if labels is not None else f'more than {items}'}")


@app.command("list")
def show_list() -> None:
    """List the benchmarks with their judge tasks and published tables.

    Example: custos bench list
    """
    from benchmarks.framework.base import benchmark_names, get_benchmark

    table = Table("name", "what it measures", "judge tasks", "published")
    for name in benchmark_names():
        found = get_benchmark(name)
        sources = "; ".join(published.source for published in found.published)
        table.add_row(name, found.summary, ", ".join(found.tasks) or "none (rules)", sources)
    _console().print(table)


@app.command()
def table(
    name: Name,
    graded: Annotated[Path, typer.Option(help="Graded items, ours or the benchmark's own.")],
    json_out: JsonOut = None,
    markdown_out: Annotated[
        Path | None, typer.Option("--markdown", help="Write the tables as Markdown.")
    ] = None,
    html_out: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page with tables, charts and every item to browse."),
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(
            help="Items that people graded, in the same graded shape (ids and grades are enough): "
            "corrects the score and shows how far the judge agrees."
        ),
    ] = None,
    random_sample: Annotated[
        bool, typer.Option("--random-sample", help="People graded a random sample of the items.")
    ] = False,
) -> None:
    """Print a benchmark's table with 95 % intervals, beside what its paper reports.

    Example: custos bench table charthal --graded gpt.eval.json --html report.html
    """
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.corrected_by_people import human_scores
    from benchmarks.framework.files import error_location, read_file, read_run
    from benchmarks.framework.report.report import (
        build_table,
        paper_tables,
        render_html,
        render_markdown,
        summary_lines,
    )

    benchmark = get_benchmark(name)
    rows = list(read_file(graded))
    if not rows:
        raise CustosError(f"{graded}: no items")
    pictures = graded.with_name(f"{graded.stem}-images")
    with error_location(graded):
        rows = [benchmark.with_images(row, graded.parent, pictures) for row in rows]
        benchmark.scores(rows)
    said: list[dict[str, Any]] = []
    if people is not None:
        said = list(read_file(people))
        if not said:
            raise CustosError(f"{people}: no items")
        with error_location(people):
            human_scores(benchmark, rows, said)
    with error_location(graded):
        result = build_table(benchmark, rows, said, random_sample, read_run(graded))
    if json_out is not None:
        write_json(json_out, result)
    if markdown_out is not None:
        with atomic_write(markdown_out) as file:
            file.write(render_markdown(benchmark, result, graded.name))
    if html_out is not None:
        with atomic_write(html_out) as file:
            file.write(render_html(benchmark, rows, result, graded.name, said))
    console = _console()
    for model, own in result.get("models", {"": result}).items():
        console.print(_measured_table(f"{name} {model}".strip(), own["intervals"]))
        for line in summary_lines(own):
            console.print(line, markup=False)
    for paper in paper_tables(benchmark, result):
        shown = Table("", *paper["columns"], title=f"Published, {paper['source']}")
        for row in paper["rows"]:
            shown.add_row(row["name"], *row["figures"], style="bold" if row["ours"] else None)
        console.print(shown)


@app.command()
def compare(
    name: Name,
    a: Annotated[Path, typer.Argument(help="Graded file A.")],
    b: Annotated[Path, typer.Argument(help="Graded file B.")],
    json_out: JsonOut = None,
) -> None:
    """Set two graded files of one benchmark beside each other, on the items both score.

    Two models, two ways of asking one model, a chat model and its reasoning variant: overall and in
    every part of the benchmark.

    Example: custos bench compare charthal gpt.eval.json qwen.eval.json
    """
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.compare import ScoredItems, compare_graded
    from benchmarks.framework.files import error_location, read_file
    from benchmarks.framework.report.report import interval_cells

    benchmark, graded = get_benchmark(name), []
    for path in (a, b):
        rows = list(read_file(path))
        with error_location(path):
            graded.append(ScoredItems.of(benchmark, rows))
    result = compare_graded(benchmark, *graded)
    if json_out is not None:
        write_json(json_out, result)
    shown = Table(result["metric"], "value", "95 % interval", "n")
    for label, side in ((str(a), "a"), (str(b), "b"), ("B minus A", "difference")):
        shown.add_row(label, *interval_cells(result[side]))
    for facet, parts in result["by"].items():
        for part, estimate in parts.items():
            shown.add_row(f"B minus A, {facet} {part}", *interval_cells(estimate))
    console = _console()
    console.print(shown)
    console.print(
        f"higher in A on {result['a_better']} items, in B on {result['b_better']}: "
        f"McNemar p {result['mcnemar_p']:.4f}"
    )
    console.print(f"scored on one side alone: {result['only_a']} in A, {result['only_b']} in B")


@app.command()
def lal(
    results: Annotated[
        Path, typer.Option(help="JSON list: case (set_id, id, level, answer), result.option_logits")
    ],
    json_out: JsonOut = None,
) -> None:
    """Logit advantage loss between the levels of TruthfulVQA, per set and on average.

    Example: custos bench lal --results logits.json --json lal.json
    """
    from benchmarks.framework.files import error_location, read_file
    from benchmarks.truthfulvqa.logit_advantage import measure_lal
    from evaluation.report.report import without_nan

    rows = list(read_file(results))
    with error_location(results):
        measured = without_nan(measure_lal(rows))
    if json_out is not None:
        write_json(json_out, measured)
    console = _console()
    console.print(_measured_table("logit advantage loss", {"mean": measured["intervals"]}))
    console.print(f"{measured['sets']} sets, {measured['complete_sets']} with all three levels")


def _measured_table(title: str, intervals: Mapping[str, Any]) -> Table:
    """Every estimate of a tree on a line of its own."""
    from benchmarks.framework.report.report import interval_cells
    from benchmarks.framework.tables import estimates

    shown = Table("", "value", "95 % interval", "n", title=title)
    for path, estimate in estimates(intervals):
        shown.add_row(" / ".join(path), *interval_cells(estimate))
    return shown


def _console() -> Console:
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = WIDTH_IN_FILES
    return console
