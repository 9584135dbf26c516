"""``custos bench table``: a benchmark's table beside what its paper reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from cli.shared.options.benchmark import JsonOut, Name
from cli.shared.output_folders import in_known_folder
from cli.shared.tables import interval_table, wide_console
from judging import CustosError
from judging.files.atomic import atomic_write
from judging.files.records import write_json

if TYPE_CHECKING:
    from benchmarks.framework.base import Benchmark
    from benchmarks.framework.files import Row


def table(
    name: Name,
    graded: Annotated[
        Path, typer.Option(help="Read graded items from this file, ours or the benchmark's own.")
    ],
    json_out: JsonOut = None,
    markdown_out: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            callback=in_known_folder,
            help="Write the tables to this file as Markdown.",
        ),
    ] = None,
    html_out: Annotated[
        Path | None,
        typer.Option(
            "--html",
            callback=in_known_folder,
            help="Write a page with tables, charts and every item to this file.",
        ),
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(
            help="Read items that people graded, in the same graded shape (ids and grades are "
            "enough), to correct the score and to show how far the judge agrees. Default: none."
        ),
    ] = None,
    random_sample: Annotated[
        bool,
        typer.Option(
            "--random-sample", help="Say that people graded a random sample of the items."
        ),
    ] = False,
) -> None:
    """Print a benchmark's table with 95 % intervals, beside what its paper reports.

    Example: custos bench table charthal --graded gpt.eval.json --html report.html
    """
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import error_location, read_run
    from benchmarks.framework.report.markdown import render_markdown
    from benchmarks.framework.report.page import render_html
    from benchmarks.framework.report.report import build_table

    benchmark = get_benchmark(name)
    rows = _read_graded(benchmark, graded)
    people_rows = _read_people(benchmark, rows, people) if people is not None else []
    with error_location(graded):
        result = build_table(benchmark, rows, people_rows, random_sample, read_run(graded))
    if json_out is not None:
        write_json(json_out, result)
    if markdown_out is not None:
        with atomic_write(markdown_out) as file:
            file.write(render_markdown(benchmark, result, graded.name))
    if html_out is not None:
        with atomic_write(html_out) as file:
            file.write(render_html(benchmark, rows, result, graded.name, people_rows))
    _show(benchmark, result)


def _read_items(path: Path) -> list[Row]:
    from benchmarks.framework.files import read_file

    rows = list(read_file(path))
    if not rows:
        raise CustosError(f"{path}: no items")
    return rows


def _read_graded(benchmark: Benchmark, graded: Path) -> list[Row]:
    """Read graded items with their pictures; raise an error now if one cannot be scored."""
    from benchmarks.framework.files import error_location

    pictures = graded.with_name(f"{graded.stem}-images")
    items = _read_items(graded)
    with error_location(graded):
        rows = [benchmark.with_images(row, graded.parent, pictures) for row in items]
        benchmark.scores(rows)
    return rows


def _read_people(benchmark: Benchmark, rows: list[Row], people: Path) -> list[Row]:
    from benchmarks.framework.corrected_by_people import human_scores
    from benchmarks.framework.files import error_location

    people_rows = _read_items(people)
    with error_location(people):
        human_scores(benchmark, rows, people_rows)
    return people_rows


def _show(benchmark: Benchmark, result: dict[str, Any]) -> None:
    from benchmarks.framework.report.report import paper_tables, summary_lines

    console = wide_console()
    for model, measured in result.get("models", {"": result}).items():
        title = f"{benchmark.name} {model}".strip()
        console.print(interval_table(title, measured["intervals"]))
        for line in summary_lines(measured):
            console.print(line, markup=False)
    for paper in paper_tables(benchmark, result):
        published = Table("", *paper["columns"], title=f"Published, {paper['source']}")
        for row in paper["rows"]:
            published.add_row(row["name"], *row["figures"], style="bold" if row["ours"] else None)
        console.print(published)
