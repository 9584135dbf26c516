"""``custos review``: the rows that people should label, and what their labels say of all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from cli.shared.corrections import MergedTable, RowsOfTable, tasks_of_reviews, write_rows
from cli.shared.options import with_groups
from cli.shared.outputs import claim, output_file
from cli.shared.review_file import (
    BELOW_RISK,
    DIFFER,
    DRAWN,
    NO_LABEL,
    PAGE,
    PERSONS_LABEL,
    TWO_READINGS,
    ReviewRow,
    draw_review_rows,
    field_columns,
    holds_no_labels,
    read_review_rows,
    tasks_of_verdicts,
    write_review_file,
)
from cli.shared.screen import in_columns
from cli.shared.tables import TABLE_FORMATS, TableOptions, with_only_task
from cli.shared.verdicts import JudgedRates
from data_prep.tables.examples import show_doubles
from data_prep.tables.labels import in_own_words
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import read_table
from data_prep.tables.source import open_table
from evaluation.correction.scores import SAMPLING_PROBABILITY, UnknownSampling, corrected_rate
from evaluation.intervals import number_clusters
from evaluation.outcomes import full_label, label_set
from evaluation.report.text import with_interval
from judging.errors import CustosError, FieldError
from judging.files.csv_rows import SPREADSHEETS
from judging.log_lines import one_line
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample, Verdict

if TYPE_CHECKING:
    from evaluation.intervals import Floats, Mask

MOST_WORDS = 12
"""Labels that a line names."""


@with_groups
def review(
    verdicts: Annotated[list[Path] | None, typer.Argument()] = None,
    *,
    source: Annotated[Path, typer.Option("--in", help=f"The {TABLE_FORMATS}, that was graded.")],
    table_options: TableOptions,
    out: Annotated[
        Path | None, typer.Option("--out", "--csv", "--html", callback=output_file)
    ] = None,
    num_rows: Annotated[int | None, typer.Option("--rows", min=1)] = None,
    by: str | None = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    estimate: Path | None = None,
    merge: list[Path] | None = None,
    who: str | None = None,
) -> None:
    """Write the rows that people should label, and take their labels back into the table.

    Rows for people are verdicts that need review, rows without one and, with verdicts of several
    judges, rows on which their labels differ. The file has the columns, the delimiter and the words
    of your table, beside the judge's label. A person fills in the column of labels, which is empty;
    what stood there is kept in a column with own_ before its name. The mapping of the table reads
    the file too: custos eval, custos train, custos prep table.

    --merge writes your table again with these labels in it. A correction wins over the label of the
    table; label_before keeps that one, and corrected_by and corrected_at say who gave the new one,
    and when. Rows are found again also in another order. Two different corrections of one row are
    refused.

    Example: custos review verdicts.jsonl --in answers.csv --mapping mapping.yaml --out review.csv

    Example: custos review --merge review.csv --in answers.csv --mapping mapping.yaml
    --out answers-2.csv --who anna

    Example: custos review verdicts.jsonl --in answers.csv --rows 200 --by model --html review.html

    Example: custos review verdicts.jsonl --in answers.csv --estimate review.csv

    Options:
        verdicts: Files of custos grade (JSONL, CSV, TSV, XLSX or Parquet), one for each judge.
            Default: --merge is given.
        out: Write the rows for people to this CSV, TSV or XLSX file, or HTML page, which saves the
            table with the labels that a person gives by key or by touch; with --merge write the
            table, to a file of its own kind. Default: --estimate is given.
        num_rows: Draw so many rows by chance, up to half of them from those that need review and
            the others likelier the less sure the judge is, with the probability of each. Default:
            all rows that need review and no others, whose labels say nothing of the rest.
        by: Beside --rows, draw as many rows of each value of this column. Default: of all rows
            together.
        seed: Seed of the draw.
        estimate: Read a file of --rows that people labelled, and print what they would say of all
            rows, with intervals. Default: write such a file.
        merge: Take the labels in this file back into the table. May be repeated. Default: write
            rows for people.
        who: With --merge: who gave the labels of rows whose corrected_by is empty. Default: nobody
            is named.
    """
    if (out is None) == (estimate is None):
        raise CustosError("give either --out FILE to write rows, or --estimate FILE to read labels")
    if bool(verdicts) == bool(merge):
        raise CustosError(
            "give the verdicts of custos grade, or --merge FILE with labels of people"
        )
    in_table = table_options.read()
    if merge:
        _merge(merge, source, in_table, out, who or "")
        return
    files, stated = verdicts or [], in_table.task
    in_table = with_only_task(in_table, source, tasks_of_verdicts(files))
    if out is None:
        rows = list(read_review_rows(files, source, in_table))
        assert estimate is not None
        for line in _estimates(rows, estimate, source, in_table):
            typer.echo(line)
        return
    if out.suffix not in (*SPREADSHEETS, PAGE):
        kinds = ", ".join((*SPREADSHEETS, PAGE))
        raise CustosError(f"--out '{out}': expected a file ending in {kinds}")
    of_label = field_columns(in_table)[PERSONS_LABEL]
    # A page may be filled in.
    claim(out, None if out.suffix == PAGE else partial(holds_no_labels, label=of_label))
    rows = list(read_review_rows(files, source, in_table))
    if num_rows is None:
        to_review = [row for row in rows if row.why[0]]
    else:
        to_review = draw_review_rows(rows, num_rows, by, seed)
    requests = [row.request for row in to_review if isinstance(row.request, JudgeRequest)]
    rubrics = sorted({(each.task, get_task(each.task).rubric(each)) for each in requests})
    labels = [name for task, rubric in rubrics for name in get_task(task).labels(rubric)]
    words = list(dict.fromkeys(in_own_words(name, in_table.labels) for name in labels))
    table = open_table(source, in_table.text_format)
    task = in_table.task if in_table.task != stated else None
    renamed = write_review_file(out, to_review, table, in_table, words, task)
    by_kind = Counter(row.why[0] for row in to_review)
    reasons = (DIFFER, BELOW_RISK, TWO_READINGS, NO_LABEL, DRAWN)
    counts = ", ".join(f"{by_kind[kind]} {kind}" for kind in reasons if by_kind[kind])
    counted = f": {counts}" if counts else ""
    typer.echo(f"{len(to_review)} of {len(rows)} rows are for people{counted}; written to {out}")
    if 0 < len(words) <= MOST_WORDS:
        typer.echo(f"fill in column '{of_label}' with {' or '.join(words)}")
    rates = JudgedRates(in_table.labels)
    for row in rows:
        for verdict in row.verdicts:
            rates.add(verdict, hash(row.question))
    for line in rates.lines():
        typer.echo(line)
    if renamed:
        names = ", ".join(f"{name} as {new}" for name, new in renamed.items())
        typer.echo(f"what your columns held is kept under other names: {names}")


def _merge(
    files: Sequence[Path], source: Path, in_table: TableMapping, out: Path | None, who: str
) -> None:
    if out is None:
        raise CustosError("--merge: name the table to write with --out FILE")
    in_table = with_only_task(in_table, source, tasks_of_reviews(files, in_table))
    rows = RowsOfTable(source, in_table)
    kind = rows.table.path.suffix if rows.table.hub is None else ".jsonl"
    if out.suffix != kind:
        raise CustosError(f"--out '{out}': the table keeps its kind; name a file ending in {kind}")
    claim(out, sources=[source, *files])
    merged = MergedTable(rows, rows.corrections(files, who))
    write_rows(out, rows.table, in_table, merged.cells(out))
    num_corrected, num_changed = len(merged.corrections.by_row), len(merged.changed)
    typer.echo(
        f"{num_corrected} of {len(rows.cells)} rows have a label of the corrections, {num_changed} "
        f"of them another one than before; written to {out}"
    )
    read = read_table(out, LabelledExample, in_table, {})
    for line in (*merged.lines(), *show_doubles(list(read))):
        typer.echo(one_line(line))


def _estimates(
    rows: Sequence[ReviewRow], path: Path, source: Path, in_table: TableMapping
) -> Iterator[str]:
    """Yield, for each judge, the shares of labels that people would give all rows, line by line.

    People labelled some of the rows, in the review file at ``path`` or in a table that its labels
    were taken back into.
    """
    corrections = RowsOfTable(source, in_table).corrections([path])
    if not corrections.by_row:
        raise CustosError(f"{path}: no row has a label yet")
    if path in corrections.unknown:
        fault = f"row {corrections.unknown[path][0]} is none of the table that was graded"
        raise FieldError("id", fault, str(path))
    human: list[str | None] = [None] * len(rows)
    probabilities = np.full(len(rows), np.nan)
    is_unknown = not corrections.chances
    for index, row in enumerate(rows):
        if not (given := corrections.by_row.get(row.number)):
            continue
        if len(given) > 1:
            places = " and ".join(each.place for each in given)
            fault = f"row {row.number} of {source} has two labels: {places}; leave one of them"
            raise FieldError("id", fault, str(path))
        chance = corrections.chances.get(row.number)
        if chance is None and not is_unknown:
            if not given[0].asked[0]:  # it has no key of a review file
                continue  # an older label, which nobody drew the row for
            fault = f"{given[0].place} has a label and no probability; others have one"
            raise FieldError(SAMPLING_PROBABILITY, fault, str(path))
        human[index], probabilities[index] = given[0].label, chance or np.nan
    labels = [label for label in human if label is not None]
    examples = [
        each.example for given in corrections.by_row.values() for each in given if each.example
    ]
    num_open = len(corrections.unlabelled[path])
    questions = number_clusters([row.question for row in rows])
    for judge in range(len(rows[0].verdicts)):
        verdicts = [row.verdicts[judge] for row in rows]
        name = next(filter(None, (verdict.judge_name for verdict in verdicts)), "judge")
        yield (
            f"{name}: {len(labels):,} of {len(rows):,} rows on {questions.max() + 1:,} questions "
            "are labelled"
        )
        columns = ("share of all rows", "people, estimated", "people's labels alone", "judge")
        lines: list[Sequence[str]] = [columns]
        for figure, by_judge, by_people, part in _figures(examples, human, verdicts):
            try:
                found = corrected_rate(
                    by_judge[part],
                    by_people[part],
                    # Rows of the file without a label are those that nobody came to.
                    random_sample=not is_unknown and len(labels) + num_open == len(rows),
                    probabilities=None if is_unknown else probabilities[part],
                    groups=questions[part],
                )
            except UnknownSampling:
                if not is_unknown:
                    fault = "1 throughout says that all rows were drawn, but the file lacks some"
                    raise FieldError(SAMPLING_PROBABILITY, fault, str(path)) from None
                raise CustosError(
                    f"{path}: its rows were picked as doubtful and not drawn, so that their labels "
                    "say nothing of the others; draw rows with custos review --rows N"
                ) from None
            rates = (found.corrected, found.labelled, found.raw)
            lines.append([figure, *(with_interval(rate._asdict()) for rate in rates)])
        yield from in_columns(lines)
    if num_open:
        yield (
            f"{num_open:,} rows of the file have no label: this holds if chance alone left "
            "them out, such as the last ones"
        )


def _figures(
    examples: Sequence[LabelledExample], human: Sequence[str | None], verdicts: Sequence[Verdict]
) -> Iterator[tuple[str, Floats, Floats, Mask]]:
    """Yield shares: name, what judge and people say of each row, and the rows that count."""
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
