"""``custos attack``: how easily a judge is fooled."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from cli.shared.judges import EngineOptions
from cli.shared.measuring import Batch, RetryFailed, fill_showing, read_examples
from cli.shared.options import AllowFailed, command_line, with_groups
from cli.shared.outputs import OutFolder, claim, own
from cli.shared.screen import counting_bar, wide_console
from cli.shared.tables import TABLE_FORMATS, AllowDropped, TableOptions, file_digest
from clients.kept_verdicts import KeptVerdict, partial_file, request_key
from evaluation.attacks.rows import SearchResult, SuffixSearch
from evaluation.report.text import number
from judging.errors import FieldError, errors_at
from judging.files.kept_work import KeptFile, KeptLine, Origin, locked
from judging.log_lines import one_line
from judging.types import JudgeRequest, LabelledExample, Verdict


class KeptSearch(KeptLine):
    """A line of the file: what became of one wrong answer."""

    number: int
    result: SearchResult

    @property
    def origin(self) -> Origin:
        """Identify a line by the number of the answer and the line's key."""
        return self.number, self.key


@with_groups
def attack(
    run: str,
    data: Annotated[
        Path, typer.Option(help=f"Read labelled quick-score rows from this {TABLE_FORMATS}.")
    ],
    out: OutFolder,
    family: list[str] | None = None,
    limit: Annotated[int | None, typer.Option(min=1)] = None,
    wordings: Annotated[int, typer.Option(min=1)] = 1,
    stability: bool = True,
    search: Annotated[int, typer.Option(min=0)] = 0,
    pool: Annotated[int, typer.Option(min=1)] = 1000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
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

    Options:
        run: Run folder, shipped judge, a backbone for a zero-shot judge, or the URL of a custos
            serve.
        out: Write the report and all rows to this folder.
        family: Attack with this family only. May be repeated. Default: all of them.
        limit: Take this many questions, drawn by --seed. Default: all.
        wordings: Draw this many wordings of each family for a question.
        stability: Also check that changes that mean nothing keep the label.
        search: Search for suffixes that turn this many wrong answers.
        pool: Try this many suffixes for each of these answers.
        seed: Seed of all that is drawn.
    """
    from evaluation.attacks.run import (
        JSON,
        MARKDOWN,
        PAGE,
        ROWS,
        AttackPlan,
        attack_caution,
        write_attacks,
    )
    from evaluation.outcomes import NothingScored

    rows, alone = partial_file(out / ROWS), partial_file(out / "alone.jsonl")

    def is_own(folder: Path) -> bool:
        return rows.path.exists() or own(("attacks", "command"), JSON)(folder)

    claim(out, is_own, names=(JSON, MARKDOWN, PAGE, ROWS), sources=[data])
    in_table = table_options.read()
    examples = read_examples(data, in_table, allow_dropped, check_pictures=False)
    with errors_at(str(data)):
        plan = AttackPlan.of(
            examples,
            families=family or (),
            limit=limit,
            wordings=wordings,
            stability=stability,
            search=search,
            pool=pool,
            seed=seed,
        )
    judge = engine_options.load_judge_or_service(run)
    errors = []
    for request in plan.requests:
        try:
            judge.fingerprint(request)
            break
        except FieldError as error:
            errors.append(error)
    else:
        raise errors[0]

    def grade(
        file: KeptFile[KeptVerdict], requests: list[JudgeRequest], batch: int
    ) -> list[Verdict]:
        if not requests:
            return []
        fill_showing(
            file, judge, lambda: enumerate(requests, 1), len(requests), batch, retry_failed
        )
        return [line.verdict for line in file.lines()]

    with locked(out / "attacks"):
        verdicts = grade(rows, plan.requests, batch)
        verdicts_alone = grade(alone, plan.alone, 1)
        kept_search = KeptFile(out / "search.jsonl.partial", KeptSearch)
        suffix_search = SuffixSearch(judge.grade, plan.suffixes)
        # What earlier results have taught decides which suffixes come first.
        for line in kept_search.lines():
            suffix_search.learn(line.result)
        if plan.searched:
            pool_digest = hashlib.sha256("\0".join(plan.suffixes).encode()).hexdigest()

            def origin(numbered: tuple[int, LabelledExample]) -> Origin:
                number, example = numbered
                key = f"{request_key(judge, example.request())}/{pool_digest}"
                return number, hashlib.sha256(key.encode()).hexdigest()

            def work(answers: Sequence[tuple[int, LabelledExample]]) -> Iterator[KeptSearch]:
                for number, example in answers:
                    key, result = origin((number, example))[1], suffix_search.attack(example)
                    yield KeptSearch(number=number, key=key, result=result)

            with counting_bar("searching", len(plan.searched)) as show:
                read = kept_search.fill(lambda: enumerate(plan.searched, 1), origin, work, batch=1)
                for num_done in read:
                    show(num_done)
        searched = [line.result for line in kept_search.lines()]
        try:
            report = plan.report(
                verdicts,
                verdicts_alone,
                searched,
                command=command_line(),
                dataset_sha256=file_digest(data),
            )
        except NothingScored as error:
            typer.echo(one_line(f"error: {data}: {error}"), err=True)
            raise typer.Exit(1) from None
        write_attacks(report, plan.rows, verdicts[: len(plan.rows)], data.name, out)
        num_failed = sum(line.failed for file in (rows, alone) for line in file.lines())
        if not num_failed:
            for file in (rows, alone, kept_search):
                file.remove()
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
    if num_failed and not allow_failed:
        total = len(verdicts) + len(verdicts_alone)
        typer.echo(
            f"error: {num_failed} of {total} rows failed; --retry-failed grades them again",
            err=True,
        )
        raise typer.Exit(1)
