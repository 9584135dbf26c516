"""``custos attack``: how easily a judge is fooled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.shared.attack_search import search_file, search_showing
from cli.shared.command_line import command_line
from cli.shared.grading import Batch, RetryFailed, fill_showing
from cli.shared.labelled_examples import read_examples
from cli.shared.options.engine import EngineOptions
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import TABLE_FORMATS, AllowDropped, TableOptions
from cli.shared.options.output import AllowFailed
from cli.shared.output_folders import check_keeps_sources, check_own_files, output_folder
from cli.shared.tables import wide_console
from clients.kept_verdicts import Grader, KeptVerdict, partial_file
from evaluation.report.markdown import number
from judging import CustosError, JudgeRequest, Verdict
from judging.errors import FieldError
from judging.files.kept_work import KeptFile, locked
from judging.log_lines import one_line

if TYPE_CHECKING:
    from evaluation.attacks.report import AttackReport


@with_groups
def attack(
    run: Annotated[
        str,
        typer.Argument(
            help="Run folder, shipped judge, a backbone for a zero-shot judge, or the URL of a "
            "custos serve."
        ),
    ],
    data: Annotated[
        Path, typer.Option(help=f"Read labelled quick-score rows from this {TABLE_FORMATS}.")
    ],
    out: Annotated[
        Path,
        typer.Option(callback=output_folder, help="Write the report and all rows to this folder."),
    ],
    family: Annotated[
        list[str] | None,
        typer.Option(help="Attack with this family only. May be repeated. Default: all of them."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Take this many questions, drawn by --seed. Default: all."),
    ] = None,
    wordings: Annotated[
        int, typer.Option(min=1, help="Draw this many wordings of each family for a question.")
    ] = 1,
    stability: Annotated[
        bool, typer.Option(help="Also check that changes that mean nothing keep the label.")
    ] = True,
    search: Annotated[
        int,
        typer.Option(min=0, help="Search for suffixes that turn this many wrong answers."),
    ] = 0,
    pool: Annotated[
        int, typer.Option(min=1, help="Try this many suffixes for each of these answers.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is drawn.")] = 0,
    *,
    table_options: TableOptions,
    allow_dropped: AllowDropped = False,
    allow_failed: AllowFailed = False,
    retry_failed: RetryFailed = False,
    batch: Batch = 256,
    engine_options: EngineOptions,
) -> None:
    """Attack a quick-score judge with wrong responses that are made to be called Correct.

    The responses are made from your own questions and references: the reference denied, several
    answers listed, a forged grade, and others. Right responses stand beside them as controls.

    Writes attacks.html, attacks.md, attacks.json and rows.jsonl. Verdicts are kept in OUT while the
    command runs. If it is stopped, the same command continues where it stopped.

    Example: custos attack embedded-qs --data labels.jsonl --limit 100 --out runs/attacks
    """
    from evaluation.attacks.report import JSON, MARKDOWN, PAGE, ROWS, write_attacks
    from evaluation.attacks.run import AttackOptions, AttackPlan
    from evaluation.outcomes import NothingScored
    from judging.fingerprint import file_sha256

    check_keeps_sources(out, (JSON, MARKDOWN, PAGE, ROWS), [data])
    if not partial_file(out / ROWS).path.exists():  # a stopped run of ours goes on
        check_own_files(out, (JSON, MARKDOWN, PAGE, ROWS), JSON, ("attacks", "command"))
    in_table = table_options.read()
    examples = read_examples(data, in_table, allow_dropped, None, seed, check_pictures=False)
    options = AttackOptions(tuple(family or ()), limit, wordings, stability, search, pool, seed)
    try:
        plan = AttackPlan.of(examples, options)
    except CustosError as error:
        raise CustosError(f"{data}: {error}") from None
    judge = engine_options.load_judge_or_service(run)
    _check_judge(judge, plan.requests)
    with locked(out / "attacks"):
        rows, alone = partial_file(out / ROWS), partial_file(out / "alone.jsonl")
        verdicts = _grade(rows, judge, plan.requests, batch, retry_failed)
        verdicts_alone = _grade(alone, judge, plan.alone, 1, retry_failed)
        kept_search = search_file(out / "search.jsonl.partial")
        searched = search_showing(kept_search, judge, plan.searched, plan.suffixes)
        try:
            report = plan.report(
                verdicts,
                verdicts_alone,
                searched,
                command=command_line(),
                dataset_sha256=file_sha256(data) if data.is_file() else None,
            )
        except NothingScored as error:
            typer.echo(one_line(f"error: {data}: {error}"), err=True)
            raise typer.Exit(1) from None
        write_attacks(report, plan.rows, verdicts[: len(plan.rows)], data.name, out)
        num_failed = sum(line.failed for file in (rows, alone) for line in file.lines())
        if not num_failed:
            for file in (rows, alone, kept_search):
                file.remove()
    _show(report, out)
    if num_failed and not allow_failed:
        total = len(verdicts) + len(verdicts_alone)
        typer.echo(
            f"error: {num_failed} of {total} rows failed; --retry-failed grades them again",
            err=True,
        )
        raise typer.Exit(1)


def _check_judge(judge: Grader, requests: list[JudgeRequest]) -> None:
    """Raise ``FieldError`` if a judge takes none of the requests."""
    errors = []
    for request in requests:
        try:
            judge.fingerprint(request)
            return
        except FieldError as error:
            errors.append(error)
    raise errors[0]


def _grade(
    file: KeptFile[KeptVerdict],
    judge: Grader,
    requests: list[JudgeRequest],
    batch: int,
    retry_failed: bool,
) -> list[Verdict]:
    """Return the verdicts on requests, which a file keeps."""
    if not requests:
        return []
    numbered = list(enumerate(requests, 1))
    fill_showing(file, judge, lambda: numbered, len(numbered), batch, retry_failed)
    return [line.verdict for line in file.lines()]


def _show(report: AttackReport, out: Path) -> None:
    """Print one table, a caution if the questions are too few, and where the files are."""
    from rich.table import Table

    from evaluation.attacks.report import attack_caution

    table = Table("", "share", "95 % interval", "at most", "rows")
    parts = report.shares_by_part()
    for title, rates in parts.items():
        table.add_section()
        table.add_row(title)
        for name, rate in rates.items():
            table.add_row(
                f"  {name}",
                number(rate.value),
                f"{number(rate.low)} to {number(rate.high)}",
                number(rate.rule_of_three),
                str(rate.n),
            )
    wide_console().print(table)
    shares = {name: rate for rates in parts.values() for name, rate in rates.items()}
    if caution := attack_caution(report.questions, shares):
        typer.echo(f"caution: {caution}")
    typer.echo(f"\npage: {out / 'attacks.html'}\ntext: {out / 'attacks.md'}")
