"""``custos review``: the rows that people should label, and what their labels say of all rows."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from cli.shared.options import with_groups
from cli.shared.outputs import claim, output_file
from cli.shared.screen import in_columns
from cli.shared.tables import TABLE_FORMATS, TableOptions, read_requests
from cli.shared.verdicts import TABLE_SUFFIXES, JudgedRates, cell_text, read_verdict_table
from data_prep.construction.sheet_page import write_label_page
from data_prep.tables.cells import DEFAULT_SEPARATOR, as_list, json_value, same_name
from data_prep.tables.mapping import METADATA, TableMapping
from data_prep.tables.reader import BadRow, read_table
from data_prep.tables.source import open_table
from evaluation.correction.label_plan import sampling_probabilities, systematic_sample
from evaluation.correction.scores import SAMPLING_PROBABILITY, UnknownSampling, corrected_rate
from evaluation.intervals import number_clusters
from evaluation.outcomes import full_label, label_set
from evaluation.report.markdown import with_interval
from judging.errors import CustosError, FieldError, system_errors_at
from judging.files.csv_rows import DELIMITER_BY_SUFFIX, CsvFile, write_spreadsheet
from judging.files.records import read_records
from judging.files.values import as_text
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample, Verdict, label_of

if TYPE_CHECKING:
    from evaluation.intervals import Floats, Mask

PERSONS_LABEL = "label"
"""Column that stays empty, for a person to fill in."""
FIELDS = ("id", "task", "variant", "reference_mode", "question")
LISTS = ("choices", "references", "criteria", "images")
RESPONSES = ("response", "response_a", "response_b")
DIFFER = "on which the judges differ"
NO_LABEL = "without a verdict"
TWO_READINGS = "with two readings that differ"
BELOW_RISK = "below the risk"
DRAWN = "drawn by chance"
JUDGE_COLUMNS = ("judge_label", "judge_confidence", "judge_critique", "reason")
_ABOUT_LABEL = (
    LabelledExample.model_fields.keys()
    - JudgeRequest.model_fields.keys()
    - {"weight", "split", "group", "source"}
)
RESERVED = {*FIELDS, *LISTS, *RESPONSES, *JUDGE_COLUMNS, *_ABOUT_LABEL}
"""Names of columns that mean something in a review file. A user's column of that name is renamed.

Otherwise an earlier error type, for example, would be read as that of the person's new label.
"""
SHOWN = ("question", "choices", "references", "criteria", *RESPONSES)  # on a page; others fold
PREFIX = "own_"
"""Prefix that a user's column with a reserved name gets."""


@dataclass(frozen=True)
class ReviewRow:
    """A row of the user's table with the verdicts of one or several judges."""

    fields: Mapping[str, object]
    """Cells of our fields."""
    user_cells: Mapping[str, Any]
    """Cells of the user's other columns."""
    verdicts: Sequence[Verdict]
    sampling_probability: float | None = None
    """Probability with which the row was drawn; ``None`` where rows were not drawn."""
    request: JudgeRequest | None = None
    """``None`` of a row that is no valid request."""

    @property
    def question(self) -> str:
        """Name what alike rows share: a group, the question or, without one, the response."""
        fields = self.fields
        return str(self.user_cells.get("group") or fields["question"] or fields.get("response"))

    @property
    def confidence(self) -> float:
        """Give the confidence of the least sure judge; nan without one."""
        known = [v.confidence for v in self.verdicts if v.confidence is not None]
        return min(known, default=math.nan)

    @property
    def why(self) -> tuple[str, str]:
        """Say which kind of row for people it is, and why; empty if nobody needs to look.

        The kinds are ``DIFFER``, ``NO_LABEL``, ``TWO_READINGS``, ``BELOW_RISK`` and, of a row that
        was drawn without such a reason, ``DRAWN``.
        """
        if len(set(self._labels)) > 1:
            return DIFFER, "the judges differ"
        for verdict in self.verdicts:
            if verdict.label is None:
                return NO_LABEL, verdict.message or f"no label: {verdict.status}"
            if verdict.needs_review:
                reason = verdict.message or "the two orders of the pair led to different labels"
                return BELOW_RISK if "confidence" in reason else TWO_READINGS, reason
        return ("", "") if self.sampling_probability is None else (DRAWN, DRAWN)

    @property
    def _labels(self) -> list[str]:
        return [
            label_of(verdict.label, verdict.error_type) if verdict.label else f"({verdict.status})"
            for verdict in self.verdicts
        ]

    def cells(self) -> dict[str, object]:
        """Fill the cells of the row by column."""
        return {
            **self.fields,
            PERSONS_LABEL: None,
            "judge_label": self._by_judge(self._labels),
            "judge_confidence": self._by_judge(
                ["" if v.confidence is None else f"{v.confidence:.3f}" for v in self.verdicts]
            ),
            "judge_critique": self._by_judge([v.critique or "" for v in self.verdicts]),
            "reason": self.why[1],
            SAMPLING_PROBABILITY: self.sampling_probability,
        }

    def _by_judge(self, texts: Sequence[str]) -> str:
        """Give the text of the only judge, or of each by its name; empty if there is none."""
        if len(texts) == 1 or not any(texts):
            return texts[0]
        named = zip(self.verdicts, texts, strict=True)
        return "; ".join(f"{verdict.judge_name or '?'}: {text or '-'}" for verdict, text in named)


