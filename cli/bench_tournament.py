"""``custos bench tournament``: models ranked by a judge of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from cli.bench_grade import load_grader
from cli.server_options import Concurrency, Deadline, KeyEnv
from judging import CustosError, JudgeRequest, Verdict
from judging.rows import read_records, write_json, write_records


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
    batch: Annotated[int, typer.Option(min=1, help="Matches judged between two saves.")] = 256,
    key_env: KeyEnv = None,
    concurrency: Concurrency = 8,
    deadline: Deadline = 300,
) -> None:
    """Compare open-ended answers two by two: win matrix, Bradley-Terry ratings and Elo.

    Get the answers with custos bench respond truthfulvqa --style open. The same command picks up
    where it was stopped.

    Example: custos bench tournament truthfulvqa --items truthfulvqa --responses gpt=gpt.json
    --responses qwen=qwen.json --judge runs/truthful --out matches.jsonl
    """
    from benchmarks.base import get_benchmark
    from benchmarks.files import read_file, rows_of
    from benchmarks.matches import agreement, pair_up, rank, read_responses
    from benchmarks.report import interval_cells
    from cli.grade import show_problems
    from cli.partial import fill_showing, locked, partial_of, read_saved

    benchmark = get_benchmark(name)
    said = {}
    for given in responses:
        who, separator, file = given.partition("=")
        if not separator or who in said:
            raise CustosError(f"--responses '{given}': expected MODEL=FILE, a model only once")
        rows = list(read_file(Path(file)))
        with rows_of(Path(file)):
            said[who] = read_responses(benchmark, rows)
    matches = pair_up(
        benchmark,
        benchmark.load(items, out.with_name(f"{out.stem}-images")),
        said,
        task=task,
        mode="critique" if critique else "score",
        with_reference=with_reference,
    )

    def read() -> Iterator[tuple[int, JudgeRequest]]:
        return ((number, match.request) for number, match in enumerate(matches, 1))

    unfinished = partial_of(out)
    grader = load_grader(judge, model, key_env, concurrency, deadline)
    with locked(unfinished):
        fill_showing(unfinished, grader, read, len(matches), batch)
        verdicts = [saved.verdict for saved in read_saved(unfinished)]
        write_records(out, verdicts)
        unfinished.unlink()
    problems = {
        number: verdict.message or verdict.status
        for number, verdict in enumerate(verdicts, 1)
        if verdict.label is None
    }
    show_problems(out, problems)
    result = rank(matches, verdicts)
    if against is not None:
        result["agreement"] = agreement(matches, verdicts, _same_matches(against, verdicts))
    if json_out is not None:
        write_json(json_out, result)
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


def _same_matches(file: Path, verdicts: Sequence[Verdict]) -> list[Verdict]:
    others = [row for _, row in read_records(file, Verdict)]
    if [other.id for other in others] != [verdict.id for verdict in verdicts]:
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
