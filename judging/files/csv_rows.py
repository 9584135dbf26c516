"""CSV and TSV files, and sheets of workbooks: read as others write them, written for people."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from judging.errors import CustosError, system_errors_at
from judging.files.atomic import atomic_write
from judging.files.opening import NOTHING_STATED, TextFormat, not_text, open_text
from judging.files.values import as_text
from judging.files.workbooks import Fault, Workbook, column_name, write_workbook
from judging.types import MAX_IMAGE_CHARS, LabelledExample

BYTE_ORDER_MARK = "\ufeff"
"""Tells Excel that the text is UTF-8."""
DELIMITER_BY_SUFFIX = {".csv": ",", ".tsv": "\t"}
GUARD = "~'"
"""Stands where a spreadsheet would begin to read a formula. No text of people has it there."""
_EDGE = r"(?:\A|(?<=[,;\t\r\n]))"
"""Where a cell may begin, whatever the spreadsheet takes for the delimiter."""
NULL = r"\N"
"""What databases write for a missing value."""
_START = r"[=+\-@\t\r\n＝＋－＠]"
_WHOLE_NULL = r"\\N\Z"
_NUMBER = r"\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?"
_PLAIN_NUMBER = rf'{_NUMBER}"?(?:\Z|[\]}},;\t\r\n])'
_BULLET = r" [^=(|!\r\n]*(?:\Z|[\r\n])"
"""The rest of an item of a list that calls nothing."""
_WHOLE_NUMBER = re.compile(rf"[+-]?{_NUMBER}")
# A quotation mark behind an edge opens a cell, which the next one ends: "" before = is nothing.
_TO_GUARD = re.compile(
    rf"\A(?={_START}|(?:{GUARD})*{_WHOLE_NULL})"
    rf'|{_EDGE}(?=(?:{GUARD})+"*{_START}|"*[=@＝＋－＠])'
    rf'|(?<=[,;\t])(?="*[+-](?!{_PLAIN_NUMBER}))'
    rf'|(?<=[\r\n])(?="*[+-](?!{_PLAIN_NUMBER}|{_BULLET}))'
)
_GUARDED = re.compile(
    rf'{_EDGE}{GUARD}(?=(?:{GUARD})*"*{_START})|\A{GUARD}(?=(?:{GUARD})*{_WHOLE_NULL})'
)


def write_spreadsheet(
    path: Path,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    delimiter: str | None = None,
    choices: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write a workbook, or a CSV or TSV file in UTF-8 with a byte order mark, atomically.

    Texts of CSV and TSV files are guarded (see :func:`guarded`); :class:`CsvFile` reads them as
    they were. ``None`` is an empty cell. The delimiter is by default a comma in ``.csv`` files and
    a tab in ``.tsv`` files. Cells of the columns in ``choices`` offer these words in a workbook.
    """
    if path.suffix == WORKBOOK:
        write_workbook(path, columns, ([_guarded_guard(c) for c in row] for row in rows), choices)
        return
    delimiter = delimiter or DELIMITER_BY_SUFFIX[path.suffix]
    with atomic_write(path) as file:
        file.write(BYTE_ORDER_MARK)
        # Text that tabs separate has quotation marks or none; those of the header say which.
        quoting: Literal[0, 1] = csv.QUOTE_ALL if delimiter == "\t" else csv.QUOTE_MINIMAL
        csv.writer(file, delimiter=delimiter, quoting=quoting).writerow(
            map(spreadsheet_cell, columns)
        )
        csv.writer(file, delimiter=delimiter).writerows(map(spreadsheet_cell, row) for row in rows)


def guarded(text: str) -> str:
    """Return a text with a guard wherever a spreadsheet would begin to read a formula.

    That is at its start, and behind what may separate cells: a spreadsheet of another country cuts
    ``x;=1+1`` in a file whose cells commas separate. Numbers stay, and so do items of a list that
    call nothing. :func:`unguarded` gives the text back, letter for letter.
    """
    return text if _WHOLE_NUMBER.fullmatch(text) else _TO_GUARD.sub(GUARD, text)


