"""Workbooks of spreadsheets (``.xlsx``): the first sheet, read as a person sees it, and written.

Our own reader, as those of libraries take a merged cell and a formula without a stored result for
an empty cell, and unpack whatever they are given. Here they are filled or refused, and bounded.
"""

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from judging.errors import CustosError, system_errors_at
from judging.files.atomic import atomic_path
from judging.files.values import is_empty

MAX_BYTES = 1 << 28
"""Most bytes that the parts of a workbook which are read may unpack to."""
MAX_CELLS = 5_000_000
MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384
"""Rows and columns that a sheet can have."""
MAX_CELL_CHARS = 32_767
"""Characters that a spreadsheet keeps of a cell."""
MAX_TREE_BYTES = 1 << 24
"""The same for small parts, such as the list of sheets."""
_NO_WORKBOOK = (zipfile.BadZipFile, ElementTree.ParseError, zlib.error)
_OLE = b"\xd0\xcf\x11\xe0"
"""Beginning of an old workbook, and of one with a password."""
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_PLACE = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})")
_DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
"""Numbers of the formats of dates and times that need no definition."""
_TIMES = {18, 19, 20, 21, 32, 33, 45, 46, 47, 55, 56}
_WITH_TIME = {22, *_TIMES}
_BUILT_IN = {1: "0", 2: "0.00", 9: "0%", 10: "0.00%"}
_QUOTED = re.compile(r'"[^"]*"|\\.|\[(?!(?i:h+|m+|s+)\])[^\]]*\]|_.|\*.')
_DIGITS = re.compile(r"(0+)(?:\.(0+))?(%?)")
"""Formats of numbers that change the digits: leading zeros, a number of decimals, per cent."""


class Fault(NamedTuple):
    """Cell whose content cannot be known."""

    place: str
    reason: str


