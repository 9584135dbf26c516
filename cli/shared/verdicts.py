"""The output of the verbs that grade: files and tables of verdicts, and a summary of them.

A table has the columns of the user's table, and the verdict on every row beside them.
"""

from __future__ import annotations

import itertools
import json
import shlex
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cli.shared.outputs import claim
from clients.kept_verdicts import KeptVerdict
from data_prep.tables.labels import in_own_words
from data_prep.tables.source import Table
from judging.errors import CustosError, system_errors_at
from judging.files.atomic import atomic_path
from judging.files.csv_rows import SPREADSHEETS, open_spreadsheet, row_location, write_spreadsheet
from judging.files.kept_work import KeptFile
from judging.files.parquet import named_columns
from judging.files.records import read_rows, write_records
from judging.files.values import holds_part
from judging.judge import Judge
from judging.judge.notes import is_in_untrained_mode, untrained_mode_caution
from judging.log_lines import one_line
from judging.progress import in_batches
from judging.types import FAILURES, Verdict, parse_record, score_of
from judging.verdicts.calibration import NO_THRESHOLD

if TYPE_CHECKING:
    from clients.kept_verdicts import Grader

TABLE_SUFFIXES = (*SPREADSHEETS, ".parquet")
VERDICT_COLUMNS = (
    *("status", "label", "error_type", "confidence", "score", "needs_review", "critique"),
    *("message", "judge_name", "rubric", "judge"),
    *("stated_confidence", "label_mass", "posterior", "truncated_input"),
)
"""Fields of a verdict that are columns; the whole verdict is in JSONL files.

The cell of ``needs_review`` is true where there is no label, and empty where nothing was checked.
"""
_ALWAYS = ("status", "needs_review", "judge_name", "rubric")
"""Columns by which a table of verdicts is known."""
_NUMBERS = ("confidence", "score", "stated_confidence", "label_mass")
_FLAGS = ("needs_review", "truncated_input")
_PROBABILITY = "p_"
_PREFIX = "custos_"
_INT64 = 2**63
_EXACT = 2**53
ROWS_AT_ONCE = 10_000


class GradedTable:
    """A user's table with one verdict for each row, as it will be written."""

    def __init__(self, source: Table, kept: KeptFile[KeptVerdict]) -> None:
        self.source, self.kept = source, kept
        labels = dict.fromkeys(name for line in kept.lines() for name in line.verdict.probabilities)
        self.labels = tuple(labels)
        """Labels that have a probability in some verdict."""
        known: Sequence[str] = ()
        if source.is_spreadsheet:
            known = source.sheet.columns
        elif source.is_parquet:
            known = table_columns(source.path)
        self.kinds: dict[str, set[type]] = {name: set() for name in known}
        """Columns of the user, in their order, each with the types of its cells if they matter."""
        if not self.kinds:
            for cells, _ in self.rows():
                for name, value in cells.items():
                    self.kinds.setdefault(name, set()).add(_kind(value))

    def rows(self) -> Iterator[tuple[Mapping[str, Any], KeptVerdict]]:
        """Yield the cells of every row of the source, with the verdict on it."""
        lines = self.kept.lines()
        for number, row in self.source.rows():
            line = next(lines, None)
            if line is None or line.row != number:
                raise CustosError(f"{self.source.name}: the rows have changed while graded")
            yield (row if isinstance(row, dict) else {}), line

    @property
    def columns(self) -> list[str]:
        """Name all columns; ours get a prefix where the user has such a column."""
        columns = list(self.kinds)
        for name in (*VERDICT_COLUMNS, *(_PROBABILITY + label for label in self.labels)):
            while name in columns:
                name = _PREFIX + name
            columns.append(name)
        return columns

    def cells(self) -> Iterator[list[Any]]:
        """Yield the cells of every row, in the order of ``columns``."""
        for cells, line in self.rows():
            fields = {**dict(line.verdict), "needs_review": line.needs_person}
            yield [
                *(cells.get(name) for name in self.kinds),
                *(fields[name] for name in VERDICT_COLUMNS),
                *(line.verdict.probabilities.get(label) for label in self.labels),
            ]


