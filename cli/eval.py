"""``custos eval``: how far a judge agrees with people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.judges import EngineOptions
from cli.shared.measuring import Batch, KeptMeasurement, RetryFailed, by_scores_of, read_examples
from cli.shared.options import AllowFailed, Risk, RivalOptions, command_line, with_groups
from cli.shared.outputs import OutFolder, claim, own
from cli.shared.tables import (
    TABLE_FORMATS,
    AllowDropped,
    TableOptions,
    file_digest,
    leaves_mode_open,
    warn_of_open_modes,
)
from evaluation.pairs.paradigms import RUNS
from evaluation.people.annotators import EPSILON
from judging.errors import CustosError, FieldError
from judging.files.kept_work import locked
from judging.judge import Judge
from judging.log_lines import one_line
from judging.scoring.ask_model import WINDOW
from judging.types import MAX_CRITIQUE_TOKENS

FILES = (
    *("report.html", "report.md", "report.json", "disagreements.csv", "examples.jsonl"),
    *("verdicts.jsonl", "confusion.png", "reliability.png", "risk_coverage.png", "people.png"),
    *("ranking.png", "favour.png"),
)
"""Files that the command writes."""
CHAT_TEMPERATURE = 0.05
"""Temperature at which TruthfulJudge's paper asks judges behind an API (appendix F.3)."""


