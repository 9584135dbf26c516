"""``custos eval``, ``compare`` and ``calibrate``: judges measured on labelled rows, and fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.judges import EngineOptions
from cli.shared.measuring import Batch, KeptMeasurement, RetryFailed, by_scores_of, read_examples
from cli.shared.options import AllowFailed, Risk, RivalOptions, with_groups
from cli.shared.outputs import OutFolder, claim, claim_json, output_file, own
from cli.shared.screen import counting_bar
from cli.shared.tables import (
    TABLE_FORMATS,
    AllowDropped,
    TableOptions,
    file_digest,
    trained_tasks,
    warn_of_open_modes,
    with_only_task,
)
from clients.kept_verdicts import request_key
from data_prep.tables.cells import DEFAULT_SEPARATOR
from data_prep.tables.examples import leaves_mode_open
from data_prep.tables.labels import in_own_words
from data_prep.tables.source import open_table
from evaluation.comparisons.compare import (
    MARGIN,
    MIN_COMMON,
    Outcome,
    compare_evaluations,
    gate,
    gate_outcome,
    render_comparison,
)
from evaluation.pairs.paradigms import RUNS
from evaluation.people.annotators import EPSILON
from judging.errors import CustosError, FieldError, errors_at
from judging.files.kept_work import KeptFile, KeptLine, Origin, locked
from judging.files.records import write_json
from judging.judge import CALIBRATION_FILE, Judge
from judging.log_lines import one_line
from judging.scoring.ask_model import CHUNK
from judging.tasks import get_task
from judging.types import MAX_CRITIQUE_TOKENS

FIGURES = (
    *("report.html", "report.md", "report.json", "confusion.png", "reliability.png"),
    *("risk_coverage.png", "people.png", "ranking.png", "favour.png"),
)
"""Files of the command that hold figures."""
FILES = (*FIGURES, "disagreements.csv", "examples.jsonl", "verdicts.jsonl")
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
    batch: Batch = CHUNK,
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
    from evaluation.report.evaluate import (
        FILE,
        OwnShape,
        find_disagreements,
        resolve_examples,
        write_disagreements,
    )
    from evaluation.report.page import write_page
    from evaluation.report.report import write_report
    from evaluation.report.screen import summary_lines

    rivals = rival_options.read(CHAT_TEMPERATURE if as_published else 0.0)
    runs = self_consistency or (RUNS if as_published else 0)
    measurement = KeptMeasurement(out, "report", batch, retry_failed, rivals, runs, epsilon)

    def is_own(folder: Path) -> bool:
        is_report = own(("metrics", "command", "versions"), "report.json")
        return measurement.is_stopped() or is_report(folder)

    claim(out, is_own, names=FILES, sources=[data])
    in_table = with_only_task(table_options.read(), data, trained_tasks([run]))
    asked = (in_table, allow_dropped, limit, seed)
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
        table = open_table(data, in_table.text_format)
        shape = OwnShape(
            in_table.columns,
            lambda label: in_own_words(label, in_table.labels),
            in_table.delimiter or (table.delimiter if table.path.suffix == ".csv" else None),
            f"{in_table.separator or DEFAULT_SEPARATOR} ",
        )
        write_report(report, out)
        page = write_page(report, disagreements, data.name, out)
        write_disagreements(out, disagreements, shape)
        save_evaluation(out, examples, verdicts)
        names = ", ".join(report["judge_names"])
        for line in summary_lines(names, report, disagreements, shape.word):
            typer.echo(line)
        typer.echo(f"\npage:          {page}\ntext:          {out / 'report.md'}")
        typer.echo(f"disagreements: {out / FILE}")
        measurement.finish()
    failed = sum(reason["n"] for reason in report["unscored"] if reason["failed"])
    if failed and not allow_failed:
        typer.echo(f"error: {failed} of {report['n']} rows failed; see above", err=True)
        raise typer.Exit(1)


STATUS: dict[Outcome, int] = {"no worse": 0, "worse": 1, "not enough rows": 3}
"""Exit status by outcome of the gate; 2 is that of a wrong command line."""


@with_groups
def compare(
    a: Path,
    b: Path,
    json_out: Annotated[Path | None, typer.Option("--json", callback=output_file)] = None,
    gated: Annotated[bool, typer.Option("--gate")] = False,
    margin: Annotated[float, typer.Option(min=0.0, max=1.0)] = MARGIN,
    min_common: Annotated[int, typer.Option(min=1)] = MIN_COMMON,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Say which of two judges agrees better with people, and how sure that is.

    Both folders come from custos eval on the same data. Differences are B minus A, on the items
    that both judges scored. Intervals resample questions.

    With --gate, a line says for every part of the items whether B is shown to be no worse than A by
    the margin, worse, or neither. The tests are paired and one-sided and keep whole questions
    together. Those of a loss are corrected for their number (Holm), so that a judge that is nowhere
    worse is refused in at most 5 % of all cases. The exit status is 0 if B is shown to be no worse
    on all items and worse on no part, 1 if it is worse somewhere, 3 if there are not enough rows.

    Before a new judge replaces an old one: custos compare runs/old/eval runs/new/eval --gate

    Example: custos compare runs/plain/eval runs/focal/eval --json comparison.json

    Options:
        a: Evaluation folder of judge A.
        b: Evaluation folder of judge B.
        json_out: Write the comparison to this file too.
        gated: Exit with status 1 if B is significantly worse than A, on all items or on a data set,
            a label of people or a slice of the report; with 3 if the items are too few to show that
            B is no worse.
        margin: Take a loss of accuracy below this for none, with --gate.
        min_common: Refuse to compare on fewer shared items than this.
        seed: Seed of the bootstrap.
    """
    evaluated = [folder / name for folder in (a, b) for name in FILES]
    claim_json(json_out, ("n_common", "metrics"), sources=evaluated)
    comparison = compare_evaluations(a, b, min_common=min_common, seed=seed)
    if json_out is not None:
        write_json(json_out, comparison)
    typer.echo(render_comparison(comparison))
    if not gated:
        return
    checks = gate(a, b, margin=margin, min_common=min_common)
    typer.echo()
    for check in checks:
        typer.echo(str(check))
    outcome = gate_outcome(checks)
    num_worse = sum(check.outcome == "worse" for check in checks)
    said = {
        "worse": f"B is significantly worse in {num_worse} of {len(checks)} checks",
        "not enough rows": "not enough rows: B is nowhere significantly worse, but may lose "
        f"{-checks[0].lowest:.3f} on all items, which is not below the margin of {margin:g}; "
        f"these rows would show a loss of {checks[0].visible:.3f}",
        "no worse": f"B is no worse: it loses less than {margin:g} on all items, and is "
        f"significantly worse in none of {len(checks)} checks",
    }
    typer.echo(said[outcome], err=outcome != "no worse")
    raise typer.Exit(STATUS[outcome])