def read_verdict_table(path: Path) -> Iterator[tuple[Mapping[str, Any], Verdict]]:
    """Yield the cells of every row of a table that ``write_verdicts`` wrote, with its verdict.

    A verdict has the fields that are columns. It has no ``id`` and no ``row``. Raises
    ``CustosError`` if the file cannot be read, or holds no verdicts.
    """
    rows = read_rows(path)
    first = next(rows, None)  # says what is wrong with a file that cannot be read
    columns, num = table_columns(path), len(VERDICT_COLUMNS)
    # Ours stand together, behind the user's columns, of which some may be called alike.
    for start in reversed(range(len(columns) - num + 1)):
        column_by_field = dict(zip(VERDICT_COLUMNS, columns[start : start + num], strict=True))
        if all(
            column.endswith(name) and not column.removesuffix(name).replace(_PREFIX, "")
            for name, column in column_by_field.items()
        ):
            break
    else:
        raise CustosError(f"{path}: has not the columns that custos grade writes")
    for number, row in itertools.chain([] if first is None else [first], rows):
        if isinstance(row, CustosError):
            raise row
        fields = {name: row[column] for name, column in column_by_field.items() if column in row}
        yield row, parse_record(Verdict, fields, row_location(path, number))


def table_columns(path: Path) -> Sequence[str]:
    """Read the names of the columns of a spreadsheet or a Parquet file."""
    if path.suffix != ".parquet":
        return open_spreadsheet(path).columns
    import pyarrow.parquet as pq

    names: list[str] = pq.read_schema(path).names
    return names


class _LongInt:
    """Kind of a whole number that a column of floats would round."""


def _kind(value: Any) -> type:
    """Find the type of a cell; a number too large for a column of numbers counts as text."""
    if type(value) is int and not -_INT64 <= value < _INT64:
        return str
    if type(value) is int and not -_EXACT <= value <= _EXACT:
        return _LongInt
    return type(value)


