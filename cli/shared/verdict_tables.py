"""Tables of verdicts: the columns of the user's table, and the verdict on every row beside them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from clients.kept_verdicts import KeptVerdict
from data_prep.tables.source import Table
from judging.batches import in_batches
from judging.errors import CustosError
from judging.files.arrow_rows import named_columns
from judging.files.atomic import atomic_path
from judging.files.csv_rows import CsvFile, row_location, write_spreadsheet
from judging.files.kept_work import KeptFile
from judging.files.records import read_rows
from judging.types import Verdict, parse_record

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")
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
        self.kinds: dict[str, set[type]] = {name: set() for name in self._known_columns()}
        """The user's columns, in their order, each with the types of its cells if they matter."""
        if not self.kinds:
            for cells, _ in self.rows():
                for name, value in cells.items():
                    self.kinds.setdefault(name, set()).add(_kind(value))

    def _known_columns(self) -> Sequence[str]:
        if self.source.is_csv:
            return self.source.csv.columns
        return table_columns(self.source.path) if self.source.is_parquet else ()

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


def has_verdict_columns(columns: Collection[str]) -> bool:
    """Tell whether a table with these columns is one that ``write_table`` wrote."""
    return all(name in columns or _PREFIX + name in columns for name in _ALWAYS)


def read_verdict_table(path: Path) -> Iterator[tuple[Mapping[str, Any], Verdict]]:
    """Yield the cells of every row of a table that ``write_table`` wrote, with its verdict.

    A verdict has the fields that are columns. It has no ``id`` and no ``row``. Raises
    ``CustosError`` if the file cannot be read, or holds no verdicts.
    """
    rows = read_rows(path)
    first = next(rows, None)  # says what is wrong with a file that cannot be read
    column_by_field = _find_verdict_columns(table_columns(path))
    if column_by_field is None:
        raise CustosError(f"{path}: has not the columns that custos grade writes")
    for number, row in itertools.chain([] if first is None else [first], rows):
        if isinstance(row, CustosError):
            raise row
        fields = {name: row[column] for name, column in column_by_field.items() if column in row}
        yield row, parse_record(Verdict, fields, row_location(path, number))


def _find_verdict_columns(columns: Sequence[str]) -> dict[str, str] | None:
    """Find the column of every field of a verdict; ``None`` in a table that is not ours.

    They stand together, behind the user's columns, of which some may be called alike.
    """
    num = len(VERDICT_COLUMNS)
    for start in reversed(range(len(columns) - num + 1)):
        column_by_field = dict(zip(VERDICT_COLUMNS, columns[start : start + num], strict=True))
        if all(
            column.endswith(name) and not column.removesuffix(name).replace(_PREFIX, "")
            for name, column in column_by_field.items()
        ):
            return column_by_field
    return None


def write_table(out: Path, table: GradedTable) -> None:
    """Write a table as CSV, TSV or Parquet; the file appears only when it is complete.

    In CSV and TSV files nested values are JSON, and no text is a formula (see ``spreadsheets``). A
    CSV file has the delimiter of the source if that is a CSV file too, as Excel differs by country.
    Parquet files keep types: those of the source if it is Parquet too.
    """
    if out.suffix == ".parquet":
        _write_parquet(out, table)
    else:
        rows = (list(map(cell_text, row)) for row in table.cells())
        both_csv = table.source.is_csv and out.suffix == table.source.path.suffix == ".csv"
        delimiter = table.source.csv.delimiter if both_csv else None
        write_spreadsheet(out, table.columns, rows, delimiter)


def table_columns(path: Path) -> Sequence[str]:
    """Read the names of the columns of a CSV, TSV or Parquet file."""
    if path.suffix != ".parquet":
        return CsvFile(path).columns
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
        by_kinds = {
            frozenset({bool}): flag,
            frozenset({int}): int64,
            frozenset({_LongInt}): int64,
            frozenset({int, _LongInt}): int64,
            frozenset({float}): float64,
            frozenset({int, float}): float64,
        }
        kinds = (frozenset(each - {type(None)}) for each in table.kinds.values())
        types = [by_kinds.get(each, string) for each in kinds]
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
