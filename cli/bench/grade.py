"""``custos bench grade``: a benchmark's responses under a judge."""

from __future__ import annotations

import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.judges import BenchmarkJudgeOptions
from cli.shared.measuring import Batch, RetryFailed, fill_showing, show_failed
from cli.shared.options import Name, PriceOptions, command_line, with_groups
from cli.shared.outputs import OutFile
from cli.shared.screen import fail_without_verdict, show_problems
from cli.shared.tables import Reasoning
from clients.kept_verdicts import partial_file
from judging.errors import CustosError
from judging.files.kept_work import locked
from judging.files.records import write_json
from judging.judge import Judge
from judging.verdicts.by_rule import RULES_JUDGE, RuleGrader


@with_groups
def grade(
    name: Name,
    responses: Annotated[Path, typer.Option()],
    out: OutFile,
    judge: Annotated[str | None, typer.Option("--judge")] = None,
    items: str | None = None,
    rubric_file: Path | None = None,
    reasoning: Reasoning = None,
    retry_failed: RetryFailed = False,
    batch: Batch = 256,
    *,
    judge_options: BenchmarkJudgeOptions,
    price_options: PriceOptions,
) -> None:
    """Grade responses to a benchmark and write them in its own graded shape.

    Verdicts are kept in OUT.partial while the command runs. If it is stopped, the same command
    continues where it stopped. OUT.partial stays as long as it holds failed rows: then
    --retry-failed grades them again. If the judge gave no verdict at all, the exit status is 1.

    The command says what was measured of the judge on the benchmark's task, with the accuracy of
    the rules on all rows, or that it was not measured on this task. This, time and cost are
    written to OUT.run.json, where custos bench table finds them. If several runs shared the work,
    time and cost are not known.

    Example: custos bench grade charthal --responses gpt.response.json
    --judge runs/charthal/fold-1/judge --out gpt.eval.json

    Options:
        responses: Read items with their responses, in the benchmark's own shape.
        out: Write the graded items to this JSON or JSONL file.
        judge: Run folder, shipped judge, a backbone for a zero-shot judge, or the URL of custos
            serve or, with --model, of an OpenAI-compatible server; 'rules' for the rules of its
            tasks, without a model (chartom, simplevqa). Default: none, where rules decide
            everything.
        items: Read the official items from this file, folder or hub data set. Responses that hold
            only ids need it. Default: none.
        rubric_file: charthal, simplevqa: read rubric names and your own instructions from this YAML
            file, to repeat a published grader. For zero-shot judges and servers. An instruction
            with <|QUESTION|>, <|REF_ANS|> or <|RESPONSE|> is the whole prompt, for servers alone.
            Default: our own rubrics.
    """
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import check_suffix, run_file, write_graded
    from benchmarks.framework.graded import own_rubrics, read_responses
    from clients.chat_judge import ChatJudge
    from clients.judge_client import JudgeClient
    from evaluation.correction.judged import errors_in_folder
    from evaluation.report.reliability import measured_lines
    from judging.tasks import get_task

    benchmark = get_benchmark(name)
    check_suffix(out)
    changes: dict[str, object] = {} if reasoning is None else {"reasoning": reasoning}
    if rubric_file is not None:
        changes["task"] = own_rubrics(benchmark, rubric_file)
    work = read_responses(benchmark, responses, items, out.with_name(f"{out.stem}-images"))
    work = work.with_changes(**changes)
    partial = partial_file(out)
    with locked(partial.path):
        run_file(out).unlink(missing_ok=True)
        if work.num_requests:
            if judge is None:
                raise CustosError(f"--judge: '{name}' needs one, for {', '.join(benchmark.tasks)}")
            grader = judge_options.load(judge)
            if rubric_file is not None:  # A trained judge knows our rubrics alone.
                is_zero_shot = isinstance(grader, Judge) and grader.card is None
                if not (is_zero_shot or isinstance(grader, ChatJudge)):
                    raise CustosError(
                        f"--rubric-file: judge '{grader.name}' was trained under other "
                        "instructions; use a backbone or, with --model, the URL of a server as "
                        "the judge"
                    )
                whole = (get_task(r.task).whole_prompt(r) for _, r in work.numbered_requests())
                if is_zero_shot and any(whole):
                    raise CustosError(
                        f"--rubric-file '{rubric_file}' holds whole prompts, which a chat model "
                        "alone takes: use --model and the URL of a server as the judge"
                    )
            price = price_options.read()
            folder, backbone = (
                (grader.folder, grader.backbone.name) if isinstance(grader, Judge) else (None, "")
            )
            if isinstance(grader, RuleGrader):
                measured = ["rules: not a judge; what they do not decide has no label"]
            elif isinstance(grader, JudgeClient):
                measured = [
                    f"what was measured of the judges of {grader.name} is on its page of judges"
                ]
            else:
                tasks = sorted({request.task for _, request in work.numbered_requests()})
                measured = measured_lines(grader.name, folder, tasks, backbone)
            for line in measured:
                typer.echo(line)
            known = {} if rubric_file else errors_in_folder(folder)
            asked = {get_task(r.task).full_rubric(r) for _, r in work.numbered_requests()}
            started, was_stopped = time.perf_counter(), partial.path.exists()
            read, total = work.numbered_requests, work.num_requests
            fill_showing(partial, grader, read, total, batch, retry_failed)
            show_failed(partial)
            usage = getattr(grader, "usage", None)
            cost: float | str | None = "free"
            if usage is not None:
                cost = None if price is None or was_stopped else float(price.cost(usage))
            if judge_options.engine == "openai":
                cost = None  # nobody said what the server's tokens cost
            run = {
                "judge": grader.name,
                "requests": work.num_requests,
                # If several runs shared the work, time and cost are not known.
                "seconds": None if was_stopped else time.perf_counter() - started,
                "usage": usage.model_dump() if usage is not None else None,
                "cost": cost,
                "version": version("custos"),
                "command": command_line(),
                "measured": measured,
                "rubric_file": str(rubric_file) if rubric_file else None,
                "error_rates": {
                    name: known[name].model_dump() for name in sorted(asked & known.keys())
                },
            }
            write_json(run_file(out), run)
        elif judge not in (None, RULES_JUDGE):
            typer.echo(f"--judge {judge}: not asked; rules decide all of '{name}'", err=True)
        kept = partial.lines() if work.num_requests else ()
        graded = work.grade((line.row, line.verdict) for line in kept)
        write_graded(out, graded.rows, benchmark.keyed)
        partial.remove_unless_failed()
    show_problems(responses, graded.unscored)
    typer.echo(f"{len(graded.rows)} items graded, {len(graded.unscored)} without a label: {out}")
    if work.num_requests:
        fail_without_verdict(responses, graded.statuses)
