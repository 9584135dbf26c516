"""The verbs of ``custos bench`` in the order of its help; the short ones, table and compare."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from cli.bench.grade import grade
from cli.bench.respond import respond
from cli.bench.tournament import tournament
from cli.shared.options import Items, JsonOut, Name, read_assignments, with_groups
from cli.shared.outputs import (
    OutFile,
    OutFolder,
    Verb,
    claim,
    claim_json,
    claim_text,
    output_file,
    own,
)
from cli.shared.screen import interval_table, wide_console
from judging import CustosError
from judging.files.atomic import write_text
from judging.files.records import write_json


@with_groups
def table(
    name: Name,
    models: Annotated[list[str] | None, typer.Argument(metavar="MODEL=FILE")] = None,
    graded: Path | None = None,
    json_out: JsonOut = None,
    markdown_out: Annotated[Path | None, typer.Option("--markdown", callback=output_file)] = None,
    html_out: Annotated[Path | None, typer.Option("--html", callback=output_file)] = None,
    people: list[str] | None = None,
    random_sample: Annotated[bool, typer.Option("--random-sample")] = False,
    measured: Annotated[Path | None, typer.Option("--measured")] = None,
) -> None:
    """Print a benchmark's tables with 95 % intervals, beside every row that its paper reports.

    Several models stand in one table, with their paired differences. Published tables are sorted by
    their main column. Beside a score that a judge decided stands the one that people would give,
    from their grades or from the judge's measured errors, or the word uncorrected.

    Example: custos bench table charthal gpt=gpt.eval.json qwen=qwen.eval.json --html models.html

    Options:
        models: Graded files of several models. A file or folder that names its models itself needs
            no MODEL=: a SimpleVQA file with several models, a clone of ChartHal's repository, the
            results folder of TruthfulVQA's code. Default: the file of --graded.
        graded: Read graded items from this file, ours or the benchmark's own, for a report with
            every item. Default: the files that are named as arguments.
        markdown_out: Write the tables to this file as Markdown. Default: none.
        html_out: Write a page to this file: tables and pictures and, for one model, every item.
            Default: none.
        people: FILE or, beside several models, MODEL=FILE: read items that people graded, in the
            same graded shape (ids and grades are enough), to correct the score and to show how far
            the judge agrees. Default: none.
        random_sample: Say that people graded a random sample of the items.
        measured: Correct the score by how the judge errs in this report.json or reliability.json,
            or in the one of this folder. Default: what custos bench grade knew of the judge.
    """
    from benchmarks.framework import leaderboard
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import error_location, read_items, read_run
    from benchmarks.framework.graded import GradedModel
    from benchmarks.framework.report import page
    from benchmarks.framework.report.leaderboard import render_leaderboard_html

    benchmark, console = get_benchmark(name), wide_console()
    claim_json(json_out, ("intervals", "judged"), ("benchmark", "tables"))
    claim_text(markdown_out, "--markdown", f"# {benchmark.name}: {benchmark.summary}")
    claim_text(html_out, "--html", "Content-Security-Policy", f"<title>{benchmark.name}: ")
    if (graded is None) == (not models):
        raise CustosError("give either models as MODEL=FILE, or one file with --graded")
    by_model = {} if graded is None else benchmark.by_model(read_items(graded))
    if graded is not None and len(by_model) == 1:
        [items] = by_model.values()
        if len(people or ()) > 1:
            raise CustosError("--people: one file beside --graded")
        pictures = graded.with_name(f"{graded.stem}-images")
        with error_location(graded):
            items = benchmark.completed(items)
            items = [benchmark.with_images(row, graded.parent, pictures) for row in items]
            benchmark.scores(items)
        model = GradedModel(benchmark, items, str(graded), (), random_sample, None, measured)
        for file in people or ():
            model = leaderboard.with_people(model, Path(file))
        with error_location(graded):
            model = replace(model, run=read_run(graded))
            result = leaderboard.build_table(model)
        console.print(interval_table(benchmark.name, result["intervals"]))
        for line in page.summary_lines(result):
            console.print(line)
        by_name = {leaderboard.model_name(result): result}
        _show_published(leaderboard.paper_tables(benchmark, by_name))
        if markdown_out is not None:
            write_text(markdown_out, page.render_markdown(model, result))
        if html_out is not None:
            write_text(html_out, page.render_html(model, result))
    else:
        labelled = read_assignments(people, "--people", "MODEL=FILE, a model only once", once=True)
        sources = models or [str(graded)]
        read = leaderboard.read_models(benchmark, sources, labelled, random_sample, measured)
        result = leaderboard.build_leaderboard(benchmark, read)
        shown = page.several_models(benchmark, result)
        _show_published(result["tables"])
        if shown["difference_rows"]:
            columns = ("difference", "95 % interval", "n", "p", "p, Holm")
            title = f"Paired differences of {result['metric']} in points of 100"
            differences = Table("", *columns, title=title)
            for cells in shown["difference_rows"]:
                differences.add_row(*cells)
            console.print(differences)
        if shown["order"]:
            console.print(shown["order"])
        for reason in result["not_compared"]:
            console.print(f"not compared: {reason}")
        for each in shown["models"]:
            console.print(f"{each['name']}: {'; '.join(each['summary'])}")
        if markdown_out is not None:
            write_text(markdown_out, page.render_leaderboard_markdown(benchmark, result))
        if html_out is not None:
            write_text(html_out, render_leaderboard_html(benchmark, result))
    if json_out is not None:
        write_json(json_out, result)


def _show_published(papers: Sequence[Mapping[str, Any]]) -> None:
    """Print published tables; where they have a main column, only that has room for intervals."""
    from benchmarks.framework.report.page import figure_parts, figure_text

    console = wide_console()
    for paper in papers:
        published = Table(title=paper["title"])
        longest = max((len(row["name"]) for row in paper["rows"]), default=0)
        published.add_column("", min_width=longest, no_wrap=True)
        for column in paper["columns"]:
            published.add_column(column, no_wrap=column == paper["ranked_by"])
        for row in paper["rows"]:
            cells = [
                figure_text(figure)
                if paper["ranked_by"] in (None, column)
                else figure_parts(figure)[0]
                for column, figure in zip(paper["columns"], row["figures"], strict=True)
            ]
            published.add_row(row["name"], *cells, style="bold" if row["ours"] else None)
        console.print(published)


@with_groups
def compare(
    name: Name, a: Path, b: Path, measure: str | None = None, json_out: JsonOut = None
) -> None:
    """Compare two graded files of one benchmark, on the items that both score.

    The files may be of two models, of two ways of asking one model, or of a chat model and its
    reasoning variant. Differences are shown overall and for every part of the benchmark.

    Example: custos bench compare charthal gpt.eval.json qwen.eval.json

    Options:
        a: Graded file A.
        b: Graded file B.
        measure: Compare this measure, such as 'MIND squared error' of chartom; another name lists
            all. Default: the benchmark's main one.
    """
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import error_location, read_file
    from benchmarks.framework.graded import ScoredItems, compare_graded
    from benchmarks.framework.report.page import interval_cells
    from evaluation.report.cautions import few_questions
    from evaluation.report.text import p_value

    claim_json(json_out, ("metric", "difference"))
    benchmark, graded = get_benchmark(name), []
    for path in (a, b):
        rows = list(read_file(path))
        with error_location(path):
            graded.append(ScoredItems.of(benchmark, benchmark.completed(rows), measure))
    result = compare_graded(*graded)
    if json_out is not None:
        write_json(json_out, result)
    shown = Table(result["metric"], "value", "95 % interval", "n")
    for label, side in ((str(a), "a"), (str(b), "b"), ("B minus A", "difference")):
        shown.add_row(label, *interval_cells(result[side]))
    for facet, parts in result["by"].items():
        for part, estimate in parts.items():
            shown.add_row(f"B minus A, {facet} {part}", *interval_cells(estimate))
    console = wide_console()
    console.print(shown)
    console.print(
        f"higher in A on {result['a_higher']} items, in B on {result['b_higher']}: "
        f"p by questions {p_value(result['p'])}"
    )
    if caution := few_questions(result["clusters"]):
        console.print(f"caution: {caution}")
    console.print(f"scored on one side alone: {result['only_a']} in A, {result['only_b']} in B")


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
def example(name: Name, out: OutFile) -> None:
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
def lal(results: Annotated[Path, typer.Option()], json_out: JsonOut = None) -> None:
    """Measure the logit advantage loss between the levels of TruthfulVQA, per set and on average.

    Example: custos bench lal --results logits.json --json lal.json

    Options:
        results: Read this JSON list of objects with case (set_id, id, level, answer) and
            result.option_logits.
    """
    from benchmarks.framework.files import error_location, read_file
    from benchmarks.truthfulvqa.logits import measure_lal
    from evaluation.estimate import without_nan

    claim_json(json_out, ("intervals", "complete_sets"))
    rows = list(read_file(results))
    with error_location(results):
        measured = without_nan(measure_lal(rows))
    if json_out is not None:
        write_json(json_out, measured)
    console = wide_console()
    console.print(interval_table("logit advantage loss", {"mean": measured["intervals"]}))
    console.print(f"{measured['sets']} sets, {measured['complete_sets']} with all three levels")


@with_groups
def hmi(items: Items, out: OutFolder) -> None:
    """Report CHARTOM's human misleadingness index (HMI) from people's answers to FACT questions.

    Items need human_answers, as custos prep construct collect writes them, or an hmi. The report
    has the HMI of every chart with its interval, beside the other chart of its pair (Table 1), the
    acceptable answers and what people answered (Table 2), and all charts sorted (Figure 3).

    Example: custos bench hmi --items items.jsonl --out hmi

    Options:
        out: Write hmi.md, hmi.json and a picture to this folder.
    """
    from benchmarks.chartom.item import HEADINGS, PICTURE, measure_hmi, pair_rows, write_hmi_report
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import error_location

    is_own = own(("pair", "manipulation", "hmi"), "hmi.json")
    claim(out, is_own, names=("hmi.md", "hmi.json", PICTURE), sources=[Path(items)])
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
