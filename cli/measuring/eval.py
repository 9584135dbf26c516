"""``custos eval``: how far a judge agrees with people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.shared.command_line import command_line
from cli.shared.grading import Batch, RetryFailed
from cli.shared.labelled_examples import KeptMeasurement, by_scores_of, read_examples
from cli.shared.options.engine import EngineOptions
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import TABLE_FORMATS, AllowDropped, TableOptions
from cli.shared.options.output import AllowFailed, Risk
from cli.shared.options.server import RivalOptions
from cli.shared.output_folders import check_keeps_sources, check_own_files, output_folder
from cli.shared.request_rows import leaves_mode_open, warn_of_open_modes
from evaluation.pairs.paradigms import RUNS
from evaluation.people.alternative import EPSILON
from judging.errors import CustosError, FieldError
from judging.files.kept_work import locked
from judging.judge import Judge
from judging.log_lines import one_line
from judging.scoring.ask_model import WINDOW
from judging.types import MAX_CRITIQUE_TOKENS, LabelledExample, Verdict

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
    run: Annotated[
        str,
        typer.Argument(
            help="Run folder, shipped judge, a backbone for a zero-shot judge, or the URL of a "
            "custos serve."
        ),
    ],
    data: Annotated[
        Path,
        typer.Option(help=f"Read labelled examples from this {TABLE_FORMATS}."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            callback=output_folder,
            help="Write report, pictures, examples and verdicts to this folder.",
        ),
    ],
    *,
    table_options: TableOptions,
    allow_dropped: AllowDropped = False,
    zero_shot: Annotated[
        bool, typer.Option(help="Measure the judge's own backbone, untrained, beside it.")
    ] = True,
    risk: Risk = None,
    allow_failed: AllowFailed = False,
    retry_failed: RetryFailed = False,
    batch: Batch = WINDOW,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Take this many examples, drawn by --seed. Default: all."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the intervals and of --limit.")] = 0,
    self_consistency: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Draw critique and label of every row anew in this many runs, at temperature .7 "
            "and top-p .95, and report the mean entropy of the labels. The paper takes 5. "
            "Default: none.",
        ),
    ] = None,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published",
            help="Judge pairs as TruthfulJudge's paper does: one order, critiques of up to 2,048 "
            "tokens, chat models at temperature .05, and --self-consistency 5.",
        ),
    ] = False,
    epsilon: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Where several people labelled rows: how much worse than a person the judge may "
            "be and still take that person's place. The paper of this test takes .1 for "
            "crowd-workers, .15 for skilled people and .2 for experts.",
        ),
    ] = EPSILON,
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
    """
    from evaluation.baselines import RULES_NAME, verdicts_of_rules
    from evaluation.outcomes import NothingScored
    from evaluation.report.evaluate import resolve_examples
    from judging.fingerprint import file_sha256

    check_keeps_sources(out, FILES, [data])
    rivals = rival_options.read(CHAT_TEMPERATURE if as_published else 0.0)
    runs = self_consistency or (RUNS if as_published else 0)
    measurement = KeptMeasurement(out, "report", batch, retry_failed, rivals, runs, epsilon)
    if not measurement.is_stopped():  # a stopped run of ours goes on
        check_own_files(out, FILES, "report.json", ("metrics", "command", "versions"))
    in_table = table_options.read()
    examples = read_examples(
        data,
        in_table,
        allow_dropped,
        limit,
        seed,
        check_pictures=not allow_failed,
        unique_ids=True,
    )
    if as_published:
        examples = [_as_published(example) for example in examples]
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
    is_here = engine_options.engine == "tree"  # A server's weights may not be.
    resolved = resolve_examples(judge, examples)
    by_rules = verdicts_of_rules(examples)
    with locked(out / "report"):
        try:
            report, verdicts = measurement.report(
                judge,
                resolved,
                command=command_line(),
                references={RULES_NAME: by_rules} if by_rules else {},
                zero_shot=zero_shot and is_here,
                dataset_sha256=file_sha256(data) if data.is_file() else None,
                risk=risk,
                seed=seed,
            )
        except NothingScored as error:
            typer.echo(one_line(f"error: {data}: {error}"), err=True)
            raise typer.Exit(1) from None
        _write_and_summarise(out, data.name, examples, verdicts, report)
        measurement.finish()
    failed = sum(reason["n"] for reason in report["unscored"] if reason["failed"])
    if failed and not allow_failed:
        typer.echo(f"error: {failed} of {report['n']} rows failed; see above", err=True)
        raise typer.Exit(1)


def _as_published(example: LabelledExample) -> LabelledExample:
    """Return a pair that is judged once, after a critique as long as the paper allows.

    Raises:
        FieldError: If it is no pair.
    """
    if len(example.responses) != 2:
        raise FieldError("responses", "--as-published is for pairs", f"row '{example.id}'")
    changes = {"order": "given", "critique_tokens": MAX_CRITIQUE_TOKENS}
    return example.model_copy(update=changes)


def _write_and_summarise(
    out: Path,
    data_name: str,
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    report: dict[str, Any],
) -> None:
    """Write all files of an evaluation and print the main figures and where the files are."""
    from evaluation.outcomes import save_evaluation
    from evaluation.report.disagreements import FILE, find_disagreements, write_disagreements
    from evaluation.report.page import write_page
    from evaluation.report.report import write_report
    from evaluation.report.summary import summary_lines

    disagreements = find_disagreements(examples, verdicts)
    write_report(report, out)
    page = write_page(report, disagreements, data_name, out)
    write_disagreements(out, disagreements)
    save_evaluation(out, examples, verdicts)
    for line in summary_lines(", ".join(report["judge_names"]), report, disagreements):
        typer.echo(line)
    typer.echo(f"\npage:          {page}\ntext:          {out / 'report.md'}")
    typer.echo(f"disagreements: {out / FILE}")