def unguarded(cell: str) -> str:
    """Return the text that :func:`guarded` made a cell of; a cell without guards is that text."""
    return _GUARDED.sub("", cell) if GUARD in cell else cell


def _guarded_guard(value: object) -> object:
    """Guard what would be taken for a guard; in a workbook no other text needs one."""
    return guarded(value) if isinstance(value, str) and unguarded(value) != value else value


def spreadsheet_cell(value: object) -> object:
    """Make a cell of a value: a text is guarded, and what UTF-8 cannot hold replaced."""
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    return guarded(text)


WORKBOOK = ".xlsx"
SPREADSHEETS = (*DELIMITER_BY_SUFFIX, WORKBOOK)
"""Endings of the files that spreadsheets open."""
DELIMITERS = {".csv": (",", ";", "\t", "|"), ".tsv": ("\t",)}
"""What may stand between the cells, by the ending of the file; the likeliest first."""
DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}

_WITHOUT_QUOTES = "\t|"
"""Delimiters of text in which a quotation mark may be a letter like any other."""
_EXCEL_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""A first line that tells Excel what separates the cells."""


def row_location(path: Path, number: int) -> str:
    """Tell how errors name a row: by its number, from 1, below the header or in the file."""
    below = " below the header" if path.suffix in SPREADSHEETS else ""
    return f"{path} row {number}{below}"


class CsvFile:
    """A CSV or TSV file whose delimiter and quotation marks are known.

    All rows decide: of all readings, the one under which most of them have as many cells as the
    header. Text that tabs or pipes separate has quotation marks around cells, or none.

    Attributes:
        columns: Names in the header. A column without a name, such as the index that pandas
            writes, is called ``column 1`` after its place; two ``x`` are ``x (column 2)`` and
            ``x (column 5)``.
        delimiter: What separates the cells.
        doubt: What another reading would change; empty if there is none.

    Raises:
        CustosError: If the file is empty or not text, or two columns are called like one field.
    """

    def __init__(self, path: Path, stated: TextFormat = NOTHING_STATED) -> None:
        csv.field_size_limit(max(csv.field_size_limit(), MAX_IMAGE_CHARS))
        self.path = path
        self.encoding = stated.encoding
        with system_errors_at(path), open_text(path, self.encoding) as file:
            line = _EXCEL_LINE.fullmatch(file.readline(80))
        self._num_skipped = 0 if line is None else 1
        given = stated.delimiter or (line and line[1])
        readings = self._readings((given,) if given else DELIMITERS.get(path.suffix, (",",)))
        self._reading, self.doubt = _likeliest(readings)
        self.delimiter = self._reading.delimiter
        self.columns = self._names()

    def rows(self) -> Iterator[tuple[int, dict[str, str] | CustosError]]:
        """Yield ``(number from 1 below the header, cells that are not empty)`` for every row.

        Rows without any text are counted, so that a row of a spreadsheet has its number plus one,
        but are not yielded. A row that cannot be used stands as an error, and the next one follows.
        """
        with self._lines() as lines:
            records = self._reading.records(lines)
            next(records)
            for number, cells in enumerate(records, 1):
                location = row_location(self.path, number)
                if isinstance(cells, csv.Error):
                    yield number, CustosError(f"{location}: {_fault(cells)}")
                    continue
                texts = ["" if cell == NULL else unguarded(cell) for cell in cells]
                if any(map(str.strip, texts)):
                    yield number, self._as_row(number, texts, location)

    @contextmanager
    def _lines(self) -> Iterator[_Lines]:
        with system_errors_at(self.path), open_text(self.path, self.encoding) as file:
            for _ in range(self._num_skipped):
                file.readline()
            yield _Lines(file)

    def _readings(self, delimiters: Sequence[str]) -> list[_Reading]:
        """List all readings under which there is a header, or raise what is wrong with it."""
        readings: list[_Reading] = []
        fault = None
        for delimiter in delimiters:
            for is_quoted in (True, False) if delimiter in _WITHOUT_QUOTES else (True,):
                with self._lines() as lines:
                    reading = _Reading(delimiter, is_quoted)
                    try:
                        first = next(reading.records(lines), [])
                    except csv.Error as error:
                        fault = f"the header cannot be read: {_fault(error)}"
                        continue
                assert not isinstance(first, csv.Error)
                reading.header = first
                quotes_names = any(name[:1] == name[1:][-1:] == '"' for name in first)
                is_possible = is_quoted or reading.width > 1 and not quotes_names
                readings += [reading] if is_possible and first else []
        if fault is not None and all(reading.width < 2 for reading in readings):
            raise CustosError(f"{self.path}: {fault}")
        if not readings:
            raise CustosError(
                f"{self.path}: the file is empty, expected a first row with the names of the "
                "columns"
            )
        likely = [reading for reading in readings if reading.width > 1] or readings
        for reading in likely:
            with self._lines() as lines:
                reading.measure(lines)
        return likely

    def _names(self) -> tuple[str, ...]:
        for name in self._reading.header:
            if (fault := self._text_fault(name)) is not None:
                raise CustosError(f"{self.path}: the header {fault}")
        return _column_names(self.path, self._reading.header)

    def _as_row(self, number: int, cells: list[str], location: str) -> dict[str, str] | CustosError:
        width = len(self.columns)
        if any(cell.strip() for cell in cells[width:]):
            return CustosError(
                f"{location}: {len(cells)} cells, and the header has {width}; a cell that holds "
                f"the {_name(self.delimiter)} between cells must stand in quotation marks"
            )
        if len(cells) == 1 < width or number in self._reading.torn:
            return CustosError(
                f"{location}: {len(cells)} cells, and the header has {width}; if a line break in a "
                "cell cuts the row, the cell must stand in quotation marks; a row that ends early "
                f"needs a {_name(self.delimiter)} behind its last text"
            )
        row = {name: cell for name, cell in zip(self.columns, cells, strict=False) if cell.strip()}
        for name, cell in row.items():
            if (fault := self._text_fault(cell)) is not None:
                return CustosError(f"{location}: column '{name}' {fault}")
        return row

    def _text_fault(self, text: str) -> str | None:
        if "\0" in text:
            encoding = "utf-16-be" if text.startswith("\0") else "utf-16-le"
            return (
                f"holds a NUL character, as UTF-16 text does; state it with --encoding {encoding}, "
                "or save the table as UTF-8 text (Excel: 'CSV UTF-8')"
            )
        try:
            text.encode()
        except UnicodeEncodeError:
            return not_text(self.encoding or "utf-8")
        return None


class _Lines(Iterator[str]):
    """Lines of a file, of which the last ones, those in ``taken``, can be given back."""

    def __init__(self, file: Iterator[str]) -> None:
        self._file = file
        self._given_back: list[str] = []
        self.taken: list[str] = []

    def __next__(self) -> str:
        line = self._given_back.pop() if self._given_back else next(self._file)
        self.taken.append(line)
        return line

    def give_back(self, lines: Sequence[str]) -> None:
        """Give lines again, before those that follow."""
        self._given_back += reversed(lines)


class _Reading:
    """One way to read a file: a delimiter, with quotation marks around cells or without them."""

    def __init__(self, delimiter: str, is_quoted: bool) -> None:
        self.delimiter = delimiter
        self.is_quoted = is_quoted
        self.header: list[str] = []
        self.num_rows = self.num_whole = 0
        self.torn: set[int] = set()
        """Numbers of rows that are two parts of one: a line break outside quotation marks."""
        self.merged = 0
        """Number of the first row whose lines could be rows of their own; 0 if there is none."""

    @property
    def width(self) -> int:
        """Count the cells of the header."""
        return len(self.header)

    def measure(self, lines: _Lines) -> None:
        """Read a file to its end and count the rows that fit the header."""
        records, width = self.records(lines), self.width
        next(records)
        short: tuple[int, int] | None = None
        for number, cells in enumerate(records, 1):
            if not cells:
                continue
            self.num_rows += 1
            if isinstance(cells, csv.Error):
                short = None
            elif len(cells) == width or (len(cells) > width and not any(cells[width:])):
                self.num_whole += 1
                short = None
                if len(lines.taken) > 1 and not self.merged and self._could_be_rows(lines.taken):
                    self.merged = number
            elif 1 < len(cells) < width:
                if short and len(cells) != short[1] and len(cells) + short[1] == width + 1:
                    self.torn |= {short[0], number}
                short = number, len(cells)

    def records(self, lines: _Lines) -> Iterator[list[str] | csv.Error]:
        """Yield the cells of the header, the first row with a text, and of every row, or its fault.

        A header that cannot be read raises ``csv.Error``.
        """
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if self.is_quoted else csv.QUOTE_NONE
        reader = csv.reader(lines, delimiter=self.delimiter, quoting=quoting, strict=True)
        is_header = True
        while True:
            lines.taken.clear()
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if is_header:
                    raise
                self._leave(lines)
                yield error
            else:
                if is_header and not any(map(str.strip, cells)):
                    continue
                yield cells
            is_header = False

    def _leave(self, lines: _Lines) -> None:
        """Leave a row whose quotation marks are wrong, and no other row if that is sure.

        The row ends where its quotation marks are even in number. If every line before that is a
        whole row by itself, though, its first line alone is wrong.
        """
        num_quotes = sum(line.count('"') for line in lines.taken)
        num_chars = sum(map(len, lines.taken))
        while num_quotes % 2 and num_chars < 2 * MAX_IMAGE_CHARS:
            if (line := next(lines, None)) is None:
                break
            num_quotes += line.count('"')
            num_chars += len(line)
        others = lines.taken[1:]
        between, last = (others, []) if num_quotes % 2 else (others[:-1], others[-1:])
        delimiter = re.escape(self.delimiter)
        cell = rf'(?:"(?:[^"]|"")*"|[^"{delimiter}\r\n]*)'
        row = re.compile(rf"{cell}(?:{delimiter}{cell}){{{self.width - 1}}}[\r\n]*|\s*")
        open_row = re.compile(rf'(?:{cell}{delimiter})*"(?:[^"]|"")*')
        is_sure = all(map(row.fullmatch, between)) and all(map(open_row.fullmatch, last))
        if self.width > 1 and is_sure:
            lines.give_back(others)

    def _could_be_rows(self, lines: Sequence[str]) -> bool:
        """Tell whether each of several lines has the header's number of cells, of more than two."""
        num = self.width - 1
        return num > 1 and all(line.count(self.delimiter) == num for line in lines)