def read_review_rows(
    files: Sequence[Path], source: Path, mapping: TableMapping
) -> Iterator[ReviewRow]:
    """Yield the rows of a table with their verdicts in files of ``custos grade``.

    The files hold whole verdicts as JSONL, or tables. A row that is no valid request has its cells
    as they stand, for a person to mend. Raises ``CustosError`` if a file holds no verdict on a row,
    has one on another row, or one under another rubric than the row has as it is read.
    """
    num_rows = 0
    by_file = [_read_by_row(path, source, mapping) for path in files]
    table = open_table(source, mapping.text_format)
    read = zip(read_requests(table, mapping), table.rows(), strict=True)
    for (number, request), (_, row) in read:
        num_rows += 1
        verdicts = [verdicts.get(number) for verdicts in by_file]
        for path, verdict in zip(files, verdicts, strict=True):
            if verdict is None or plain_id(verdict.id) != plain_id(request.id):
                raise CustosError(
                    f"{path}: no verdict on row {number} of {source}, whose id is '{request.id}'; "
                    "give the table that was graded, and its mapping"
                )
            if isinstance(request, JudgeRequest) and verdict.rubric not in _rubrics(request):
                raise CustosError(
                    f"{path}: the verdict on row {number} is under {verdict.rubric}, and the row "
                    f"is read under {get_task(request.task).full_rubric(request)}; give the "
                    "options of the grading, such as --mapping, --task or --reference-mode"
                )
        known = [verdict for verdict in verdicts if verdict is not None]
        if isinstance(request, Verdict):
            yield ReviewRow(*_cells_as_they_stand(row, mapping, request.id), known)
        else:
            cells = _user_cells(request, row, mapping)
            yield ReviewRow(_request_cells(request), cells, known, request=request)
    for path, of_file in zip(files, by_file, strict=True):
        if len(of_file) > num_rows:
            raise _too_many_verdicts(path, source)


def _too_many_verdicts(path: Path, source: Path) -> CustosError:
    return CustosError(
        f"{path}: more verdicts than {source} has rows; give the table that was graded"
    )


def draw_review_rows(
    rows: Sequence[ReviewRow], num_rows: int, by: str | None, seed: int
) -> list[ReviewRow]:
    """Draw rows for people from all, with known probabilities and in random order.

    Up to half of ``num_rows`` may be doubtful ones (those with a reason). ``by`` is a column, ours
    or the user's, of each value of which as many rows are drawn.
    """
    names = dict.fromkeys(name for row in rows for name in (*row.fields, *row.user_cells))
    if by is not None and by not in names:
        raise CustosError(f"--by '{by}': no such column; take one of {', '.join(names)}")
    slices = number_clusters(
        ["" if by is None else cell_text({**row.fields, **row.user_cells}.get(by)) for row in rows]
    )
    confidence = np.array([row.confidence for row in rows])
    is_doubtful = np.array([bool(row.why[0]) for row in rows], dtype=bool)
    probabilities = sampling_probabilities(confidence, is_doubtful, num_rows, slices)
    order = np.stack([slices, is_doubtful, np.nan_to_num(confidence)], axis=1)
    drawn = systematic_sample(probabilities, order, np.random.default_rng(seed))
    return [
        replace(rows[index], sampling_probability=float(probabilities[index])) for index in drawn
    ]


def holds_no_labels(path: Path) -> bool:
    """Tell whether a file is a review file, or empty; refuse one with labels of people."""
    with system_errors_at(path):
        if not path.read_bytes().strip(b"\xef\xbb\xbf\r\n"):  # byte order mark, ends of lines
            return True
        file = CsvFile(path)
        num_labels = sum(isinstance(row, dict) and PERSONS_LABEL in row for _, row in file.rows())
    is_ours = {PERSONS_LABEL, "judge_label", "reason"} <= set(file.columns)
    if is_ours and num_labels:
        raise CustosError(f"--csv '{path}': exists with {num_labels} labels; name a new file")
    return is_ours


