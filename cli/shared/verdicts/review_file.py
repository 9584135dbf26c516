"""The file that people label: rows that a judge leaves to them, or on which judges differ."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cli.shared.request_rows import read_requests
from cli.shared.verdicts.tables import TABLE_SUFFIXES, cell_text, read_verdict_table
from data_prep.tables.cells import DEFAULT_SEPARATOR, as_list, json_value, same_name
from data_prep.tables.mapping import METADATA, TableMapping
from data_prep.tables.source import open_table
from evaluation.correction.label_plan import sampling_probabilities, systematic_sample
from evaluation.correction.scores import SAMPLING_PROBABILITY
from evaluation.intervals import number_clusters
from judging import CustosError, JudgeRequest, Verdict
from judging.errors import system_errors_at
from judging.files.csv_rows import CsvFile, write_spreadsheet
from judging.files.records import read_records
from judging.files.values import as_text
from judging.tasks import get_task
from judging.types import LabelledExample, label_of

PERSONS_LABEL = "label"
"""Column that stays empty, for a person to fill in."""
FIELDS = ("id", "task", "variant", "reference_mode", "question")
LISTS = ("choices", "references", "images")
RESPONSES = ("response", "response_a", "response_b")
DIFFER = "on which the judges differ"
_NO_TEXT = b"\xef\xbb\xbf\r\n"
"""What a file has that holds no text: a byte order mark and ends of lines."""
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

    @property
    def question(self) -> str:
        """Return what the row shares with those that are alike: its group or its question."""
        return str(self.user_cells.get("group") or self.fields["question"])

    @property
    def confidence(self) -> float:
        """Return the confidence of the least sure judge; nan without one."""
        known = [v.confidence for v in self.verdicts if v.confidence is not None]
        return min(known, default=math.nan)

    @property
    def why(self) -> tuple[str, str]:
        """Return the kind of row for people that it is, and the reason; empty if nobody needs to.

        The kinds are ``DIFFER``, ``NO_LABEL``, ``TWO_READINGS``, ``BELOW_RISK`` and, of a row that
        was drawn without such a reason, ``DRAWN``.
        """
        labels = [_label(verdict) for verdict in self.verdicts]
        if len(set(labels)) > 1:
            return DIFFER, "the judges differ"
        for verdict in self.verdicts:
            if verdict.label is None:
                return NO_LABEL, verdict.message or f"no label: {verdict.status}"
            if verdict.needs_review:
                reason = verdict.message or "the two orders of the pair led to different labels"
                return BELOW_RISK if "confidence" in reason else TWO_READINGS, reason
        return ("", "") if self.sampling_probability is None else (DRAWN, DRAWN)

    def cells(self) -> dict[str, object]:
        """Return the cells of the row by column."""
        return {
            **self.fields,
            PERSONS_LABEL: None,
            "judge_label": self._by_judge([_label(verdict) for verdict in self.verdicts]),
            "judge_confidence": self._by_judge(
                ["" if v.confidence is None else f"{v.confidence:.3f}" for v in self.verdicts]
            ),
            "judge_critique": self._by_judge([v.critique or "" for v in self.verdicts]),
            "reason": self.why[1],
            SAMPLING_PROBABILITY: self.sampling_probability,
        }

    def _by_judge(self, texts: Sequence[str]) -> str:
        """Return the text of the only judge, or of each by its name; empty if there is none."""
        if len(texts) == 1 or not any(texts):
            return texts[0]
        named = zip(self.verdicts, texts, strict=True)
        return "; ".join(f"{verdict.judge_name or '?'}: {text or '-'}" for verdict, text in named)


def read_review_rows(
    files: Sequence[Path], source: Path, mapping: TableMapping
) -> Iterator[ReviewRow]:
    """Yield the rows of a table with their verdicts in one or several files.

    A row that is no valid request has its cells as they stand, for a person to mend.

    Args:
        files: Files of ``custos grade``: whole verdicts as JSONL, or tables.
        source: The table that was graded.
        mapping: What its columns are called.

    Raises:
        CustosError: If a file holds no verdict on a row, has one on another row, or one under
            another rubric than the row has as it is read.
    """
    num_rows = 0
    by_file = [_read_by_row(path, source, mapping) for path in files]
    cells = open_table(source, mapping.text_format).rows()
    for (number, request), (_, row) in zip(read_requests(source, mapping), cells, strict=True):
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
            yield ReviewRow(_request_cells(request), _user_cells(request, row, mapping), known)
    for path, of_file in zip(files, by_file, strict=True):
        if len(of_file) > num_rows:
            raise CustosError(
                f"{path}: more verdicts than {source} has rows; give the table that was graded"
            )


def draw_review_rows(
    rows: Sequence[ReviewRow], num_rows: int, by: str | None, seed: int
) -> list[ReviewRow]:
    """Draw rows for people from all, with known probabilities and in random order.

    Args:
        rows: All rows of the table.
        num_rows: Rows to draw; half of them may be doubtful ones (those with a reason).
        by: Column, ours or the user's, of each value of which as many rows are drawn.
        seed: Seed of the draw.

    Raises:
        CustosError: If no row has such a column.
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


def count_by_kind(rows: Sequence[ReviewRow]) -> str:
    """Return rows for people by kind as text, such as ``1 below the risk``; empty without rows."""
    counts = Counter(row.why[0] for row in rows)
    kinds = (DIFFER, BELOW_RISK, TWO_READINGS, NO_LABEL, DRAWN)
    return ", ".join(f"{counts[kind]} {kind}" for kind in kinds if counts[kind])


