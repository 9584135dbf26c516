"""The file that people label: rows that a judge leaves to them, or on which judges differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.shared.request_rows import read_requests
from data_prep.tables.cells import DEFAULT_SEPARATOR
from data_prep.tables.mapping import TableMapping
from judging import CustosError, JudgeRequest, Verdict
from judging.files.records import read_records
from judging.files.spreadsheets import write_spreadsheet

PERSONS_LABEL = "label"
"""Column that stays empty, for a person to fill in."""
FIELDS = ("id", "task", "variant", "reference_mode", "question")
JUDGE_COLUMNS = ("judge_label", "judge_confidence", "judge_critique", "reason")


@dataclass(frozen=True)
class ReviewRow:
    """A row of the user's table with the verdicts of one or several judges."""

    request: JudgeRequest
    verdicts: Sequence[Verdict]

    @property
    def reason(self) -> str:
        """Return why a person should look at it; empty if nobody needs to."""
        labels = [_label(verdict) for verdict in self.verdicts]
        if len(set(labels)) > 1:
            return "the judges differ"
        for verdict in self.verdicts:
            if verdict.label is None:
                return verdict.message or f"no label: {verdict.status}"
            if verdict.needs_review:
                return verdict.message or "the two orders of the pair led to different labels"
        return ""

    def cells(self) -> dict[str, object]:
        """Return the cells of the row by column."""
        request = self.request
        names = ("response",) if len(request.responses) == 1 else ("response_a", "response_b")
        return {
            **{name: getattr(request, name) for name in FIELDS},
            "choices": _joined(request.choices),
            "references": _joined(request.references),
            **dict(zip(names, request.responses, strict=True)),
            "images": _joined(request.images),
            PERSONS_LABEL: None,
            "judge_label": self._by_judge([_label(verdict) for verdict in self.verdicts]),
            "judge_confidence": self._by_judge(
                [f"{v.confidence:.3f}" if v.confidence is not None else "-" for v in self.verdicts]
            ),
            "judge_critique": self._by_judge([v.critique or "" for v in self.verdicts]),
            "reason": self.reason,
        }

    def _by_judge(self, texts: Sequence[str]) -> str:
        """Return the text of the only judge, or of each by its name; empty if there is none."""
        if len(texts) == 1 or not any(texts):
            return texts[0]
        named = zip(self.verdicts, texts, strict=True)
        return "; ".join(f"{verdict.judge_name or '?'}: {text}" for verdict, text in named)


def read_review_rows(
    files: Sequence[Path], source: Path, mapping: TableMapping
) -> Iterator[ReviewRow]:
    """Yield the rows of a table with their verdicts in one or several files.

    Rows that are no valid requests are left out: they have to be mended, not labelled.

    Args:
        files: JSONL files of ``custos grade``.
        source: The table that was graded.
        mapping: What its columns are called.

    Raises:
        CustosError: If a file holds no verdict on a row, or has one on another row.
    """
    by_file = [_read_by_row(path) for path in files]
    for number, request in read_requests(source, mapping):
        if isinstance(request, Verdict):
            continue
        verdicts = [verdicts.get(number) for verdicts in by_file]
        for path, verdict in zip(files, verdicts, strict=True):
            if verdict is None or verdict.id != request.id:
                raise CustosError(
                    f"{path}: no verdict on row {number} of {source}, whose id is '{request.id}'; "
                    "give the table that was graded, and its mapping"
                )
        yield ReviewRow(request, [verdict for verdict in verdicts if verdict is not None])


def write_review_file(out: Path, rows: Sequence[ReviewRow]) -> None:
    """Write rows as CSV or TSV, with an empty column for a person's label.

    Columns of ours that no row fills are left out, and the user's own stand at the end.
    """
    ours = [row.cells() for row in rows]
    always = {*FIELDS, PERSONS_LABEL, *JUDGE_COLUMNS}
    columns = [
        name
        for name in dict.fromkeys(name for cells in ours for name in cells)
        if name in always or any(cells.get(name) for cells in ours)
    ]
    theirs = dict.fromkeys(name for row in rows for name in row.request.metadata)
    free = [name for name in theirs if name not in columns]
    write_spreadsheet(
        out,
        [*columns, *free],
        (
            [
                *(cells.get(name) for name in columns),
                *(_text(row.request.metadata.get(name)) for name in free),
            ]
            for cells, row in zip(ours, rows, strict=True)
        ),
    )


def _read_by_row(path: Path) -> dict[int, Verdict]:
    verdicts: dict[int, Verdict] = {}
    for number, verdict in read_records(path, Verdict):
        if verdict.row is None:
            raise CustosError(f"{path} row {number}: no row number; give a file of 'custos grade'")
        verdicts[verdict.row] = verdict
    return verdicts


def _label(verdict: Verdict) -> str:
    parts = (verdict.label, verdict.error_type) if verdict.label else (f"({verdict.status})",)
    return "; ".join(part for part in parts if part)


def _joined(texts: Sequence[str]) -> str:
    """Return a list as a cell that is read as the same list again."""
    if any(DEFAULT_SEPARATOR in text for text in texts):
        return json.dumps(list(texts), ensure_ascii=False)
    return f"{DEFAULT_SEPARATOR} ".join(texts)


def _text(value: object) -> object:
    is_plain = value is None or isinstance(value, str | int | float)
    return value if is_plain else json.dumps(value, ensure_ascii=False)
