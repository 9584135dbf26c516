"""Rows of a user's table that people should look at, and the file that they get them in."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from cli.shared.tables import group_of, read_requests
from cli.shared.verdicts import TABLE_SUFFIXES, cell_text, read_verdict_table
from data_prep.construction.sheet_page import write_label_page
from data_prep.tables.cells import (
    DEFAULT_SEPARATOR,
    as_list,
    with_nested_columns,
)
from data_prep.tables.labels import in_own_words
from data_prep.tables.mapping import METADATA, PERSON, TABLE_FIELDS, TableMapping
from data_prep.tables.reader import DEFAULT_TASK
from data_prep.tables.source import Table, open_table
from evaluation.correction.label_plan import sampling_probabilities, systematic_sample
from evaluation.correction.scores import SAMPLING_PROBABILITY
from evaluation.intervals import number_clusters
from judging.errors import CustosError, system_errors_at
from judging.files.csv_rows import open_spreadsheet, write_spreadsheet
from judging.files.records import decode_json, read_records
from judging.files.values import as_text, is_empty
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample, ReferenceMode, Verdict, label_of

PERSONS_LABEL = "label"
"""Field that stays empty, for a person to fill in."""
FIELDS = ("id", "task", "variant", "reference_mode", "question")
LISTS = ("choices", "references", "criteria", "images")
RESPONSES = ("response", "response_a", "response_b")
DIFFER = "on which the judges differ"
NO_LABEL = "without a verdict"
TWO_READINGS = "with two readings that differ"
BELOW_RISK = "below the risk"
DRAWN = "drawn by chance"
JUDGE_COLUMNS = ("judge_label", "judge_confidence", "judge_critique", "reason")
CORRECTED_BY, CORRECTED_AT, LABEL_BEFORE = "corrected_by", "corrected_at", "label_before"
"""Columns that say who gave a label and when, and which label it replaced."""
ROW_KEY = "custos_row"
"""Column that says which row of the table a row of a review file is."""
_OF_A_ROUND = (CORRECTED_BY, CORRECTED_AT, LABEL_BEFORE, ROW_KEY)
"""Columns that belong to one round of labels; those of an earlier one are not shown to people."""
ABOUT_LABEL = tuple(
    name
    for name in LabelledExample.model_fields
    if name not in JudgeRequest.model_fields
    and name not in ("weight", "split", "group", "source", SAMPLING_PROBABILITY)
)
"""Fields that say what somebody thought of a row. In a review file their columns are empty.

