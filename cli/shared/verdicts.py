"""The output of the verbs that grade: files of verdicts, and a summary of them."""

from __future__ import annotations

import json
import shlex
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cli.shared.outputs import claim
from cli.shared.verdict_tables import (
    TABLE_SUFFIXES,
    GradedTable,
    has_verdict_columns,
    table_columns,
    write_table,
)
from clients.kept_verdicts import KeptVerdict
from data_prep.tables.source import Table
from judging.errors import CustosError, system_errors_at
from judging.files.kept_work import KeptFile
from judging.files.records import write_records
from judging.judge import Judge
from judging.judge.notes import is_in_untrained_mode, untrained_mode_caution
from judging.log_lines import one_line
from judging.types import FAILURES, Verdict, score_of

if TYPE_CHECKING:
    from clients.kept_verdicts import Grader

OUT_SUFFIXES = (".jsonl", *TABLE_SUFFIXES)


def check_verdict_files(source: Path, out: Path, table: Path | None = None) -> None:
    """Check the names of ``--in``, ``--out`` and ``--csv`` before anything is read."""
    for option, path in (("--in", source), ("--out", out)):
        if str(path) in ("-", "/dev/stdin", "/dev/stdout"):
            raise CustosError(
                f"{option} '{path}': name a file; a run that is stopped goes on from its files, "
                "so pipes are not used"
            )
    outputs = (("--out", out, OUT_SUFFIXES), ("--csv", table, TABLE_SUFFIXES))
    for option, output, suffixes in outputs:
        if output is None:
            continue
        if output.suffix not in suffixes:
            expected = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
            raise CustosError(f"{option} '{output}': expected a file ending in {expected}")
        claim(output, holds_verdicts, option=option)


def holds_verdicts(path: Path) -> bool:
    """Tell whether a file begins as one that ``custos grade`` writes."""
    try:
        if path.suffix == ".jsonl":
            with system_errors_at(path), path.open("rb") as file:
                line = json.loads(file.readline())
            return isinstance(line, dict) and line.keys() >= {"row", "status"}
        return path.is_file() and has_verdict_columns(table_columns(path))
    except (CustosError, ValueError):  # neither JSON, nor a table, nor Parquet
        return False


def write_verdicts(out: Path, source: Table, kept: KeptFile[KeptVerdict]) -> None:
    """Write verdicts as JSONL or a table, to a file that appears only when it is complete.

    Raises ``CustosError`` if the rows of the source are not those of the verdicts any more;
    ``OSError``, which names the file, if it cannot be written.
    """
    if out.suffix == ".jsonl":
        verdicts = (line.verdict.model_copy(update={"row": line.row}) for line in kept.lines())
        write_records(out, verdicts)
    else:
        write_table(out, GradedTable(source, kept))


class JudgedRates:
    """Shares of the best label by judge and rubric, raw and corrected by the judges' errors."""

    def __init__(self) -> None:
        self._by_judge: dict[tuple[str, str], tuple[str, array[int], array[int]] | None] = {}
        """Best label, whether each verdict is it, and its question; ``None`` where none is best."""

    def add(self, verdict: Verdict, question: int) -> None:
        """Count a verdict that has a label; rows on the same question share a number."""
        if verdict.label is None:
            return
        key = verdict.judge_name, verdict.rubric
        if key not in self._by_judge:
            from evaluation.correction.judged import best_label

            best = best_label(verdict.rubric)
            self._by_judge[key] = None if best is None else (best, array("b"), array("q"))
        if (verdicts := self._by_judge[key]) is not None:
            best, hits, questions = verdicts
            hits.append(score_of(verdict.label) == best)
            questions.append(question)

    def lines(self, grader: Grader | None = None) -> Iterator[str]:
        """Yield a sentence for each judge and rubric; what the grader's own folder says counts."""
        import numpy as np

        from evaluation.correction.judged import errors_in_folder, errors_of_judge, judged_rate
        from evaluation.report.markdown import judged_text

        name, folder = (grader.name, grader.folder) if isinstance(grader, Judge) else ("", None)
        by_folder = errors_in_folder(folder)
        for (judge, rubric), verdicts in self._by_judge.items():
            if verdicts is None:
                continue
            best, hits, questions = verdicts
            errors = (by_folder if judge == name else {}) or errors_of_judge(judge)
            rate = judged_rate(
                np.array(hits, np.float64), np.array(questions), [rubric] * len(hits), errors
            )
            text = f"share of {best}, {rubric}: {judged_text(rate.as_json())}"
            yield one_line(text)  # a service may name its rubrics as it likes


@dataclass
class JudgeTally:
    """Counts of the verdicts of one judge under one rubric."""

    labels: Counter[str] = field(default_factory=Counter)
    """Number of rows by label; by status where there is no label."""
    num_to_review: int = 0


class Summary:
    """Counts of the verdicts on a file."""

    def __init__(self, lines: Iterable[KeptVerdict]) -> None:
        self.statuses: Counter[str] = Counter()
        self.tallies: dict[tuple[str, str], JudgeTally] = {}
        """By the name of the judge and the rubric."""
        self.first_failure: KeptVerdict | None = None
        self.num_in_untrained_mode = 0
        """Number of verdicts in a mode that the judge was not trained for."""
        self.may_state_risk = False
        """Whether no request stated a risk, and a verdict has a confidence to compare with one."""
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

    def show(self, written: str, rates: Iterable[str] = ()) -> None:
        """Print how many rows were graded, by status, and a sentence for each judge and rubric.

        ``rates`` are sentences of :class:`JudgedRates`.
        """
        counts = _counted(self.statuses)
        typer.echo(f"{self.statuses.total()} rows graded ({counts or 'none'}): {written}")
        for (judge, rubric), tally in self.tallies.items():
            under = f" under {rubric}" if rubric else ""
            review = f"; {tally.num_to_review} need review" if tally.num_to_review else ""
            graded = f"{judge or 'the judge'} graded {tally.labels.total()}{under}"
            typer.echo(f"{graded}: {_counted(tally.labels)}{review}")
        for line in rates:
            typer.echo(line)

    def failure(self, source: str) -> str | None:
        """Say what failed and what to do about it on one line; ``None`` if nothing failed."""
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

    def end(
        self,
        source: str,
        outputs: Sequence[Path],
        rates: Iterable[str],
        mapping: Sequence[str],
        allow_failed: bool,
    ) -> None:
        """Print everything; exit with status 1 if rows failed, unless this is allowed.

        ``mapping`` are the options, as they are typed, that say which columns ``source`` has.
        """
        self.show(" and ".join(map(str, outputs)), rates)
        if self.num_in_untrained_mode:
            caution = untrained_mode_caution(self.num_in_untrained_mode, self.statuses.total())
            typer.echo(f"caution: {caution}", err=True)
        if self.may_state_risk:
            files = [str(outputs[0]), "--in", source, *mapping, "--csv", "review.csv"]
            review = shlex.join(["custos", "review", *files])
            typer.echo(f"rows for people: grade with --risk .05, then {review}", err=True)
        fail_unless_allowed([text] if (text := self.failure(source)) else [], allow_failed)


def fail_unless_allowed(failures: Sequence[str], allow_failed: bool) -> None:
    """Print what failed; exit with status 1 if something did, unless this is allowed."""
    for failure in failures:
        typer.echo(failure if allow_failed else f"error: {failure}", err=True)
    if failures and not allow_failed:
        raise typer.Exit(1)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
