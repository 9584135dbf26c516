"""``custos bench tournament``: models ranked by a judge of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from cli.bench_grade import load_grader
from cli.shared.server_options import Concurrency, Deadline, KeyEnv
from clients.kept_work import (
    RetryFailed,
    fill_showing,
    locked,
    partial_of,
    read_saved,
    remove_unless_failed,
)
from judging import CustosError, JudgeRequest, Verdict
from judging.records import read_records, write_json, write_records

if TYPE_CHECKING:
    from benchmarks.framework.model_matches import ModelMatch


def tournament(
    name: Annotated[str, typer.Argument(help="Benchmark; the paper does this for truthfulvqa.")],
    items: Annotated[str, typer.Option(help="Official items: file, folder or hub id.")],
    responses: Annotated[
        list[str], typer.Option(help="MODEL=FILE of responses; once for every model.")
    ],
    judge: Annotated[
        str,
        typer.Option(
            help="Judge of pairs: run folder, backbone, or the URL of custos serve or, with "
            "--model, of an OpenAI-compatible server."
        ),
    ],
    out: Annotated[Path, typer.Option(help="JSONL file for the verdicts on the matches.")],
    model: Annotated[str | None, typer.Option(help="Model to ask on that server.")] = None,
    task: Annotated[str, typer.Option(help="Task of the judge.")] = "truthful-pair",
    critique: Annotated[
        bool, typer.Option("--critique", help="Have the judge write before it decides.")
    ] = False,
    with_reference: Annotated[
        bool, typer.Option("--with-reference", help="Show the judge the right option.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(help="Another judge's --out of the same tournament: do the rankings agree?"),
    ] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write this file too.")] = None,
    retry_failed: RetryFailed = False,
    batch: Annotated[int, typer.Option(min=1, help="Matches judged between two saves.")] = 256,
    key_env: KeyEnv = None,
    concurrency: Concurrency = 8,
    deadline: Deadline = 300,
) -> None:
    """Compare open-ended answers two by two: win matrix, Bradley-Terry ratings and Elo.

    Get the answers with custos bench respond truthfulvqa --style open. A judge that was trained to
    write a critique first is asked with --critique. The same command picks up where it was stopped;
    OUT.partial stays as long as it holds failed matches: --retry-failed asks for them again, the
    command alone for nothing. Where the judge gave no verdict at all the exit status is 1.

    Example: custos bench tournament truthfulvqa --items truthfulvqa --responses gpt=gpt.json
    --responses qwen=qwen.json --judge runs/truthful_judge --critique --out matches.jsonl
    """
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import error_location, read_file
    from benchmarks.framework.model_matches import (
        compare_rankings,
        pair_up,
        responses_by_id,
        tournament_table,
    )
    from benchmarks.framework.report.report import interval_cells
    from cli.grade import fail_without_verdict, show_problems

    benchmark = get_benchmark(name)
    said, files = {}, [Path(items), *([against] if against else [])]
    for given in responses:
        who, separator, file = given.partition("=")
        if not separator or who in said:
            raise CustosError(f"--responses '{given}': expected MODEL=FILE, a model only once")
        files.append(Path(file))
        rows = list(read_file(Path(file)))
        with error_location(Path(file)):
            said[who] = responses_by_id(benchmark, rows)
    _check_outputs(out, json_out, files)
    matches = pair_up(
        benchmark,
        benchmark.load(items, out.with_name(f"{out.stem}-images")),
        said,
        task=task,
        mode="critique" if critique else "score",
        with_reference=with_reference,
    )
    others = _read_others(against, matches) if against is not None else None

    def read() -> Iterator[tuple[int, JudgeRequest]]:
        return ((number, match.request) for number, match in enumerate(matches, 1))

    unfinished = partial_of(out)
    with locked(unfinished):
        grader = load_grader(judge, model, key_env, concurrency, deadline)
        fill_showing(unfinished, grader, read, len(matches), batch, retry_failed)
        verdicts = [saved.verdict for saved in read_saved(unfinished)]
        write_records(out, verdicts)
        problems = {
            number: verdict.message or verdict.status
            for number, verdict in enumerate(verdicts, 1)
            if verdict.label is None
        }
        show_problems(out, problems)
        fail_without_verdict(out, {verdict.status for verdict in verdicts})
        result = tournament_table(matches, verdicts)
        if others is not None:
            result["agreement"] = compare_rankings(matches, verdicts, others)
        if json_out is not None:
            write_json(json_out, result)
        remove_unless_failed(unfinished)
    console = Console(highlight=False, soft_wrap=True)
    names = list(result["models"])
    ranking = Table("", "rating", "95 % interval", "Elo", "Elo by order", "points", "matches")
    for who, row in result["models"].items():
        value, interval, matches_played = interval_cells({**row["rating"], "n": row["matches"]})
        elo = row["elo"]
        by_order = f"{elo['order_low']:.0f} to {elo['order_high']:.0f}"
        points = f"{row['points']:g}"
        ranking.add_row(
            who, value, interval, f"{elo['mean']:.0f}", by_order, points, matches_played
        )
    console.print(ranking)
    wins = Table("wins of row over column, %", *names)
    for who in names:
        cells = [result["win_rate"][who].get(other) for other in names]
        wins.add_row(who, *(_percent(cell) for cell in cells))
    console.print(wins)
    statuses = ", ".join(f"{count} {status}" for status, count in result["statuses"].items())
    console.print(
        f"{len(verdicts)} matches on {result['questions']} questions: {statuses}", markup=False
    )
    console.print(f"judges: {', '.join(result['judges'])}", markup=False)
    if "agreement" in result:
        tau, interval, models = interval_cells(result["agreement"])
        console.print(f"Kendall's tau-b with {against}: {tau} ({interval}), {models} models")


def _check_outputs(out: Path, json_out: Path | None, inputs: Sequence[Path]) -> None:
    if out.suffix != ".jsonl":
        raise CustosError(f"--out '{out}': expected a file ending in .jsonl")
    for option, path, others in (("--out", out, inputs), ("--json", json_out, [*inputs, out])):
        if path is not None and path.resolve() in {other.resolve() for other in others}:
            raise CustosError(f"{option} '{path}': that is another file of this command")


def _read_others(file: Path, matches: Sequence[ModelMatch]) -> list[Verdict]:
    others = [row for _, row in read_records(file, Verdict)]
    if [other.id for other in others] != [match.request.id for match in matches]:
        raise CustosError(f"--against '{file}': does not hold the verdicts on the same matches")
    return others


def _percent(rate: dict[str, float | None] | None) -> str:
    if rate is None or rate["value"] is None:
        return ""
    low, high = (
        "-" if rate[key] is None else f"{100 * float(rate[key] or 0):.0f}"
        for key in ("low", "high")
    )
    return f"{100 * rate['value']:.1f} [{low}, {high}]"