def cell_text(value: Any) -> Any:
    """Format a cell for a file of text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=_json_default)
    return str(_json_default(value))


def _json_default(value: Any) -> str:
    if isinstance(value, datetime) and not holds_part(value):  # as pandas stores days
        return value.date().isoformat()
    return f"({len(value)} bytes)" if isinstance(value, bytes) else str(value)


def _write_parquet(out: Path, table: GradedTable) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    float64, string, flag, int64 = pa.float64(), pa.string(), pa.bool_(), pa.int64()
    if table.source.is_parquet:
        schema = pq.read_schema(table.source.path)
        named = named_columns(schema)  # rows hold the names of their numbers
        types = [string if field.name in named else field.type for field in schema]
    else:
        # The first type that holds all values of a column; one without values is of text.
        holds = ((flag, {bool}), (int64, {int, _LongInt}), (float64, {int, float}))
        kinds = (each - {type(None)} for each in table.kinds.values())
        types = [
            next((held for held, by in holds if each and each <= by), string) for each in kinds
        ]
    for name in VERDICT_COLUMNS:
        types.append(flag if name in _FLAGS else float64 if name in _NUMBERS else string)
    types += [float64 for _ in table.labels]
    schema = pa.schema(list(zip(table.columns, types, strict=True)))

    def typed(value: Any, kind: Any) -> Any:
        if value is None or kind != string:
            return value
        return str(cell_text(value)).encode(errors="replace").decode()

    with atomic_path(out) as partial, pq.ParquetWriter(partial, schema) as writer:
        for batch in in_batches(table.cells(), ROWS_AT_ONCE):
            arrays = [
                pa.array([typed(value, kind) for value in column], kind)
                for column, kind in zip(zip(*batch, strict=True), types, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


OUT_SUFFIXES = (".jsonl", *TABLE_SUFFIXES)


def check_verdict_files(source: Path, out: Path, table: Path | None = None) -> None:
    """Check the names of ``--in``, ``--out`` and ``--csv`` before anything is read."""
    for option, path in (("--in", source), ("--out", out)):
        if str(path) in ("-", "/dev/stdin", "/dev/stdout"):
            raise CustosError(
                f"{option} '{path}': name a file; a run that is stopped goes on from its files, "
                "so pipes are not used"
            )
    outputs = [("--out", out, OUT_SUFFIXES)]
    outputs += [("--csv", table, TABLE_SUFFIXES)] if table else []
    for option, output, suffixes in outputs:
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
        columns = table_columns(path) if path.is_file() else ()
        return all(name in columns or _PREFIX + name in columns for name in _ALWAYS)
    except (CustosError, ValueError):  # neither JSON, nor a table, nor Parquet
        return False


def write_verdicts(out: Path, source: Table, kept: KeptFile[KeptVerdict]) -> None:
    """Write verdicts as JSONL or a table, to a file that appears only when it is complete.

    In spreadsheets nested values are JSON, and no text is a formula. A CSV file has the delimiter
    of the source if that is a CSV file too, as Excel differs by country. Parquet files keep types:
    those of the source if it is Parquet too. Raises ``CustosError`` if the rows of the source are
    not those of the verdicts any more; ``OSError``, which names the file, if it cannot be written.
    """
    if out.suffix == ".jsonl":
        verdicts = (line.verdict.model_copy(update={"row": line.row}) for line in kept.lines())
        write_records(out, verdicts)
        return
    table = GradedTable(source, kept)
    if out.suffix == ".parquet":
        _write_parquet(out, table)
    else:
        rows = (list(map(cell_text, row)) for row in table.cells())
        both_csv = out.suffix == source.path.suffix == ".csv"
        write_spreadsheet(out, table.columns, rows, source.delimiter if both_csv else None)


class JudgedRates:
    """Shares of labels, in a mapping's words, by judge and rubric; the best one's is corrected."""

    def __init__(self, labels: Mapping[str, str] | None = None) -> None:
        self._labels = labels or {}
        self._by_judge: dict[tuple[str, str], tuple[list[str], array[int], array[int]]] = {}
        """Scores of the rubric, best first; each verdict's, by its place there; its question."""

    def add(self, verdict: Verdict, question: int) -> None:
        """Count a verdict that has a label; rows on the same question share a number."""
        if verdict.label is None:
            return
        key = verdict.judge_name, verdict.rubric
        if key not in self._by_judge:
            from evaluation.correction.judged import ranked_scores

            self._by_judge[key] = ranked_scores(verdict.rubric), array("b"), array("q")
        scores, places, questions = self._by_judge[key]
        if scores:
            label = score_of(verdict.label)
            places.append(scores.index(label) if label in scores else len(scores))
            questions.append(question)

    def lines(self, grader: Grader | None = None) -> Iterator[str]:
        """Yield a sentence for each judge and rubric; what the grader's own folder says counts."""
        import numpy as np

        from evaluation.correction.judged import errors_in_folder, errors_of_judge, judged_rate
        from evaluation.report.sentences import judged_text
        from evaluation.report.text import with_interval

        name, folder = (grader.name, grader.folder) if isinstance(grader, Judge) else ("", None)
        by_folder = errors_in_folder(folder)
        for (judge, rubric), (scores, places, questions) in self._by_judge.items():
            words = [in_own_words(score, self._labels) for score in scores]
            errors = (by_folder if judge == name else {}) or errors_of_judge(judge)
            rates = [
                judged_rate(
                    (np.array(places) == place).astype(np.float64),
                    np.array(questions),
                    [rubric] * len(places),
                    {} if place else errors,
                )
                for place in range(len(scores))
            ]
            # A service may name its rubrics as it likes.
            if rates:
                text = f"share of {words[0]}, {rubric}: {judged_text(rates[0].as_json())}"
                yield one_line(text)
            if len(rates) > 2:
                raw = [with_interval(rate.raw._asdict()) for rate in rates]
                shares = ", ".join(map(" ".join, zip(words, raw, strict=True)))
                yield one_line(f"shares of all labels, {rubric}: as judged {shares}")


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
        self.num_without_threshold = 0
        """Number of verdicts that need review as no confidence is known to suffice for the risk."""
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
            self.num_without_threshold += NO_THRESHOLD in (verdict.message or "")
            tally = self.tallies.setdefault((verdict.judge_name, verdict.rubric), JudgeTally())
            tally.labels[verdict.label or verdict.status] += 1
            tally.num_to_review += verdict.needs_review
        self.may_state_risk &= not states_risk

    def add(
        self, statuses: Mapping[str, int], tallies: Iterable[tuple[str, str, JudgeTally]]
    ) -> None:
        """Add the counts of another file: by status, and by judge and rubric."""
        self.statuses.update(statuses)
        for judge, rubric, counted in tallies:
            tally = self.tallies.setdefault((judge, rubric), JudgeTally())
            tally.labels.update(counted.labels)
            tally.num_to_review += counted.num_to_review

    def show(self, written: str, rates: Iterable[str] = ()) -> None:
        """Print how many rows were graded, by status, and sentences for each judge and rubric."""
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
        failed = f"{sum(counts.values())} of {self.statuses.total()} rows have no verdict"
        where = f"the first: row {self.first_failure.row}: {first}"
        said = [f"{source}: {failed}: {counted}", where]
        if counts["invalid"]:
            said.append(
                "mend the invalid rows, or the option that their message is about, and give the "
                "same command again: it grades only these rows"
            )
        if counts["judge_error"]:
            said.append("--retry-failed asks again for the rows with judge_error")
        return "; ".join(said)

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
        if self.num_without_threshold:
            number, total = self.num_without_threshold, self.statuses.total()
            typer.echo(
                f"note: {number:,} of {total:,} verdicts could not be kept at the risk, as "
                f"{NO_THRESHOLD} it: all of them need review; custos calibrate RUN --data FILE "
                "gives a judge rows to find one on",
                err=True,
            )
        if self.may_state_risk:
            files = [str(outputs[0]), "--in", source, *mapping, "--out", "review.csv"]
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
