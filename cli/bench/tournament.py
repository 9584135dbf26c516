"""``custos bench tournament``: models ranked by a judge of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from cli.shared.judges import BenchmarkJudgeOptions
from cli.shared.measuring import Batch, RetryFailed, fill_showing, show_failed
from cli.shared.options import Items, JsonOut, read_assignments, with_groups
from cli.shared.outputs import OutFile, claim_json
from cli.shared.screen import fail_without_verdict, show_problems, wide_console
from clients.kept_verdicts import partial_file
from judging import CustosError, Verdict
from judging.files.kept_work import locked
from judging.files.records import read_records, write_json, write_records


@with_groups
def tournament(
    name: str,
    items: Items,
    responses: Annotated[list[str], typer.Option()],
    judge: Annotated[str, typer.Option("--judge")],
    out: OutFile,
    task: str = "truthful-pair",
    critique: Annotated[bool, typer.Option("--critique")] = False,
    with_reference: Annotated[bool, typer.Option("--with-reference")] = False,
    against: Path | None = None,
    people: Path | None = None,
    random_sample: Annotated[bool, typer.Option("--random-sample")] = False,
    json_out: JsonOut = None,
    retry_failed: RetryFailed = False,
    batch: Batch = 256,
    *,
    judge_options: BenchmarkJudgeOptions,
) -> None:
    """Compare open-ended answers two by two: win matrix, Bradley-Terry ratings and Elo.

    Get the answers with custos bench respond truthfulvqa --style open. Give --critique for a judge
    that was trained to write a critique first. If the command is stopped, the same command
    continues where it stopped. OUT.partial stays as long as it holds failed matches: then
    --retry-failed grades them again. If the judge gave no verdict at all, the exit status is 1.

    Example: custos bench tournament truthfulvqa --items truthfulvqa --responses gpt=gpt.json
    --responses qwen=qwen.json --judge runs/truthful_judge --critique --out matches.jsonl

    Options:
        name: Name of the benchmark; the paper does this for truthfulvqa.
        responses: MODEL=FILE: read a model's responses from this file. Repeat per model.
        judge: Judge of pairs: a run folder, a backbone, or the URL of custos serve or, with
            --model, of an OpenAI-compatible server.
        out: Write the verdicts on the matches to this JSONL file.
        task: Task that the judge is given.
        critique: Have the judge write a critique before it decides.
        with_reference: Show the judge the right option.
        against: Compare outcomes of matches and ranking with those of another judge, or of people.
            Give its --out of the same tournament. Default: no comparison.
        people: Correct the ranking by people's labels (id of a match, as in --out, and label A, B
            or None) of some matches, in this JSON, JSONL, CSV or Parquet file, and say how likely
            their order is the judge's. Where some matches were likelier to be drawn, give each its
            sampling_probability. Default: none.
        random_sample: Say that people decided a random sample of the matches.
    """
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import error_location, read_file, read_items
    from benchmarks.framework.matches import Tournament, pair_up, responses_by_id
    from benchmarks.framework.report.page import interval_cells
    from evaluation.intervals import RESAMPLES
    from evaluation.ranking.tournament import TAIL
    from evaluation.report.sentences import order_line

    benchmark = get_benchmark(name)
    files = read_assignments(responses, "--responses", "MODEL=FILE, a model only once", once=True)
    texts = {}
    for player, file in files.items():
        rows = list(read_file(Path(file)))
        with error_location(Path(file)):
            texts[player] = responses_by_id(benchmark, rows)
    if out.suffix != ".jsonl":
        raise CustosError(f"--out '{out}': expected a file ending in .jsonl")
    claim_json(json_out, ("models", "coverage"))
    matches = pair_up(
        benchmark,
        benchmark.load(items, out.with_name(f"{out.stem}-images")),
        texts,
        task=task,
        mode="critique" if critique else None,
        with_reference=with_reference,
    )
    others = None
    if against is not None:
        others = [verdict for _, verdict in read_records(against, Verdict)]
        if [other.id for other in others] != [match.request.id for match in matches]:
            fault = "does not hold the verdicts on the same matches"
            raise CustosError(f"--against '{against}': {fault}")
    labelled = read_items(people) if people is not None else None
    partial = partial_file(out)
    with locked(partial.path):
        grader = judge_options.load(judge)
        requests = [(number, match.request) for number, match in enumerate(matches, 1)]
        fill_showing(partial, grader, lambda: requests, len(matches), batch, retry_failed)
        show_failed(partial)
        verdicts = [line.verdict for line in partial.lines()]
        write_records(out, verdicts)
        numbered = enumerate(verdicts, 1)
        unscored = {n: each.message or each.status for n, each in numbered if each.label is None}
        show_problems(out, unscored)
        fail_without_verdict(out, {verdict.status for verdict in verdicts})
        played = Tournament(matches, verdicts)
        result = played.table()
        if others is not None:
            result["agreement"] = played.compare(others)
        if labelled is not None and people is not None:
            with error_location(people):
                result["by_people"] = played.by_people(labelled, random_sample)
        if json_out is not None:
            write_json(json_out, result)
        partial.remove_unless_failed()
    console = wide_console()
    ranking = Table("", "rating", "95 % interval", "Elo", "Elo by order", "points", "matches")
    for name, row in result["models"].items():
        rating, interval, num = interval_cells({**row["rating"], "n": row["matches"]})
        elo = row["elo"]
        by_order = f"{elo['order_low']:.0f} to {elo['order_high']:.0f}"
        points = f"{row['points']:g}"
        ranking.add_row(name, rating, interval, f"{elo['mean']:.0f}", by_order, points, num)
    console.print(ranking)
    if result["penalised"]:
        console.print(
            "ratings have no interval: a model wins or loses all its matches, and Firth's penalty "
            "alone keeps its rating finite"
        )
    elif (num_open := RESAMPLES - result["draws"]) > TAIL * RESAMPLES:
        console.print(
            f"ratings have no interval: in {num_open:,} of {RESAMPLES:,} resamples of questions "
            "they are not finite, as where a model wins or loses all its matches"
        )
    wins = Table("wins of row over column, %", *result["models"])
    for name in result["models"]:
        rates = result["win_rate"][name]
        wins.add_row(name, *(_percent(rates.get(other)) for other in result["models"]))
    console.print(wins)
    statuses = ", ".join(f"{count} {status}" for status, count in result["statuses"].items())
    console.print(f"{len(matches)} matches on {result['questions']} questions: {statuses}")
    console.print(f"judges: {', '.join(result['judges'])}")
    if "by_people" in result:
        by_people = result["by_people"]
        for name, rating in by_people["models"].items():
            value, interval, _ = interval_cells({**rating, "n": by_people["n"]})
            console.print(f"{name}, corrected by people on {by_people['n']} matches: "
                          f"{value} ({interval})")  # fmt: skip
        console.print(order_line(by_people) or "two models have the same rating")
    if "agreement" in result:
        tau, interval, models = interval_cells(result["agreement"])
        console.print(f"Kendall's tau-b with {against}: {tau} ({interval}), {models} models")
        same, interval, num_decided = interval_cells(result["agreement"]["same_outcome"])
        console.print(f"same outcome as {against}: {same} ({interval}) of {num_decided} matches")


def _percent(rate: Mapping[str, float | None] | None) -> str:
    if rate is None or rate["value"] is None:
        return ""
    ends = (rate["low"], rate["high"])
    low, high = ("-" if end is None else f"{100 * end:.0f}" for end in ends)
    return f"{100 * rate['value']:.1f} [{low}, {high}]"