@with_groups
def evaluate(
    run: str,
    data: Annotated[Path, typer.Option(help=f"Read labelled examples from this {TABLE_FORMATS}.")],
    out: OutFolder,
    *,
    table_options: TableOptions,
    allow_dropped: AllowDropped = False,
    zero_shot: bool = True,
    risk: Risk = None,
    allow_failed: AllowFailed = False,
    retry_failed: RetryFailed = False,
    batch: Batch = WINDOW,
    limit: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    self_consistency: Annotated[int | None, typer.Option(min=2)] = None,
    as_published: Annotated[bool, typer.Option("--as-published")] = False,
    epsilon: Annotated[float, typer.Option(min=0, max=1)] = EPSILON,
    engine_options: EngineOptions,
    rival_options: RivalOptions,
) -> None:
    """Measure how far a judge agrees with human labels, beside baselines.

    Writes a page (report.html), the rows on which judge and people differ (disagreements.csv),
    report.md, report.json and pictures, and the files that custos compare reads. The exit status is
    1 if no row got a label, or if rows failed.

    Verdicts are kept in OUT while the command runs. If it is stopped, the same command continues
    where it stopped. They stay as long as rows have failed: the same command grades those that you
    have changed since, and with --retry-failed all of them.

    How many verdicts can be kept if one in twenty may be wrong: custos eval runs/mine
    --data labels.csv --risk .05 --out report

    Beside the model that you pay for: custos eval embedded-qs --data labels.jsonl
    --chat-model gpt-4o --chat-url https://api.openai.com/v1 --chat-key-env OPENAI_API_KEY
    --out report

    The rows of TruthfulJudge's Tables 1 and 2: custos eval runs/pair/critique_label
    --data pairs.jsonl --as-published --chat-model gpt-4o --chat-url https://api.openai.com/v1
    --chat-key-env OPENAI_API_KEY --out report

    A running service: custos eval http://127.0.0.1:8000 --data labels.jsonl --out report

    Example: custos eval embedded-qs --data labels.csv --map references=gold --map
    response=model_answer --map label=human_label --labels right=Correct,wrong=Wrong --out report

    Options:
        run: Run folder, shipped judge, a backbone for a zero-shot judge, or the URL of a custos
            serve.
        out: Write report, pictures, examples and verdicts to this folder.
        zero_shot: Measure the judge's own backbone, untrained, beside it.
        limit: Take this many examples, drawn by --seed. Default: all.
        seed: Seed of the intervals and of --limit.
        self_consistency: Draw critique and label of every row anew in this many runs, at
            temperature .7 and top-p .95, and report the mean entropy of the labels. The paper takes
            5. Default: none.
        as_published: Judge pairs as TruthfulJudge's paper does: one order, critiques of up to 2,048
            tokens, chat models at temperature .05, and --self-consistency 5.
        epsilon: Where several people labelled rows: how much worse than a person the judge may be
            and still take that person's place. The paper of this test takes .1 for crowd-workers,
            .15 for skilled people and .2 for experts.
    """
    from evaluation.baselines import RULES_NAME, verdicts_of_rules
    from evaluation.outcomes import NothingScored, save_evaluation
    from evaluation.report.disagreements import FILE, find_disagreements, write_disagreements
    from evaluation.report.evaluate import resolve_examples
    from evaluation.report.markdown import summary_lines
    from evaluation.report.page import write_page
    from evaluation.report.report import write_report

    rivals = rival_options.read(CHAT_TEMPERATURE if as_published else 0.0)
    runs = self_consistency or (RUNS if as_published else 0)
    measurement = KeptMeasurement(out, "report", batch, retry_failed, rivals, runs, epsilon)

    def is_own(folder: Path) -> bool:
        is_report = own(("metrics", "command", "versions"), "report.json")
        return measurement.is_stopped() or is_report(folder)

    claim(out, is_own, names=FILES, sources=[data])
    asked = (table_options.read(), allow_dropped, limit, seed)
    examples = read_examples(data, *asked, check_pictures=not allow_failed, unique_ids=True)
    if as_published:
        if single := next((each.id for each in examples if len(each.responses) != 2), None):
            raise FieldError("responses", "--as-published is for pairs", f"row '{single}'")
        changes = {"order": "given", "critique_tokens": MAX_CRITIQUE_TOKENS}
        examples = [example.model_copy(update=changes) for example in examples]
    warn_of_open_modes(data, sum(map(leaves_mode_open, examples)))
    judge = engine_options.load_judge_or_service(run)
    if not isinstance(judge, Judge):
        if runs:
            raise CustosError(
                f"{judge.name}: a service draws no labels for self-consistency; name the run, or "
                "a model server with --engine openai"
            )
        untrained = "; its untrained model is not measured" if zero_shot else ""
        typer.echo(
            f"{judge.name}: the report cannot say whether the judge was trained on these rows, as "
            f"a service does not tell{untrained}",
            err=True,
        )
    if by_scores := by_scores_of(judge, examples):
        typer.echo(
            f"{judge.name} judges single responses ({by_scores.paradigm.task}): of a pair the "
            "higher score wins, and there is no self-consistency",
            err=True,
        )
    resolved = resolve_examples(judge, examples)
    by_rules = verdicts_of_rules(examples)
    with locked(out / "report"):
        try:
            report, verdicts = measurement.report(
                judge,
                resolved,
                command=command_line(),
                references={RULES_NAME: by_rules} if by_rules else {},
                # The weights of a model on a server may not be here.
                zero_shot=zero_shot and engine_options.engine == "tree",
                dataset_sha256=file_digest(data),
                risk=risk,
                seed=seed,
            )
        except NothingScored as error:
            typer.echo(one_line(f"error: {data}: {error}"), err=True)
            raise typer.Exit(1) from None
        disagreements = find_disagreements(examples, verdicts)
        write_report(report, out)
        page = write_page(report, disagreements, data.name, out)
        write_disagreements(out, disagreements)
        save_evaluation(out, examples, verdicts)
        for line in summary_lines(", ".join(report["judge_names"]), report, disagreements):
            typer.echo(line)
        typer.echo(f"\npage:          {page}\ntext:          {out / 'report.md'}")
        typer.echo(f"disagreements: {out / FILE}")
        measurement.finish()
    failed = sum(reason["n"] for reason in report["unscored"] if reason["failed"])
    if failed and not allow_failed:
        typer.echo(f"error: {failed} of {report['n']} rows failed; see above", err=True)
        raise typer.Exit(1)
