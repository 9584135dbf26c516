"""Tables of verdicts: the columns of the user's table, and the verdict on every row beside them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clients.kept_verdicts import KeptVerdict
from data_prep.tables.source import Table
from judging import CustosError, Verdict
from judging.batches import in_batches
from judging.files.arrow_rows import named_columns
from judging.files.atomic import atomic_path
from judging.files.csv_rows import CsvFile, row_location, write_spreadsheet
from judging.files.records import read_rows
from judging.types import parse_record

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

GradedRow = tuple[Mapping[str, Any], KeptVerdict]
"""Cells of a row of the user's table, and the verdict on it."""


@dataclass(frozen=True)
class GradedTable:
    """A user's table with verdicts, as it will be written."""

    theirs: tuple[str, ...]
    """Names of the user's columns, in their order."""
    kinds: Mapping[str, frozenset[type]]
    """Types of the cells in each of them."""
    labels: tuple[str, ...]
    """Labels that have a probability in some verdict."""
    rows: Callable[[], Iterable[GradedRow]]
    """Returns the rows; called several times."""
    source: Table

    @classmethod
    def of_source(cls, source: Table, rows: Callable[[], Iterable[GradedRow]]) -> GradedTable:
        """Read the rows once to learn their columns, types and labels."""
        kinds: dict[str, set[type]] = {name: set() for name in _known_columns(source)}
        labels: dict[str, None] = {}
        for cells, line in rows():
            for name, value in cells.items():
                kinds.setdefault(name, set()).add(_kind(value))
            labels.update(dict.fromkeys(line.verdict.probabilities))
        frozen = {name: frozenset(types - {type(None)}) for name, types in kinds.items()}
        return cls(tuple(kinds), frozen, tuple(labels), rows, source)

    @property
    def columns(self) -> list[str]:
        """Return the names of all columns; ours get a prefix where the user has such a column."""
        columns = list(self.theirs)
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
                *(cells.get(name) for name in self.theirs),
                *(fields[name] for name in VERDICT_COLUMNS),
                *(line.verdict.probabilities.get(label) for label in self.labels),
            ]


def has_verdict_columns(columns: Collection[str]) -> bool:
    """Return whether a table with these columns is one that ``write_table`` wrote."""
    return all(name in columns or _PREFIX + name in columns for name in _ALWAYS)


def read_verdict_table(path: Path) -> Iterator[tuple[Mapping[str, Any], Verdict]]:
    """Yield the cells of every row of a table that ``write_table`` wrote, with its verdict.

    A verdict has the fields that are columns. It has no ``id`` and no ``row``.

    Raises:
        CustosError: If the file cannot be read, or holds no verdicts.
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
    """Return the column of every field of a verdict; ``None`` in a table that is not ours.

    They stand together, behind the user's columns, of which some may be called alike.
    """
    num = len(VERDICT_COLUMNS)
    for start in reversed(range(len(columns) - num + 1)):
        column_by_field = dict(zip(VERDICT_COLUMNS, columns[start : start + num], strict=True))
        if all(_is_column_of(name, column) for name, column in column_by_field.items()):
            return column_by_field
    return None


def _is_column_of(name: str, column: str) -> bool:
    return column.endswith(name) and not column.removesuffix(name).replace(_PREFIX, "")


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
    """Return the names of the columns of a CSV, TSV or Parquet file.

    Raises:
        CustosError: If a header cannot be read.
        ValueError: If a Parquet file is none.
    """
    if path.suffix != ".parquet":
        return CsvFile(path).columns
    import pyarrow.parquet as pq

    names: list[str] = pq.read_schema(path).names
    return names


def _known_columns(source: Table) -> Sequence[str]:
    if source.is_csv:
        return source.csv.columns
    return table_columns(source.path) if source.is_parquet else ()


class _LongInt:
    """Kind of a whole number that a column of floats would round."""


def _kind(value: Any) -> type:
    """Return the type of a cell; a number too large for a column of numbers counts as text."""
    if type(value) is int and not -_INT64 <= value < _INT64:
        return str
    if type(value) is int and not -_EXACT <= value <= _EXACT:
        return _LongInt
    return type(value)


def cell_text(value: Any) -> Any:
    """Return a cell for a file of text."""
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

    theirs = _parquet_fields(table)
    ours = [_verdict_type(name) for name in VERDICT_COLUMNS]
    types = [*theirs, *ours, *[pa.float64() for _ in table.labels]]
    schema = pa.schema(list(zip(table.columns, types, strict=True)))
    with atomic_path(out) as partial, pq.ParquetWriter(partial, schema) as writer:
        for batch in in_batches(table.cells(), ROWS_AT_ONCE):
            arrays = [
                pa.array([_typed(value, kind) for value in column], kind)
                for column, kind in zip(zip(*batch, strict=True), types, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _parquet_fields(table: GradedTable) -> list[Any]:
    """Return the types of the user's columns: those of a Parquet source, or what its cells are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if table.source.is_parquet:
        schema = pq.read_schema(table.source.path)
        named = named_columns(schema)  # rows hold the names of their numbers
        return [pa.string() if field.name in named else field.type for field in schema]
    by_kinds = {
        frozenset({bool}): pa.bool_(),
        frozenset({int}): pa.int64(),
        frozenset({_LongInt}): pa.int64(),
        frozenset({int, _LongInt}): pa.int64(),
        frozenset({float}): pa.float64(),
        frozenset({int, float}): pa.float64(),
    }
    return [by_kinds.get(table.kinds[name], pa.string()) for name in table.theirs]


def _verdict_type(name: str) -> Any:
    import pyarrow as pa

    if name in _FLAGS:
        return pa.bool_()
    return pa.float64() if name in _NUMBERS else pa.string()


def _typed(value: Any, kind: Any) -> Any:
    """Return a cell as its column takes it."""
    import pyarrow as pa

    if value is None or kind != pa.string():
        return value
    return str(cell_text(value)).encode(errors="replace").decode()