Otherwise an earlier error type, for example, would be read as that of the person's new label.
"""
SHOWN = ("question", "choices", "references", "criteria", *RESPONSES)
"""Fields that a person reads on a page; what a judge or the user says beside them is folded."""
PAGE = ".html"
PREFIX = "own_"
"""Prefix of a column that keeps what such a column held, and of one that is called as ours."""


@dataclass(frozen=True)
class ReviewRow:
    """A row of the user's table with the verdicts of one or several judges."""

    number: int
    """Number of the row in the table."""
    request: JudgeRequest | Verdict
    """Request, or the verdict on a row that is none."""
    table_cells: Mapping[str, Any]
    """Cells of the table, by its own columns."""
    fields: Mapping[str, object]
    """Cells of our fields."""
    user_cells: Mapping[str, Any]
    """Cells of the user's columns, by their names and by those that a mapping gives them."""
    verdicts: Sequence[Verdict]
    question: str
    """Group, else question, else response. Intervals keep rows that share it together."""
    sampling_probability: float | None = None
    """Probability with which the row was drawn; ``None`` where rows were not drawn."""

    @property
    def confidence(self) -> float:
        """Give the confidence of the least sure judge; nan without one."""
        known = [v.confidence for v in self.verdicts if v.confidence is not None]
        return min(known, default=math.nan)

    @property
    def why(self) -> tuple[str, str]:
        """Say which kind of row for people it is, and why; empty if nobody needs to look."""
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

    def our_cells(self, words: Mapping[str, str]) -> dict[str, object]:
        """Fill the cells that stand beside the user's own, by column.

        ``words`` are the labels of the table's mapping, in which the judge's label is written.
        """
        known = ["" if v.confidence is None else f"{v.confidence:.3f}" for v in self.verdicts]
        return {
            "judge_label": self._by_judge([in_own_words(label, words) for label in self._labels]),
            "judge_confidence": self._by_judge(known),
            "judge_critique": self._by_judge([v.critique or "" for v in self.verdicts]),
            "reason": self.why[1],
            SAMPLING_PROBABILITY: self.sampling_probability,
            # The row is found again, and only if it still asks the same.
            ROW_KEY: f"r{self.number}-{content_hash(self.request, self.table_cells)}",
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

    A row that is no valid request has its cells as they stand, for a person to mend. Raises
    ``CustosError`` if a file holds no verdict on a row, has one on another row, or one under
    another rubric than the row has as it is read.
    """
    num_rows = 0
    by_file = [read_by_row(path, source, mapping) for path in files]
    table = open_table(source, mapping.text_format)
    columns = {name: mapping.columns.get(name, name) for name in (*FIELDS, *LISTS, *RESPONSES)}
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
        cells = row if isinstance(row, Mapping) else {}  # such as a line that is no JSON
        cells = with_nested_columns(cells, mapping.columns.values())
        if isinstance(request, Verdict):
            fields = {name: cell_text(cells.get(column)) for name, column in columns.items()}
            fields["id"] = fields["id"] or request.id
            for name in fields.keys() & mapping.given.keys():
                fields[name] = fields[name] or mapping.given[name]
        else:
            separator = mapping.separator or DEFAULT_SEPARATOR
            names = RESPONSES[:1] if len(request.responses) == 1 else RESPONSES[1:]
            fields = {name: getattr(request, name) for name in FIELDS}
            fields |= {name: joined(getattr(request, name), separator) for name in LISTS}
            fields |= zip(names, request.responses, strict=True)
        others = {**cells, **(request.metadata if isinstance(request, JudgeRequest) else {})}
        for ours, column in mapping.columns.items():
            if ours.startswith(METADATA):
                others[ours.removeprefix(METADATA)] = cells.get(column)
        question = group_of(row, mapping) or str(fields["question"] or fields.get("response"))
        yield ReviewRow(number, request, cells, fields, others, known, question)
    for path, of_file in zip(files, by_file, strict=True):
        if len(of_file) > num_rows:
            raise _too_many_verdicts(path, source)


def tasks_of_verdicts(files: Sequence[Path]) -> set[str]:
    """Name the tasks of the labelled verdicts in files; no further than that there are several.

    A file that cannot be read has none.
    """
    tasks: set[str] = set()
    for path in files:
        is_table = path.suffix in TABLE_SUFFIXES
        with suppress(CustosError):  # is reported where the rows are read
            for _, verdict in read_verdict_table(path) if is_table else read_records(path, Verdict):
                if verdict.label is not None:
                    tasks.add(verdict.rubric.partition("/")[0])
                if len(tasks) > 1 or DEFAULT_TASK in tasks:
                    return tasks
    return tasks


def _too_many_verdicts(path: Path, source: Path | str) -> CustosError:
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
    cells = [{**row.user_cells, **row.fields}.get(by) if by else "" for row in rows]
    values = ["" if is_empty(cell) else cell_text(cell) for cell in cells]
    slices, confidence = number_clusters(values), np.array([row.confidence for row in rows])
    is_doubtful = np.array([bool(row.why[0]) for row in rows], dtype=bool)
    chances = sampling_probabilities(confidence, is_doubtful, num_rows, slices)
    order = np.stack([slices, is_doubtful, np.nan_to_num(confidence)], axis=1)
    drawn = systematic_sample(chances, order, np.random.default_rng(seed))
    return [replace(rows[index], sampling_probability=float(chances[index])) for index in drawn]


def content_hash(request: JudgeRequest | Verdict, cells: Mapping[str, Any]) -> str:
    """Hash what is judged in a row, wherever its pictures lie, or all cells of no request."""
    if isinstance(request, Verdict):
        content: Any = {name: cell_text(cell) for name, cell in sorted(cells.items())}
    else:
        pictures = [Path(n).name if n.startswith("/") else n for n in request.images]
        texts = (request.choices, request.references, request.criteria, request.responses)
        content = [request.question, *map(list, texts), pictures]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]


def field_columns(mapping: TableMapping) -> dict[str, str]:
    """Find the column of every field that a table can fill, single people's labels among them."""
    taken = mapping.columns.values()
    unmapped = {name: name for name in TABLE_FIELDS if name not in taken}
    return {**unmapped, **{f: c for f, c in mapping.columns.items() if not f.startswith(METADATA)}}


def holds_no_labels(path: Path, label: str) -> bool:
    """Tell whether a file is a review file, or empty; refuse one with labels in that column."""
    with system_errors_at(path):
        if not path.read_bytes().strip(b"\xef\xbb\xbf\r\n"):  # byte order mark, ends of lines
            return True
        file = open_spreadsheet(path)
        num_labels = sum(isinstance(row, dict) and label in row for _, row in file.rows())
    is_ours = {label, "judge_label", "reason"} <= set(file.columns)
    if is_ours and num_labels:
        raise CustosError(f"--out '{path}': exists with {num_labels} labels; name a new file")
    return is_ours


def write_review_file(
    out: Path,
    rows: Sequence[ReviewRow],
    table: Table,
    mapping: TableMapping,
    words: Sequence[str],
    task: str | None = None,
) -> dict[str, str]:
    """Write rows in the shape of their table, with an empty column for a person's label.

    In a workbook its cells offer ``words``; a page saves such a table. The file has the columns of
    the table, and ours beside them, so that the mapping of the table reads it; a ``task`` that
    neither of them says is a column too. What earlier people said stands in columns of other names,
    which are returned by the old ones; so do columns that are called as ours.
    """
    column_of = field_columns(mapping)
    of_chance = column_of[SAMPLING_PROBABILITY]
    ours_of_round = (of_chance, *_OF_A_ROUND)
    if table.is_spreadsheet:
        columns = list(table.columns(mapping.columns.values()))
    else:  # Parts of nested cells that are mapped take the cells' place.
        parts = tuple(mapping.columns.values())
        names = dict.fromkeys(name for row in rows for name in row.table_cells)
        columns = [n for n in names if not any(part.startswith(f"{n}.") for part in parts)]
    own = [name for name in columns if name not in ours_of_round]
    of_people = column_of | {name: name for name in own if name.startswith(PERSON)}
    emptied = {
        column
        for field, column in of_people.items()
        if column in own and (field in ABOUT_LABEL or field.startswith(PERSON))
    }
    filled = {c for row in rows for c, cell in row.table_cells.items() if cell_text(cell) != ""}
    renamed = {name: name for name in own if name in JUDGE_COLUMNS or name in emptied & filled}
    for name in renamed:
        while renamed[name] in (*own, *JUDGE_COLUMNS, *ours_of_round):
            renamed[name] = PREFIX + renamed[name]
    label = column_of[PERSONS_LABEL]
    stay = [name for name in own if name not in JUDGE_COLUMNS]
    ours = [row.our_cells(mapping.labels) | {"task": task} for row in rows]
    possible = (*JUDGE_COLUMNS, SAMPLING_PROBABILITY, CORRECTED_BY, CORRECTED_AT, "task", ROW_KEY)
    where_filled = ("judge_critique", SAMPLING_PROBABILITY, "task")
    beside = [
        name
        for name in possible
        if name not in where_filled or any(cells.get(name) for cells in ours)
    ]
    named = [of_chance if name == SAMPLING_PROBABILITY else name for name in beside]
    columns = [*stay, *([] if label in stay else [label]), *named, *renamed.values()]

    is_moved = table.folder.resolve() != out.parent.resolve()

    def cells_of(row: ReviewRow, ours: Mapping[str, object]) -> Iterator[object]:
        # A CSV file's cells stand as they are, but for pictures whose folder is another one.
        cells = {name: cell_text(cell) for name, cell in row.table_cells.items()}
        for field, column in column_of.items():
            is_ours = field in row.fields and not is_empty(row.table_cells.get(column))
            if is_ours and (is_moved if field == "images" else not table.is_csv):
                cells[column] = row.fields[field]
        for name in stay:
            yield None if name in emptied else cells.get(name)
        yield from () if label in stay else (None,)
        yield from (ours.get(name) for name in beside)
        yield from (cell_text(row.table_cells.get(name)) for name in renamed)

    is_same_kind = table.path.suffix == out.suffix or (table.is_csv and out.suffix == PAGE)
    delimiter = mapping.delimiter or (table.delimiter if is_same_kind else None)
    filled_rows = (list(cells_of(row, cells)) for row, cells in zip(rows, ours, strict=True))
    if out.suffix == PAGE:
        write_label_page(
            out,
            columns,
            list(filled_rows),
            [row.request if isinstance(row.request, JudgeRequest) else None for row in rows],
            label,
            {column_of[name] for name in SHOWN if name in column_of},
            in_words=lambda name: in_own_words(name, mapping.labels),
            stamps=(CORRECTED_BY, CORRECTED_AT),
            delimiter=delimiter or ",",
        )
    else:
        write_spreadsheet(out, columns, filled_rows, delimiter, {label: words})
    return renamed


def _rubrics(request: JudgeRequest) -> set[str]:
    """List the rubrics that a verdict on a request may name; an old or failed one names none.

    A judge takes a single reference in a mode that it knows, and alternatives with three levels
    where it knows no others.
    """
    modes = {request.reference_mode}
    if len(request.references) == 1:
        modes = {*get_args(ReferenceMode)}
    elif "any" in modes:
        modes.add("any-partial")
    read = (request.model_copy(update={"reference_mode": mode}) for mode in modes)
    return {"", *(get_task(each.task).full_rubric(each) for each in read)}


def plain_id(row_id: str) -> str:
    """Drop the ``.0`` that a spreadsheet may add to an id."""
    return row_id.removesuffix(".0")


def read_by_row(path: Path, source: Path | str, mapping: TableMapping) -> dict[int, Verdict]:
    """Read the verdicts of a file by the number of the row of the source that they are on.

    A table has a row for each of the source's, in the same order.
    """
    verdicts: dict[int, Verdict] = {}
    if path.suffix in TABLE_SUFFIXES:
        rows = open_table(source, mapping.text_format).rows()
        column = mapping.columns.get("id", "id")
        for cells, verdict in read_verdict_table(path):
            row, _ = next(rows, (None, None))
            if row is None:
                raise _too_many_verdicts(path, source)
            row_id = _id_in(cells, column) or str(row)
            verdicts[row] = verdict.model_copy(update={"id": row_id, "row": row})
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


def _id_in(cells: Mapping[str, Any], column: str) -> str:
    """Look up the id in a row of verdicts, which may hold nested cells as JSON."""
    parsed = dict(cells)
    for name, cell in cells.items():
        if isinstance(cell, str) and column.startswith(f"{name}."):
            with suppress(CustosError):  # of a text that is none
                parsed[name] = decode_json(cell)
    return str(as_text(with_nested_columns(parsed, (column,)).get(column, "")))


def joined(texts: Sequence[str], separator: str) -> str:
    """Join a list in a cell that is read as the same list again."""
    cell = f"{separator} ".join(texts)
    is_same = as_list(cell, separator) == list(texts)
    return cell if is_same else json.dumps(list(texts), ensure_ascii=False)