def check_no_labels(out: Path) -> None:
    """Refuse to replace a file that is no review file, or one in which a person wrote a label.

    Args:
        out: ``--csv`` file that is about to be written; an empty or missing one may be.

    Raises:
        CustosError: If it holds something else or labels.
    """
    if not out.exists():
        return
    with system_errors_at(out):
        if not out.read_bytes().strip(_NO_TEXT):  # as without rows for people
            return
        file = CsvFile(out)
        num_labels = sum(isinstance(row, dict) and PERSONS_LABEL in row for _, row in file.rows())
    if not {PERSONS_LABEL, "judge_label", "reason"} <= set(file.columns):
        raise CustosError(f"--csv '{out}': exists and is no review file; name a new file")
    if num_labels:
        raise CustosError(f"--csv '{out}': exists with {num_labels} labels; name a new file")


def write_review_file(out: Path, rows: Sequence[ReviewRow]) -> dict[str, str]:
    """Write rows as CSV or TSV, with an empty column for a person's label.

    Columns of ours that no row fills are left out, and the user's stand at the end.

    Returns:
        The new name of each column of the user's that has a reserved name.
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
    write_spreadsheet(
        out,
        [*columns, *(renamed.get(name, name) for name in theirs)],
        (
            [
                *(cells.get(name) for name in columns),
                *(cell_text(row.user_cells.get(name)) for name in theirs),
            ]
            for cells, row in zip(ours, rows, strict=True)
        ),
    )
    return renamed


def _rubrics(request: JudgeRequest) -> set[str]:
    """Return the rubrics that a verdict on a request may name; an old or failed one names none.

    A judge that knows only one reference mode takes a single reference in that one.
    """
    modes = (request.reference_mode,) if len(request.references) > 1 else ("any", "all")
    read = (request.model_copy(update={"reference_mode": mode}) for mode in modes)
    return {"", *(get_task(each.task).full_rubric(each) for each in read)}


def plain_id(row_id: str) -> str:
    """Return an id as whole number and text of a spreadsheet alike, for a comparison."""
    return row_id.removesuffix(".0")


def _read_by_row(path: Path, source: Path, mapping: TableMapping) -> dict[int, Verdict]:
    """Return the verdicts of a file by the number of the row of the source that they are on."""
    if path.suffix in TABLE_SUFFIXES:
        return _read_table_by_row(path, source, mapping)
    if path.suffix != ".jsonl":
        kinds = ", ".join((".jsonl", *TABLE_SUFFIXES))
        raise CustosError(f"{path}: expected a file of custos grade, ending in {kinds}")
    verdicts: dict[int, Verdict] = {}
    for number, verdict in read_records(path, Verdict):
        if verdict.row is None:
            raise CustosError(f"{path} row {number}: no row number; give a file of 'custos grade'")
        if verdict.row in verdicts:
            raise CustosError(f"{path} row {number}: a second verdict on row {verdict.row}")
        verdicts[verdict.row] = verdict
    return verdicts


def _read_table_by_row(path: Path, source: Path, mapping: TableMapping) -> dict[int, Verdict]:
    """Return the same of a table, which has a row for each of the source's, in the same order."""
    verdicts: dict[int, Verdict] = {}
    rows = open_table(source, mapping.text_format).rows()
    for cells, verdict in read_verdict_table(path):
        number, _ = next(rows, (None, None))
        if number is None:
            raise CustosError(
                f"{path}: more verdicts than {source} has rows; give the table that was graded"
            )
        text = str(as_text(cells.get(mapping.columns.get("id", "id"), "")))
        verdicts[number] = verdict.model_copy(update={"id": text or str(number), "row": number})
    return verdicts


def _request_cells(request: JudgeRequest) -> dict[str, object]:
    names = RESPONSES[:1] if len(request.responses) == 1 else RESPONSES[1:]
    responses = dict(zip(names, request.responses, strict=True))
    lists = {name: _joined(getattr(request, name)) for name in LISTS}
    return {name: getattr(request, name) for name in FIELDS} | lists | responses


def _user_cells(request: JudgeRequest, row: Any, mapping: TableMapping) -> dict[str, Any]:
    """Return the cells of a request's row that are not among its fields in the file."""
    names = (*FIELDS, *LISTS, *RESPONSES, "responses", "metadata")
    taken = {mapping.columns.get(name, name) for name in names}
    taken |= {theirs for ours, theirs in mapping.columns.items() if ours.startswith(METADATA)}
    taken = set(map(same_name, taken))
    others = {name: json_value(cell) for name, cell in row.items() if same_name(name) not in taken}
    return {**others, **request.metadata}


def _cells_as_they_stand(
    row: Any, mapping: TableMapping, number: str
) -> tuple[dict[str, object], dict[str, Any]]:
    """Return the cells of our fields and of the user's own columns in a row that is no request."""
    cells = row if isinstance(row, Mapping) else {}  # such as a line that is no JSON
    columns = {name: mapping.columns.get(name, name) for name in (*FIELDS, *LISTS, *RESPONSES)}
    fields = {name: cell_text(cells.get(column)) for name, column in columns.items()}
    fields["id"] = fields["id"] or number
    others = {name: value for name, value in cells.items() if name not in columns.values()}
    for name in fields.keys() & mapping.given.keys():
        fields[name] = fields[name] or mapping.given[name]
    return fields, others


def _label(verdict: Verdict) -> str:
    return label_of(verdict.label, verdict.error_type) if verdict.label else f"({verdict.status})"


def _joined(texts: Sequence[str]) -> str:
    """Return a list as a cell that is read as the same list again."""
    cell = f"{DEFAULT_SEPARATOR} ".join(texts)
    is_same = as_list(cell, DEFAULT_SEPARATOR) == list(texts)
    return cell if is_same else json.dumps(list(texts), ensure_ascii=False)