def write_review_file(
    out: Path | None, rows: Sequence[ReviewRow], page: Path | None = None
) -> dict[str, str]:
    """Write rows as CSV or TSV with an empty column for a person's label; return new column names.

    Columns of ours that no row fills are left out. The user's stand at the end; one with a reserved
    name is renamed. The ``page`` saves the same table.
    """
    ours = [row.cells() for row in rows]
    always = {*FIELDS, "references", PERSONS_LABEL, *JUDGE_COLUMNS}
    columns = [
        name
        for name in dict.fromkeys(name for cells in ours for name in cells)
        if name in always or any(cells.get(name) for cells in ours)
    ]
    theirs = dict.fromkeys(name for row in rows for name in row.user_cells)
    renamed: dict[str, str] = {}
    for name in theirs:
        if name in RESERVED:
            renamed[name] = PREFIX + name
            while renamed[name] in theirs:
                renamed[name] = PREFIX + renamed[name]
    header = [*columns, *(renamed.get(name, name) for name in theirs)]
    lines = [
        [
            *(cells.get(name) for name in columns),
            *(cell_text(row.user_cells.get(name)) for name in theirs),
        ]
        for cells, row in zip(ours, rows, strict=True)
    ]
    if out is not None:
        write_spreadsheet(out, header, lines)
    if page is not None:
        write_label_page(page, header, lines, [r.request for r in rows], PERSONS_LABEL, SHOWN)
    return renamed


def _rubrics(request: JudgeRequest) -> set[str]:
    """List the rubrics that a verdict on a request may name; an old or failed one names none.

    A judge that knows only one reference mode takes a single reference in that one.
    """
    modes = (request.reference_mode,) if len(request.references) > 1 else ("any", "all")
    read = (request.model_copy(update={"reference_mode": mode}) for mode in modes)
    return {"", *(get_task(each.task).full_rubric(each) for each in read)}


def plain_id(row_id: str) -> str:
    """Drop the ``.0`` that a spreadsheet may add to an id, for a comparison."""
    return row_id.removesuffix(".0")


def _read_by_row(path: Path, source: Path, mapping: TableMapping) -> dict[int, Verdict]:
    """Read the verdicts of a file by the number of the row of the source that they are on.

    A table has a row for each of the source's, in the same order.
    """
    verdicts: dict[int, Verdict] = {}
    if path.suffix in TABLE_SUFFIXES:
        rows = open_table(source, mapping.text_format).rows()
        for cells, verdict in read_verdict_table(path):
            row, _ = next(rows, (None, None))
            if row is None:
                raise _too_many_verdicts(path, source)
            text = str(as_text(cells.get(mapping.columns.get("id", "id"), "")))
            verdicts[row] = verdict.model_copy(update={"id": text or str(row), "row": row})
        return verdicts
    if path.suffix != ".jsonl":
        kinds = ", ".join((".jsonl", *TABLE_SUFFIXES))
        raise CustosError(f"{path}: expected a file of custos grade, ending in {kinds}")
    for number, verdict in read_records(path, Verdict):
        if verdict.row is None:
            raise CustosError(f"{path} row {number}: no row number; give a file of 'custos grade'")
        if verdict.row in verdicts:
            raise CustosError(f"{path} row {number}: a second verdict on row {verdict.row}")
        verdicts[verdict.row] = verdict
    return verdicts


def _request_cells(request: JudgeRequest) -> dict[str, object]:
    names = RESPONSES[:1] if len(request.responses) == 1 else RESPONSES[1:]
    responses = dict(zip(names, request.responses, strict=True))
    lists = {name: _joined(getattr(request, name)) for name in LISTS}
    return {name: getattr(request, name) for name in FIELDS} | lists | responses


def _user_cells(request: JudgeRequest, row: Any, mapping: TableMapping) -> dict[str, Any]:
    """Pick the cells of a request's row that are not among its fields in the file."""
    names = (*FIELDS, *LISTS, *RESPONSES, "responses", "metadata")
    taken = {mapping.columns.get(name, name) for name in names}
    taken |= {theirs for ours, theirs in mapping.columns.items() if ours.startswith(METADATA)}
    taken = set(map(same_name, taken))
    others = {name: json_value(cell) for name, cell in row.items() if same_name(name) not in taken}
    return {**others, **request.metadata}


def _cells_as_they_stand(
    row: Any, mapping: TableMapping, number: str
) -> tuple[dict[str, object], dict[str, Any]]:
    """Pick the cells of our fields and of the user's own columns in a row that is no request."""
    cells = row if isinstance(row, Mapping) else {}  # such as a line that is no JSON
    columns = {name: mapping.columns.get(name, name) for name in (*FIELDS, *LISTS, *RESPONSES)}
    fields = {name: cell_text(cells.get(column)) for name, column in columns.items()}
    fields["id"] = fields["id"] or number
    others = {name: value for name, value in cells.items() if name not in columns.values()}
    for name in fields.keys() & mapping.given.keys():
        fields[name] = fields[name] or mapping.given[name]
    return fields, others


