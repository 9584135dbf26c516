"""``custos review``: the rows that people should label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import TABLE_FORMATS, TableOptions
from cli.shared.output_folders import output_file
from cli.shared.verdicts.judged_rates import JudgedRates
from cli.shared.verdicts.review_file import (
    check_no_labels,
    count_by_kind,
    read_review_rows,
    write_review_file,
)
from judging import CustosError
from judging.files.spreadsheets import DELIMITER_BY_SUFFIX


@with_groups
def review(
    verdicts: Annotated[
        list[Path],
        typer.Argument(
            help="Files of custos grade (JSONL, CSV, TSV or Parquet), one for each judge."
        ),
    ],
    source: Annotated[Path, typer.Option("--in", help=f"The {TABLE_FORMATS}, that was graded.")],
    out: Annotated[
        Path,
        typer.Option(
            "--csv",
            callback=output_file,
            help="Write the rows to this CSV or TSV file, with an empty column 'label'.",
        ),
    ],
    table_options: TableOptions,
) -> None:
    """Write the rows that people should label: verdicts that need review, and rows without one.

    With verdicts of several judges, rows on which their labels differ are among them. A person
    fills in the column label. Then custos eval and custos prep table read the file as it is;
    --allow-dropped leaves out the rows that are still empty. Your own columns are kept, one that is
    called as ours with own_ before its name.

    Example: custos review verdicts.jsonl --in answers.csv --mapping mapping.yaml --csv review.csv
    """
    if out.suffix not in DELIMITER_BY_SUFFIX:
        raise CustosError(f"--csv '{out}': expected a file ending in .csv or .tsv")
    check_no_labels(out)
    in_table = table_options.read()
    rows = list(read_review_rows(verdicts, source, in_table))
    to_review = [row for row in rows if row.why[0]]
    renamed = write_review_file(out, to_review)
    counts = f": {kinds}" if (kinds := count_by_kind(to_review)) else ""
    typer.echo(f"{len(to_review)} of {len(rows)} rows are for people{counts}; written to {out}")
    rates = JudgedRates()
    for row in rows:
        for verdict in row.verdicts:
            rates.add(verdict, hash(row.fields["question"]))
    for line in rates.lines():
        typer.echo(line)
    if renamed:
        names = ", ".join(f"{name} as {new}" for name, new in renamed.items())
        typer.echo(f"columns of yours that are called as ours are kept under other names: {names}")
