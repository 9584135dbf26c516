"""``custos review``: the rows that people should label, and what their labels say of all rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from cli.shared.columns import in_columns
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import TABLE_FORMATS, TableOptions
from cli.shared.output_folders import output_file
from cli.shared.verdicts.judged_rates import JudgedRates
from cli.shared.verdicts.review_file import (
    ReviewRow,
    check_no_labels,
    count_by_kind,
    draw_review_rows,
    plain_id,
    read_review_rows,
    write_review_file,
)
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow, read_table
from evaluation.correction.scores import SAMPLING_PROBABILITY, UnknownSampling, corrected_rate
from evaluation.declared_labels import label_set
from evaluation.intervals import number_clusters
from evaluation.outcomes import full_label
from evaluation.report.markdown import with_interval
from judging import CustosError
from judging.errors import FieldError
from judging.files.csv_rows import DELIMITER_BY_SUFFIX
from judging.types import LabelledExample, Verdict

if TYPE_CHECKING:
    from evaluation.intervals import Floats, Mask


@with_groups
def review(
    verdicts: Annotated[
        list[Path],
        typer.Argument(
            help="Files of custos grade (JSONL, CSV, TSV or Parquet), one for each judge."
        ),
    ],
    source: Annotated[Path, typer.Option("--in", help=f"The {TABLE_FORMATS}, that was graded.")],
    table_options: TableOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            callback=output_file,
            help="Write the rows to this CSV or TSV file, with an empty column 'label'. Default: "
            "--estimate is given.",
        ),
    ] = None,
    num_rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            min=1,
            help="Draw so many rows by chance, up to half of them from those that need review and "
            "the others likelier the less sure the judge is, with the probability of each. "
            "Default: all rows that need review and no others, whose labels say nothing of the "
            "rest.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Beside --rows, draw as many rows of each value of this column. Default: of all "
            "rows together."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
    estimate: Annotated[
        Path | None,
        typer.Option(
            help="Read a file of --rows that people labelled, and print what they would say of all "
            "rows, with intervals. Default: write such a file."
        ),
    ] = None,
) -> None:
    """Write the rows that people should label: verdicts that need review, and rows without one.

    With verdicts of several judges, rows on which their labels differ are among them. A person
    fills in the column label. Then custos eval and custos prep table read the file as it is;
    --allow-dropped leaves out the rows that are still empty. Your own columns are kept, one that is
    called as ours with own_ before its name.

    Example: custos review verdicts.jsonl --in answers.csv --mapping mapping.yaml --csv review.csv

    Example: custos review verdicts.jsonl --in answers.csv --rows 200 --by model --csv review.csv

    Example: custos review verdicts.jsonl --in answers.csv --estimate review.csv
    """
    if (out is None) == (estimate is None):
        raise CustosError("give either --csv FILE to write rows, or --estimate FILE to read labels")
    in_table = table_options.read()
    if estimate is not None:
        rows = list(read_review_rows(verdicts, source, in_table))
        for line in _estimates(rows, estimate, in_table):
            typer.echo(line)
        return
    assert out is not None
    if out.suffix not in DELIMITER_BY_SUFFIX:
        raise CustosError(f"--csv '{out}': expected a file ending in .csv or .tsv")
    check_no_labels(out)
    rows = list(read_review_rows(verdicts, source, in_table))
    if num_rows is None:
        to_review = [row for row in rows if row.why[0]]
    else:
        to_review = draw_review_rows(rows, num_rows, by, seed)
    renamed = write_review_file(out, to_review)
    counts = f": {kinds}" if (kinds := count_by_kind(to_review)) else ""
    typer.echo(f"{len(to_review)} of {len(rows)} rows are for people{counts}; written to {out}")
    rates = JudgedRates()
    for row in rows:
        for verdict in row.verdicts:
            rates.add(verdict, hash(row.question))
    for line in rates.lines():
        typer.echo(line)
    if renamed:
        names = ", ".join(f"{name} as {new}" for name, new in renamed.items())
        typer.echo(f"columns of yours that are called as ours are kept under other names: {names}")


def _estimates(rows: Sequence[ReviewRow], path: Path, in_table: TableMapping) -> Iterator[str]:
    """Yield, for each judge, the shares of labels that people would give all rows, line by line.

    Args:
        rows: All rows of the table, with the verdicts of each judge.
        path: Review file in which people labelled some of them.
        in_table: Mapping of the table, whose labels the people may have used.

    Raises:
        CustosError: If a label is not declared or on another row, or nobody knows how its row was
            drawn.
    """
    examples, num_open = _labelled(path, in_table)
    index = {plain_id(str(row.fields["id"])): number for number, row in enumerate(rows)}
    if len(index) < len(rows):
        raise CustosError("rows share an id: labels cannot be told apart; give every row its own")
    human: list[str | None] = [None] * len(rows)
    probabilities = np.full(len(rows), np.nan)
    for example in examples:
        number = index.get(plain_id(example.id))
        if number is None:
            raise FieldError("id", f"no row '{example.id}' in the table that was graded", str(path))
        if human[number] is not None:
            fault = f"two labelled rows have the id '{example.id}'; leave one of them"
            raise FieldError("id", fault, str(path))
        human[number] = full_label(example)
        probabilities[number] = example.sampling_probability or np.nan
    unknown = next((e.id for e in examples if e.sampling_probability is None), None)
    if unknown is not None and not np.isnan(probabilities).all():
        fault = f"row '{unknown}' has a label and no probability; others have one"
        raise FieldError(SAMPLING_PROBABILITY, fault, str(path))
    questions = number_clusters([row.question for row in rows])
    for judge in range(len(rows[0].verdicts)):
        verdicts = [row.verdicts[judge] for row in rows]
        name = next(filter(None, (verdict.judge_name for verdict in verdicts)), "judge")
        yield (
            f"{name}: {len(examples):,} of {len(rows):,} rows on {questions.max() + 1:,} questions "
            "are labelled"
        )
        columns = ("share of all rows", "people, estimated", "people's labels alone", "judge")
        lines: list[Sequence[str]] = [columns]
        for figure, by_judge, by_people, part in _figures(examples, human, verdicts):
            try:
                found = corrected_rate(
                    by_judge[part],
                    by_people[part],
                    probabilities=None if np.isnan(probabilities).all() else probabilities[part],
                    groups=questions[part],
                )
            except UnknownSampling:
                raise CustosError(
                    f"{path}: its rows were picked as doubtful and not drawn, so that their labels "
                    "say nothing of the others; draw rows with custos review --rows N"
                ) from None
            rates = (found.corrected, found.labelled, found.raw)
            lines.append([figure, *(with_interval(rate._asdict()) for rate in rates)])
        yield from in_columns(lines)
    if num_open:
        yield (
            f"{num_open:,} rows of the file have no label: this holds if chance alone left them "
            "out, such as the last ones"
        )


def _figures(
    examples: Sequence[LabelledExample], human: Sequence[str | None], verdicts: Sequence[Verdict]
) -> Iterator[tuple[str, Floats, Floats, Mask]]:
    """Yield the name of a share, what judge and people say of each row, and whom it is about."""
    said = [full_label(verdict) or None for verdict in verdicts]
    everyone = np.ones(len(said), dtype=bool)
    for name in label_set(examples, verdicts):
        called = [None if label is None else label == name for label in human]
        by_judge = np.array([label == name for label in said], dtype=np.float64)
        yield name, by_judge, np.array(called, dtype=np.float64), everyone
    is_right = [None if h is None else h == s for h, s in zip(human, said, strict=True)]
    confidence = np.array([verdict.confidence or 0.5 for verdict in verdicts])
    has_label = np.array([label is not None for label in said])
    yield "judge is right", confidence, np.array(is_right, dtype=np.float64), has_label


def _labelled(path: Path, in_table: TableMapping) -> tuple[list[LabelledExample], int]:
    """Return the rows of a review file that have a label, and the number of the others."""
    bad_rows: dict[int, BadRow] = {}
    own_words = TableMapping(labels=in_table.labels)
    examples = [row for _, row in read_table(path, LabelledExample, own_words, bad_rows)]
    for row in bad_rows.values():
        if row.label:
            raise row.error
    if not examples:
        raise CustosError(f"{path}: no row has a label yet")
    return examples, len(bad_rows)