class _Scores(KeptLine):
    """How the judge scored a row."""

    row: int
    logprobs: tuple[float, ...]
    """Log-probabilities of the labels of the row's rubric."""

    @property
    def origin(self) -> Origin:
        return self.row, self.key


@with_groups
def calibrate(
    run: str,
    data: Annotated[
        Path,
        typer.Option(
            help=f"Read labelled examples that nothing was trained on from this {TABLE_FORMATS}."
        ),
    ],
    table_options: TableOptions,
    allow_dropped: AllowDropped = False,
) -> None:
    """Fit the calibration of a judge again, in its folder.

    Training does this by itself. Do it again for confidences that are honest on data of your own,
    or for a judge of an older version that has no thresholds for --risk. The report and the card
    in the folder, which were measured before, are removed: measure the judge again, on other rows
    than these.

    Scores are kept in the folder while the command runs. If it is stopped, the same command
    continues where it stopped.

    Example: custos calibrate runs/mine --data data/mine/cal.jsonl

    Options:
        run: Run folder or shipped judge.
    """
    from evaluation.report.evaluate import grading_order
    from evaluation.report.reliability import read_readme, remove_figures
    from train.finish.grading import Processes, fit_calibrations, rows_to_score, score_rows
    from train.rows.rows import check_readable

    in_table = with_only_task(table_options.read(), data, trained_tasks([run]))
    examples = read_examples(data, in_table, allow_dropped, check_pictures=True)
    judge = Judge.load(run, ignore_misfit=True)
    if judge.folder is None:
        raise CustosError(f"{run}: an untrained judge has no folder for a calibration")
    read_readme(judge.folder)  # one that cannot be read is an error now, not after the scoring
    earlier, judge.calibration = judge.calibration, None
    resolved = []
    for example in examples:
        with errors_at(f"{data}: row '{example.id}'"):
            resolved.append(judge.resolve(example))
            get_task(example.task).target(resolved[-1])
    rows = rows_to_score(judge, resolved, Processes())
    if not rows:
        raise CustosError(f"{data}: no rubric can be calibrated; see above")
    check_readable(rows, judge.encoder, str(data))
    path = judge.folder / CALIBRATION_FILE
    with locked(path):
        kept = KeptFile(path.with_name(f"{path.name}.partial"), _Scores)

        def origin(index: int) -> Origin:
            return index, request_key(judge, rows[index].request())

        def score(indices: Sequence[int]) -> Iterator[_Scores]:
            scores = score_rows(judge, [rows[index] for index in indices])
            for index, of_labels in zip(indices, scores, strict=True):
                row, key = origin(index)
                yield _Scores(row=row, key=key, logprobs=tuple(of_labels))

        with counting_bar("calibrating", len(rows)) as show:
            for num_scored in kept.fill(lambda: grading_order(rows), origin, score, batch=CHUNK):
                show(num_scored)
        logprobs = [line.logprobs for line in sorted(kept.lines(), key=lambda line: line.row)]
        fitted = fit_calibrations(judge, rows, logprobs, Processes())
        is_new = fitted != earlier
        # First, so that no figure stays beside a calibration that it was not measured with.
        removed = remove_figures(judge.folder, FIGURES, data.name) if is_new else []
        write_json(path, fitted.model_dump())
        kept.remove()
    for key, calibration in fitted.rubrics.items():
        held_out = fitted.held_out.get(key)
        questions = len(held_out.confidence) if held_out else 0
        typer.echo(
            f"{key}: {calibration.n} rows, {questions} questions; negative log-likelihood "
            f"{calibration.nll_before:.3f} before, {calibration.nll_after:.3f} after"
        )
    typer.echo(f"calibration: {path}")
    if removed:
        typer.echo(f"removed, as measured before: {', '.join(removed)}")
