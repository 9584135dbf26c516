"""Files of verdicts: whole ones as JSONL, or the main fields beside the columns of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from cli.shared.verdicts.own_files import check_own_verdicts
from cli.shared.verdicts.tables import TABLE_SUFFIXES, GradedRow, GradedTable, write_table
from clients.kept_verdicts import KeptVerdict
from data_prep.tables.source import Table
from judging import CustosError
from judging.files.kept_work import KeptFile
from judging.files.records import write_records

OUT_SUFFIXES = (".jsonl", *TABLE_SUFFIXES)


def check_verdict_files(source: Path, out: Path, table: Path | None = None) -> None:
    """Check the names of the files before anything is read.

    Args:
        source: File of ``--in``.
        out: File of ``--out``.
        table: File of ``--csv``, if there is one.

    Raises:
        CustosError: If one is a pipe, cannot be written by its ending, or would replace a file that
            holds something else than verdicts.
    """
    for option, path in (("--in", source), ("--out", out)):
        if str(path) in ("-", "/dev/stdin", "/dev/stdout"):
            raise CustosError(
                f"{option} '{path}': name a file; a run that is stopped goes on from its files, "
                "so pipes are not used"
            )
    for option, output, suffixes in (
        ("--out", out, OUT_SUFFIXES),
        ("--csv", table, TABLE_SUFFIXES),
    ):
        if output is None:
            continue
        if output.suffix not in suffixes:
            expected = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
            raise CustosError(f"{option} '{output}': expected a file ending in {expected}")
        check_own_verdicts(option, output)


def write_verdicts(out: Path, source: Table, kept: KeptFile[KeptVerdict]) -> None:
    """Write verdicts to a file that appears only when it is complete.

    Args:
        out: JSONL file of whole verdicts, or a table (see ``cli.shared.verdicts.tables``).
        source: Table that was graded.
        kept: One verdict for each of its rows.

    Raises:
        CustosError: If the rows of the source are not those of the verdicts any more.
        OSError: If the file cannot be written; it names the file.
    """
    if out.suffix == ".jsonl":
        verdicts = (line.verdict.model_copy(update={"row": line.row}) for line in kept.lines())
        write_records(out, verdicts)
    else:
        write_table(out, GradedTable.of_source(source, _graded_rows(source, kept)))


def _graded_rows(source: Table, kept: KeptFile[KeptVerdict]) -> Callable[[], Iterable[GradedRow]]:
    def rows() -> Iterator[GradedRow]:
        lines = kept.lines()
        for number, row in source.rows():
            line = next(lines, None)
            if line is None or line.row != number:
                raise CustosError(f"{source.name}: the rows have changed while they were graded")
            yield (row if isinstance(row, dict) else {}), line

    return rows