def _joined(texts: Sequence[str]) -> str:
    """Join a list in a cell that is read as the same list again."""
    cell = f"{DEFAULT_SEPARATOR} ".join(texts)
    is_same = as_list(cell, DEFAULT_SEPARATOR) == list(texts)
    return cell if is_same else json.dumps(list(texts), ensure_ascii=False)


@with_groups
def review(
    verdicts: list[Path],
    source: Annotated[Path, typer.Option("--in", help=f"The {TABLE_FORMATS}, that was graded.")],
    table_options: TableOptions,
    out: Annotated[Path | None, typer.Option("--csv", callback=output_file)] = None,
    page: Annotated[Path | None, typer.Option("--html", callback=output_file)] = None,
    num_rows: Annotated[int | None, typer.Option("--rows", min=1)] = None,
    by: str | None = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    estimate: Path | None = None,
) -> None:
    """Write the rows that people should label: verdicts that need review, and rows without one.

    With verdicts of several judges, rows on which their labels differ are among them. A person
    fills in the column label. Then custos eval and custos prep table read the file as it is;
    --allow-dropped leaves out the rows that are still empty. Your own columns are kept, one that is
    called as ours with own_ before its name.

    Example: custos review verdicts.jsonl --in answers.csv --mapping mapping.yaml --csv review.csv

    Example: custos review verdicts.jsonl --in answers.csv --rows 200 --by model --html review.html

    Example: custos review verdicts.jsonl --in answers.csv --estimate review.csv

    Options:
        verdicts: Files of custos grade (JSONL, CSV, TSV or Parquet), one for each judge.
        out: Write the rows to this CSV or TSV file, with an empty column 'label'. Default: --html
            or --estimate is given.
        page: Write the rows to this new HTML page, which saves the table of --csv with the labels
            that a person gives by key or by touch. Default: none.
        num_rows: Draw so many rows by chance, up to half of them from those that need review and
            the others likelier the less sure the judge is, with the probability of each. Default:
            all rows that need review and no others, whose labels say nothing of the rest.
        by: Beside --rows, draw as many rows of each value of this column. Default: of all rows
            together.
        seed: Seed of the draw.
        estimate: Read a file of --rows that people labelled, and print what they would say of all
            rows, with intervals. Default: write such a file.
    """
    outs = " and ".join(str(path) for path in (out, page) if path is not None)
    if bool(outs) == (estimate is not None):
        raise CustosError(
            "give --csv or --html FILE to write rows, or --estimate FILE to read them"
        )
    in_table = table_options.read()
    if estimate is not None:
        rows = list(read_review_rows(verdicts, source, in_table))
        for line in _estimates(rows, estimate, in_table):
            typer.echo(line)
        return
    if page is not None:
        claim(page, option="--html")  # it may be filled in
    if out is not None:
        if out.suffix not in DELIMITER_BY_SUFFIX:
            raise CustosError(f"--csv '{out}': expected a file ending in .csv or .tsv")
        claim(out, holds_no_labels, option="--csv")
    rows = list(read_review_rows(verdicts, source, in_table))
    if num_rows is None:
        to_review = [row for row in rows if row.why[0]]
    else:
        to_review = draw_review_rows(rows, num_rows, by, seed)
    renamed = write_review_file(out, to_review, page)
    by_kind = Counter(row.why[0] for row in to_review)
    kinds = (DIFFER, BELOW_RISK, TWO_READINGS, NO_LABEL, DRAWN)
    counts = ", ".join(f"{by_kind[kind]} {kind}" for kind in kinds if by_kind[kind])
    counted = f": {counts}" if counts else ""
    typer.echo(f"{len(to_review)} of {len(rows)} rows are for people{counted}; written to {outs}")
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

    People labelled some of the rows in the review file at ``path``; they may have used the labels
    of the table's mapping.
    """
    bad_rows: dict[int, BadRow] = {}
    own_words = TableMapping(labels=in_table.labels)
    examples = [row for _, row in read_table(path, LabelledExample, own_words, bad_rows)]
    if with_label := next((row for row in bad_rows.values() if row.label), None):
        raise with_label.error
    if not examples:
        raise CustosError(f"{path}: no row has a label yet")
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
    is_unknown = bool(np.isnan(probabilities).all())
    if unknown is not None and not is_unknown:
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
                    # Rows of the file without a label are those that nobody came to.
                    random_sample=not is_unknown and len(examples) + len(bad_rows) == len(rows),
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
    if bad_rows:
        yield (
            f"{len(bad_rows):,} rows of the file have no label: this holds if chance alone left "
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