class Workbook:
    """The first visible sheet of a workbook.

    Attributes:
        rows: Cells of each row that has some, by its number in the sheet from 1 and by column.
        other_sheets: Names of the other visible sheets.
        sheet: Name of the sheet.

    Raises:
        CustosError: If the file is no workbook, has no sheet, or holds more than is likely.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[int, dict[int, Any]] = {}
        with system_errors_at(path), self._opened() as archive:
            workbook, folder = self._workbook(archive)
            targets = self._targets(archive, workbook)
            root = self._tree(archive, workbook)
            sheets = [
                (each.get("name", ""), targets.get(_attribute(each, "id"), ""))
                for each in _all(root, "sheet")
                if each.get("state", "visible") == "visible"
            ]
            if not sheets or sheets[0][1] not in archive.namelist():
                raise CustosError(f"{path}: has no sheet with cells")
            self.sheet, part = sheets[0]
            self.other_sheets = [name for name, _ in sheets[1:]]
            starts_1904 = any(p.get("date1904") in ("1", "true") for p in _all(root, "workbookPr"))
            self._epoch = datetime(1904, 1, 1) if starts_1904 else datetime(1899, 12, 30)
            self._texts = self._shared_texts(archive, f"{folder}/sharedStrings.xml")
            self._formats = self._number_formats(archive, f"{folder}/styles.xml")
            self._read_sheet(archive, part)

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        with self.path.open("rb") as file:
            is_old = file.read(4) == _OLE
        if is_old:
            raise CustosError(
                f"{self.path}: is an old workbook, or one with a password; save it as .xlsx "
                "without one, or as CSV"
            )
        try:
            with zipfile.ZipFile(self.path) as archive:
                yield archive
        except (*_NO_WORKBOOK, NotImplementedError, RuntimeError, EOFError) as error:
            raise CustosError(f"{self.path}: is no .xlsx workbook: {error}") from None
        except (ValueError, LookupError, OverflowError) as error:
            raise CustosError(f"{self.path}: a part of it is damaged: {error}") from None

    def _part(self, archive: zipfile.ZipFile, name: str, max_bytes: int = MAX_BYTES) -> IO[bytes]:
        """Open a part; its unpacked size is known, and reading ends there."""
        if archive.getinfo(name).file_size > max_bytes:
            raise CustosError(
                f"{self.path}: '{name}' unpacks to more than {max_bytes >> 20} MB; save the sheet "
                "as CSV"
            )
        return archive.open(name)

    def _tree(self, archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
        with self._part(archive, name, MAX_TREE_BYTES) as file:
            return ElementTree.parse(file).getroot()

    def _elements(
        self, archive: zipfile.ZipFile, name: str, *whole: str
    ) -> Iterator[tuple[str, str, ElementTree.Element]]:
        """Yield starts and ends of elements; those called as in ``whole`` are then forgotten."""
        above: list[ElementTree.Element] = []
        with self._part(archive, name) as file:
            for event, element in ElementTree.iterparse(file, ("start", "end")):
                kind = _name(element)
                yield event, kind, element
                if event == "start":
                    above.append(element)
                    continue
                above.pop()
                if kind in whole and above:
                    above[-1].clear()

    def _workbook(self, archive: zipfile.ZipFile) -> tuple[str, str]:
        """Find the part that lists the sheets, and the folder of the others."""
        for each in _all(self._tree(archive, "_rels/.rels"), "Relationship"):
            if each.get("Type", "").endswith("/officeDocument"):
                name = each.get("Target", "").lstrip("/")
                return name, posixpath.dirname(name)
        raise CustosError(f"{self.path}: is no .xlsx workbook")

    def _targets(self, archive: zipfile.ZipFile, workbook: str) -> dict[str, str]:
        folder, name = posixpath.split(workbook)
        return {
            each.get("Id", ""): posixpath.normpath(
                posixpath.join("/", folder, each.get("Target", ""))
            ).lstrip("/")
            for each in _all(self._tree(archive, f"{folder}/_rels/{name}.rels"), "Relationship")
        }

    def _shared_texts(self, archive: zipfile.ZipFile, name: str) -> list[str]:
        if name not in archive.namelist():
            return []
        texts: list[str] = []
        for event, kind, element in self._elements(archive, name, "si"):
            if event == "end" and kind == "si":
                texts.append(_text(element))
                self._check_number(len(texts))
        return texts

    def _check_number(self, num_cells: int) -> None:
        if num_cells > MAX_CELLS:
            raise CustosError(f"{self.path}: more than {MAX_CELLS:,} cells; save the sheet as CSV")

    def _number_formats(self, archive: zipfile.ZipFile, name: str) -> list[tuple[int, str]]:
        """List number and definition of the format of every style of cells."""
        if name not in archive.namelist():
            return []
        root = self._tree(archive, name)
        defined = {
            int(each.get("numFmtId", 0)): each.get("formatCode", "")
            for each in _all(root, "numFmt")
        }
        of_cells = next(iter(_all(root, "cellXfs")), ())
        numbers = [int(each.get("numFmtId", 0)) for each in of_cells]
        return [(number, defined.get(number, _BUILT_IN.get(number, ""))) for number in numbers]

    def _read_sheet(self, archive: zipfile.ZipFile, part: str) -> None:
        row = column = num_cells = 0
        merged: list[str] = []
        for event, kind, element in self._elements(archive, part, "c", "row", "mergeCell"):
            if event == "start" and kind == "row":
                row, column = int(element.get("r", row + 1)), 0
            elif event == "end" and kind == "c":
                place = _PLACE.fullmatch(element.get("r", ""))
                column = _column_number(place[1]) if place else column + 1
                num_cells += 1
                self._check_number(num_cells)
                if row > MAX_ROWS or column > MAX_COLUMNS:
                    raise CustosError(f"{self.path}: has a cell where a sheet has none")
                value = self._value(element, f"{column_name(column)}{row}")
                if not is_empty(value):
                    self.rows.setdefault(row, {})[column] = value
            elif event == "end" and kind == "mergeCell":
                merged.append(element.get("ref", ""))
        self._fill_merged(merged)

    def _value(self, cell: ElementTree.Element, place: str) -> Any:
        parts = {_name(part): part for part in cell}
        kind, written = cell.get("t", "n"), parts["v"].text if "v" in parts else None
        if kind == "inlineStr":
            return _text(parts["is"]) if "is" in parts else None
        if written is None:
            if "f" in parts:
                return Fault(place, "holds a formula whose result the file does not have")
            return None
        if kind == "s":
            return self._texts[int(written)]
        if kind == "str":
            return _unescaped(written)
        if kind == "b":
            return written.strip() in ("1", "true")
        if kind == "e":
            return Fault(place, f"holds the error {written}")
        if kind == "d":
            return datetime.fromisoformat(written)
        style = int(cell.get("s", 0))
        number, definition = self._formats[style] if style < len(self._formats) else (0, "")
        try:
            return self._number(written, number, definition)
        except (OverflowError, ValueError):
            return Fault(place, f"holds the number {written[:40]}, which its format cannot show")

    def _number(self, written: str, number: int, definition: str) -> Any:
        value = float(f"{float(written):.15g}")  # as many digits as a spreadsheet shows
        plain = _QUOTED.sub("", definition.partition(";")[0]).lower().replace("general", "")
        if number in _DATE_FORMATS or re.search("[dmyhs]", plain):
            has_time = number in _WITH_TIME or bool(re.search("[hs]", plain))
            has_date = number not in _TIMES and (
                number in _DATE_FORMATS or re.search("[dy]", plain)
            )
            span = timedelta(seconds=round(value * 86_400))
            if "[" in plain or number == 46 or (has_time and not has_date and value >= 1):
                return span
            if has_time and not has_date:
                return (datetime.min + span).time()
            if self._epoch.year == 1899 and value < 61:  # it counts a day that never was
                span += timedelta(days=1)
            moment = self._epoch + span
            return moment if has_time else moment.date()
        shown = _DIGITS.fullmatch(definition)
        if shown and (len(shown[1]) > 1 or shown[2] or shown[3]):
            digits = len(shown[2] or "")
            factor = 100 if shown[3] else 1
            width = len(shown[1]) + (digits + 1 if digits else 0) + (value < 0)
            return f"{value * factor:0{width}.{digits}f}{shown[3]}"
        return int(value) if value.is_integer() else value

    def _fill_merged(self, merged: Sequence[str]) -> None:
        """Give every row of a cell that is merged over rows what that cell holds."""
        work = 0
        for ref in merged:
            ends = list(filter(None, map(_PLACE.fullmatch, ref.split(":"))))
            if len(ends) != 2:
                continue
            left, right = (_column_number(end[1]) for end in ends)
            top, bottom = (int(end[2]) for end in ends)
            value = self.rows.get(top, {}).get(left)
            if left != right and value is not None:
                value = Fault(ref, "is one cell over several columns; divide it")
            rows = range(top, min(bottom, max(self.rows, default=0)) + 1)
            work += len(rows) * (min(right, MAX_COLUMNS) - left + 1)
            if work > MAX_CELLS:
                raise CustosError(f"{self.path}: more than {MAX_CELLS:,} merged cells")
            for row in rows if value is not None else ():
                if row in self.rows:
                    self.rows[row] |= dict.fromkeys(range(left, right + 1), value)


def write_workbook(
    path: Path,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    choices: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write a workbook of one sheet, atomically; texts are texts, whatever they look like.

    The cells of a column in ``choices`` offer these words. Raise ``CustosError`` if a text is
    longer than a cell can be, or if there are more rows or columns than a sheet has.
    """
    parts = {
        "[Content_Types].xml": (
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType='
            '"application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/vnd.openxmlformats-officedocument'
            '.spreadsheetml.worksheet+xml"/>'
            '<Override PartName="/xl/workbook.xml" ContentType="application/'
            'vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>'
        ),
        "_rels/.rels": _relationship("officeDocument", "xl/workbook.xml"),
        "xl/_rels/workbook.xml.rels": _relationship("worksheet", "sheet.xml"),
        "xl/workbook.xml": (
            f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>'
            '<sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>'
        ),
    }
    with (
        atomic_path(path) as partial,
        zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, content in parts.items():
            archive.writestr(name, _DECLARATION + content)
        with archive.open("xl/sheet.xml", "w", force_zip64=True) as file:
            file.write(
                f'{_DECLARATION}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView '
                'workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" '
                'state="frozen"/></sheetView></sheetViews><sheetData>'.encode()
            )
            number = 0
            for number, row in enumerate(chain([columns], rows), 1):
                cells = (_cell(path, number, at, value) for at, value in enumerate(row, 1))
                file.write(f'<row r="{number}">{"".join(cells)}</row>'.encode())
            offered = "".join(
                _offer(column_name(columns.index(name) + 1), number, words)
                for name, words in (choices or {}).items()
                if name in columns
            )
            count = offered.count("<dataValidation ")
            lists = f'<dataValidations count="{count}">{offered}</dataValidations>' if count else ""
            file.write(f"</sheetData>{lists}</worksheet>".encode())


_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def _relationship(kind: str, target: str) -> str:
    return (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{_RELATIONS}/{kind}" Target="{target}"/></Relationships>'
    )


def _offer(column: str, last: int, words: Sequence[str]) -> str:
    """Write that the cells of a column offer words; nothing if a list cannot hold them."""
    listed = ",".join(words).replace('"', '""')
    if len(listed) > 255 or any("," in word for word in words) or last < 2:
        return ""
    return (
        f'<dataValidation type="list" allowBlank="1" sqref="{column}2:{column}{last}">'
        f"<formula1>{escape(chr(34) + listed + chr(34))}</formula1></dataValidation>"
    )


def _cell(path: Path, row: int, column: int, value: object) -> str:
    place = f"{column_name(column)}{row}"
    if row > MAX_ROWS or column > MAX_COLUMNS:
        raise CustosError(
            f"{path}: cell {place} is beyond the {MAX_ROWS:,} rows and {MAX_COLUMNS:,} columns of "
            "a sheet; write a .csv file"
        )
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float) and abs(value) < 1e15:
        return f'<c r="{place}"><v>{value!r}</v></c>'
    text = value.isoformat() if isinstance(value, date | time) else str(value)
    if len(text) > MAX_CELL_CHARS:
        raise CustosError(
            f"{path}: cell {place} would hold {len(text):,} characters, and a spreadsheet keeps "
            f"{MAX_CELL_CHARS:,}; write a .csv file"
        )
    text = _ESCAPED.sub(r"_x005F_x\1_", text)
    text = _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text).replace("\r", "_x000D_")
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'


def column_name(number: int) -> str:
    """Name a column by its number from 1: A, ..., Z, AA."""
    name = ""
    while number:
        number, rest = divmod(number - 1, 26)
        name = chr(ord("A") + rest) + name
    return name


def _column_number(name: str) -> int:
    number = 0
    for letter in name:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _attribute(element: ElementTree.Element, name: str) -> str:
    return next((v for k, v in element.items() if k.rpartition("}")[2] == name and "}" in k), "")


def _all(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [element for element in root.iter() if _name(element) == name]


def _text(element: ElementTree.Element) -> str:
    """Join the runs of a text; how it is pronounced is no part of it."""
    if _name(element) == "rPh":
        return ""
    own = element.text or "" if _name(element) == "t" else ""
    return _unescaped(own) + "".join(map(_text, element))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text