def _likeliest(readings: Sequence[_Reading]) -> tuple[_Reading, str]:
    """Return the reading that most rows fit, and what another one would change.

    Of equal ones it is that with more columns. A quoted text that looks like the ends and starts of
    whole rows is taken for such rows where tabs or pipes separate the cells.
    """

    def rank(reading: _Reading) -> tuple[bool, float, int]:
        share_whole = reading.num_whole / reading.num_rows if reading.num_rows else 1.0
        return reading.width > 1, share_whole, reading.width

    best = max(readings, key=rank)
    for other in readings:
        is_same = other.delimiter == best.delimiter and rank(other) == rank(best)
        if is_same and other.num_rows > best.num_rows:
            num = other.num_rows - best.num_rows
            return other, (
                "quotation marks were read as part of the text, as every line has the cells of a "
                f"row; as marks around cells they would leave {num} rows fewer. If they are that, "
                "put the names in the first row in quotation marks too"
            )
    if best.merged:
        return best, (
            f"row {best.merged} stands on several lines in quotation marks, each of which could be "
            "a row of its own; if it is, a quotation mark too many joins them: delete it"
        )
    return best, ""


class SheetFile:
    """The first sheet of a workbook, whose first row with a cell names the columns.

    Attributes:
        columns: Names in the header, as those of a :class:`CsvFile`.
        doubt: Which other sheets there are; empty if there are none.

    Raises:
        CustosError: As :class:`judging.files.workbooks.Workbook`; if the sheet is empty, or two
            columns are called like one field.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        book = Workbook(path)
        self._rows = sorted(book.rows.items())
        if not self._rows:
            raise CustosError(
                f"{path}: sheet '{book.sheet}' is empty, expected a first row with the names of "
                "the columns"
            )
        self._header, names = self._rows[0]
        if fault := next((each for each in names.values() if isinstance(each, Fault)), None):
            raise CustosError(f"{path}: cell {fault.place} {fault.reason}")
        texts = [str(as_text(names.get(at, ""))) for at in range(1, max(names) + 1)]
        self.columns = _column_names(path, texts)
        others = ", ".join(f"'{name}'" for name in book.other_sheets)
        self.doubt = f"sheet '{book.sheet}' was read, and not {others}" if others else ""

    def rows(self) -> Iterator[tuple[int, dict[str, Any] | CustosError]]:
        """Yield rows as :meth:`CsvFile.rows` does; numbers, dates and truth values stay."""
        for number, cells in self._rows[1:]:
            below = number - self._header
            location = row_location(self.path, below)
            fault = next((each for each in cells.values() if isinstance(each, Fault)), None)
            if fault is not None:
                yield below, CustosError(f"{location}: cell {fault.place} {fault.reason}")
            elif max(cells) > len(self.columns):
                place = f"{column_name(max(cells))}{number}"
                yield below, CustosError(f"{location}: cell {place} has no name in the header")
            else:
                row = {self.columns[at - 1]: cell for at, cell in sorted(cells.items())}
                texts = {n: unguarded(c) for n, c in row.items() if isinstance(c, str)}
                yield below, row | texts


def open_spreadsheet(path: Path, stated: TextFormat = NOTHING_STATED) -> CsvFile | SheetFile:
    """Open a CSV or TSV file, or a workbook."""
    return SheetFile(path) if path.suffix == WORKBOOK else CsvFile(path, stated)


def _column_names(path: Path, header: Sequence[str]) -> tuple[str, ...]:
    """Name the columns of a header, so that no two have one name."""
    texts = (unguarded(name).strip() for name in header)
    names = [name or f"column {number}" for number, name in enumerate(texts, 1)]
    counts = Counter(names)
    for number, name in enumerate(names, 1):
        if counts[name] > 1 and name not in LabelledExample.model_fields:
            names[number - 1] = f"{name} (column {number})"
    check_names(path, names)
    return tuple(names)


def check_names(path: Path, names: Sequence[str]) -> None:
    """Raise ``CustosError`` if a column of a table has no name, or two have the same one."""
    for column, name in enumerate(names, 1):
        if not name:
            raise CustosError(f"{path}: column {column} has no name in the header")
    for name, count in Counter(names).items():
        if count > 1:
            raise CustosError(
                f"{path}: {count} columns have the name '{name}' in the header; rename all but one"
            )


def _name(delimiter: str) -> str:
    return DELIMITER_NAMES.get(delimiter, f"'{delimiter}'")


def _fault(error: csv.Error) -> str:
    text = str(error)
    if "field larger than field limit" in text:
        return (
            f"a cell of more than {MAX_IMAGE_CHARS:,} characters; is a quotation mark not closed?"
        )
    if "unexpected end of data" in text:
        return "a quotation mark is not closed before the file ends"
    return f"{text}; a quotation mark inside a quoted cell must be written twice"
