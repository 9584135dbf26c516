"""The end of a grading run: rows by judge, and the rows that have no verdict."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import typer

from clients.kept_verdicts import KeptVerdict
from judging.judge.notes import is_in_untrained_mode, untrained_mode_caution
from judging.log_lines import one_line
from judging.types import FAILURES


@dataclass
class JudgeTally:
    """Counts of the verdicts of one judge under one rubric."""

    labels: Counter[str] = field(default_factory=Counter)
    """Number of rows by label; by status where there is no label."""
    num_to_review: int = 0

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {label}" for label, count in self.labels.most_common())
        return f"{counts}; {self.num_to_review} need review" if self.num_to_review else counts


class Summary:
    """Counts of the verdicts on a file.

    Args:
        lines: The verdicts.
    """

    def __init__(self, lines: Iterable[KeptVerdict]) -> None:
        self.statuses: Counter[str] = Counter()
        self.tallies: dict[tuple[str, str], JudgeTally] = {}
        self.first_failure: KeptVerdict | None = None
        self.num_in_untrained_mode = 0
        """Number of verdicts in a mode that the judge was not trained for."""
        self.may_state_risk = False
        """Whether no request stated a risk, and a verdict has a confidence to compare with one."""
        self.rates: Sequence[str] = ()
        """Sentences on the judged rates (:class:`cli.shared.verdicts.judged_rates.JudgedRates`)."""
        states_risk = False
        for line in lines:
            verdict = line.verdict
            self.statuses[verdict.status] += 1
            if verdict.status in FAILURES:
                self.first_failure = self.first_failure or line
                continue
            self.num_in_untrained_mode += is_in_untrained_mode(verdict)
            self.may_state_risk |= verdict.confidence is not None
            states_risk |= line.risk is not None
            tally = self.tallies.setdefault((verdict.judge_name, verdict.rubric), JudgeTally())
            tally.labels[verdict.label or verdict.status] += 1
            tally.num_to_review += verdict.needs_review
        self.may_state_risk &= not states_risk

    def judge_lines(self) -> Iterator[str]:
        """Yield one sentence for each judge and rubric."""
        for (judge, rubric), tally in self.tallies.items():
            under = f" under {rubric}" if rubric else ""
            yield f"{judge or 'the judge'} graded {tally.labels.total()}{under}: {tally}"

    def failure(self, source: Path) -> str | None:
        """Return what failed and what to do about it on one line; ``None`` if nothing failed."""
        if self.first_failure is None:
            return None
        counts = {status: self.statuses[status] for status in sorted(FAILURES)}
        counted = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        message = self.first_failure.verdict.message or "no message"
        first = one_line(" ".join(message.split()))
        advice = []
        if counts["invalid"]:
            advice.append(
                "mend the invalid rows, or the option that their message is about, and give the "
                "same command again: it grades only these rows"
            )
        if counts["judge_error"]:
            advice.append("--retry-failed asks again for the rows with judge_error")
        failed = f"{sum(counts.values())} of {self.statuses.total()} rows have no verdict"
        where = f"the first: row {self.first_failure.row}: {first}"
        return "; ".join([f"{source}: {failed}: {counted}", where, *advice])


def end_with(
    summary: Summary,
    source: Path,
    outputs: Sequence[Path],
    mapping: Sequence[str],
    allow_failed: bool,
) -> None:
    """Print the summary; exit with status 1 if rows failed, unless this is allowed.

    Args:
        summary: Counts of the verdicts.
        source: The table that was graded.
        outputs: Files of its verdicts.
        mapping: Options that say which columns it has, as they are typed.
        allow_failed: Whether failed rows are no failure of the command.
    """
    counts = ", ".join(f"{count} {status}" for status, count in summary.statuses.most_common())
    written = " and ".join(map(str, outputs))
    total = summary.statuses.total()
    typer.echo(f"{total} rows graded ({counts or 'none'}): {written}")
    for line in (*summary.judge_lines(), *summary.rates):
        typer.echo(line)
    if summary.num_in_untrained_mode:
        typer.echo(
            f"caution: {untrained_mode_caution(summary.num_in_untrained_mode, total)}", err=True
        )
    if summary.may_state_risk:
        files = [str(outputs[0]), "--in", str(source), *mapping, "--csv", "review.csv"]
        review = shlex.join(["custos", "review", *files])
        typer.echo(f"rows for people: grade with --risk .05, then {review}", err=True)
    if (failure := summary.failure(source)) is None:
        return
    typer.echo(failure if allow_failed else f"error: {failure}", err=True)
    if not allow_failed:
        raise typer.Exit(1)
