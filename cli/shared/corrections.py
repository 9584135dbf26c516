"""People's labels of single rows, taken back into the table that the rows are of."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cli.shared.review_file import (
    CORRECTED_AT,
    CORRECTED_BY,
    LABEL_BEFORE,
    PERSONS_LABEL,
    ROW_KEY,
    content_hash,
    field_columns,
    joined,
    plain_id,
)
from cli.shared.tables import read_requests
from cli.shared.verdicts import cell_text
from data_prep.tables.cells import DEFAULT_SEPARATOR, as_list, json_value, with_nested_columns
from data_prep.tables.labels import (
    in_own_words,
    in_three_levels,
    is_word_of,
    needs_three_levels,
    with_our_labels,
)
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow, parse_table
from data_prep.tables.source import Table, open_table
from evaluation.correction.scores import SAMPLING_PROBABILITY
from evaluation.outcomes import full_label
from judging.errors import CustosError, FieldError
from judging.files.atomic import atomic_path, write_text
from judging.files.csv_rows import (
    BYTE_ORDER_MARK,
    DELIMITER_BY_SUFFIX,
    CsvFile,
    write_spreadsheet,
)
from judging.files.opening import NOTHING_STATED, TextFormat
from judging.files.parquet import named_columns
from judging.files.records import decode_json, key_of_rows, read_json, write_json, write_records
from judging.files.values import as_text, is_empty
from judging.types import JudgeRequest, LabelledExample, Verdict, parse_record

_KEY = re.compile(r"r(\d{1,18})-([0-9a-f]{12})")
_OF_OLD_LABEL = ("error_type", "critique", "confidence", "score", "tags")
"""Fields that say why the label is what it is; they go with it."""
_MOST_NAMED = 10
TEXTS = (".json", ".jsonl", *DELIMITER_BY_SUFFIX)


@dataclass(frozen=True)
class Correction:
    """Row of a file with corrections; texts are empty where it says nothing."""

    number: int
    """Number of the row in its file."""
    place: str
    """File and row that it stands in."""
    asked: tuple[str, str, str]
    """Key, id and content, by which the row of the table is found; only review files have keys."""
    written: str
    """Label in the words of the table."""
    fields: Mapping[str, object]
    """Cells of other fields about the label."""
    who: str
    when: str
    chance: float | None
    example: LabelledExample | None = None
    """Row of the table with this label in our words; ``None`` where that cannot be read."""

    @property
    def label(self) -> str:
        """Spell the label in our words, with its error type."""
        return self.written if self.example is None else full_label(self.example)


@dataclass
class Corrections:
    """Labels of people by row number of the table."""

    files: list[Path] = field(default_factory=list)
    by_row: dict[int, list[Correction]] = field(default_factory=lambda: defaultdict(list))
    chances: dict[int, float] = field(default_factory=dict)
    """Probabilities with which rows were drawn, of those without a label too."""
    unlabelled: dict[Path, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Numbers of the rows of each file that have no label yet."""
    unknown: dict[Path, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Numbers of the labelled rows of each file that the table does not have."""


class RowsOfTable:
    """Rows of a table, which are looked up by key, id or content."""

    def __init__(self, source: Path, mapping: TableMapping) -> None:
        self.table, self.mapping = open_table(source, mapping.text_format), mapping
        self.cells: dict[int, dict[str, Any]] = {}
        self.requests: dict[int, JudgeRequest | Verdict] = {}
        self.faults: list[CustosError] = []
        """Errors of the rows that cannot be read, and so not be written again."""
        self._by_hash: dict[str, dict[int, None]] = defaultdict(dict)
        self._by_id: dict[str, dict[int, None]] = defaultdict(dict)
        id_column = field_columns(mapping).get("id", "id")
        read = zip(read_requests(self.table, mapping), self.table.rows(), strict=True)
        for (number, request), (_, row) in read:
            self.requests[number] = request
            if not isinstance(row, dict):
                fault = CustosError(f"{self.table.location(number)}: expected an object")
                self.faults.append(row if isinstance(row, CustosError) else fault)
                row = {}
            named = with_nested_columns(row, mapping.columns.values())
            # Names of columns are spelt as in the mapping; a spreadsheet has no nested cells.
            self.cells[number] = named if self.table.is_spreadsheet else row
            self._by_hash[content_hash(request, named)][number] = None
            if not is_empty(named.get(id_column)):
                self._by_id[plain_id(request.id)][number] = None

    def places(self, key: str, row_id: str = "", content: str = "") -> tuple[int, ...]:
        """Find the numbers of the rows that a row may be, by its key, or else by what is judged.

        Its id decides between rows that are equal, and no more: files of two tables may count
        their rows alike.
        """
        if match := _KEY.fullmatch(key.strip()):
            alike = self._by_hash.get(match[2], {})
            number = int(match[1]) if int(match[1]) in alike else _only(alike)
            return () if number is None else (number,)
        alike = self._by_hash.get(content, {})
        named = self._by_id.get(plain_id(row_id), {})
        fewer, more = sorted((alike, named), key=len)
        return tuple([number for number in fewer if number in more] or alike)

    def corrections(self, files: Sequence[Path], who: str = "") -> Corrections:
        """Read the labels that people gave rows of the table.

        A file has the shape of a review file or of the table, or our own. ``who`` gave the labels
        of rows that name nobody. Raise ``CustosError`` if a file cannot be read, or a label is
        none of the row's task.
        """
        found = Corrections()
        for path in files:
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC) if path.exists() else None
            day = f"{changed:%Y-%m-%dT%H:%MZ}" if changed else ""
            found.files.append(path)
            rows = list(_labelled_rows(path, self.mapping))
            known: dict[tuple[int, ...], tuple[int, ...]] = {}  # equal rows share theirs
            places = [known.setdefault(at, at) for at in (self.places(*row.asked) for row in rows)]
            # Rows that are equal stand in the order of the table, if the file has them all.
            equal = {at: iter(at) for at, n in Counter(places).items() if 1 < n == len(at)}
            for row, at in zip(rows, places, strict=True):
                number = next(equal[at]) if at in equal else _only(at)
                if number is not None and row.chance is not None:
                    found.chances[number] = row.chance
                if not row.written:
                    found.unlabelled[path].append(row.number)
                elif number is None:
                    found.unknown[path].append(row.number)
                else:
                    named = {n: row.fields[n] for n in ("error_type",) if n in row.fields}
                    labelled = {PERSONS_LABEL: row.written, **named}
                    example, written = self._labelled(number, labelled, row.place), row.written
                    words = self.mapping.labels  # the label is spelt as the table does
                    if example is not None and words and not is_word_of(written, words):
                        written = in_own_words(full_label(example), words)
                    given = replace(
                        row,
                        example=example,
                        written=written,
                        who=row.who or who,
                        when=row.when or day,
                    )
                    found.by_row[number].append(given)
        return found

    def labels(self) -> dict[int, str]:
        """Look up the labels of the rows as the table is read, in our words; empty without one.

        Where people have a column each, it is the label that most of them gave.
        """
        labels: dict[int, str] = {}
        with suppress(CustosError):  # no column can be read as labels
            for number, row in parse_table(self.table, LabelledExample, self.mapping):
                labels[number] = row.label if isinstance(row, BadRow) else full_label(row)
        return labels

    def _labelled(
        self, number: int, texts: Mapping[str, object], place: str
    ) -> LabelledExample | None:
        request, mapping = self.requests[number], self.mapping
        if isinstance(request, Verdict):  # what it asks cannot be read
            return None
        fields = {**request.model_dump(exclude_unset=True), **texts}
        example = parse_record(LabelledExample, fields, place)
        if needs_three_levels(example, mapping.labels):  # as the table with the label is read
            example = in_three_levels(example)
        return with_our_labels(example, mapping.labels, place, mapping.columns)


def _labelled_rows(path: Path, mapping: TableMapping) -> Iterator[Correction]:
    """Yield the rows of a file with corrections; names of columns are the table's, or ours."""
    table = open_table(path, _format_of(path, mapping.text_format))
    parts = mapping.columns.values()
    rows = [(number, with_nested_columns(row, parts)) for number, row in table.rows()]
    columns = {c for _, row in rows if isinstance(row, dict) for c in row}
    if table.is_spreadsheet:
        columns |= set(table.columns(parts))
    there = {name: column for name, column in mapping.columns.items() if column in columns}
    mapping = mapping.model_copy(update={"columns": there})
    names = field_columns(mapping)
    parsed: Iterator[tuple[int, LabelledExample | BadRow | None]]
    if ROW_KEY in columns:
        parsed = ((number, None) for number, _ in rows)
    else:
        parsed = parse_table(table, LabelledExample, mapping)
    for (number, row), (_, example) in zip(rows, parsed, strict=True):
        if isinstance(row, CustosError):
            raise row
        if not isinstance(row, dict):
            raise CustosError(f"{table.location(number)}: expected an object")
        cells = {
            name: row[column] for name, column in names.items() if not is_empty(row.get(column))
        }
        label = str(as_text(cells.get(PERSONS_LABEL, "")))
        who, chance = row.get(CORRECTED_BY), _chance(cells, table.location(number))
        row_id, content = "", ""
        if isinstance(example, BadRow) and example.label:
            raise example.error
        if isinstance(example, LabelledExample):
            label = full_label(example)
            row_id, content = example.id, content_hash(example, {})
            who = who or ", ".join(example.annotators)
            chance = example.sampling_probability
        yield Correction(
            number,
            table.location(number),
            (str(row.get(ROW_KEY) or ""), row_id, content),
            label,
            {name: cells[name] for name in (*_OF_OLD_LABEL, "second_label") if name in cells},
            str(as_text(who) or ""),
            str(as_text(row.get(CORRECTED_AT)) or ""),
            chance,
        )


def tasks_of_reviews(files: Sequence[Path], mapping: TableMapping) -> set[str]:
    """Name the tasks that review files say their rows are of; one that cannot be read says none."""
    tasks: set[str] = set()
    for path in files:
        with suppress(CustosError):  # is reported where the labels are read
            for _, row in open_table(path, _format_of(path, mapping.text_format)).rows():
                if isinstance(row, dict) and ROW_KEY in row and not is_empty(row.get("task")):
                    tasks.add(str(row["task"]))
    return tasks


def _format_of(path: Path, of_table: TextFormat) -> TextFormat:
    """Find the format of a file that people may have saved in another one than the table's.

    What is not Unicode is read as cp1252, in which spreadsheets save, unless another one is stated.
    Rows are found by their content, so that none is taken if that is wrong.
    """
    if path.suffix not in TEXTS or not path.is_file():
        return of_table
    content = path.read_bytes()
    has_nul = b"\0" in content  # such as UTF-16, which is known by its first bytes
    try:
        encoding = of_table.encoding if has_nul or not content.decode() else None
    except UnicodeDecodeError:
        encoding = of_table.encoding or "cp1252"
    stated = replace(of_table, encoding=encoding)
    if of_table == NOTHING_STATED:
        return stated
    if path.suffix in DELIMITER_BY_SUFFIX and len(CsvFile(path, stated).columns) < 2:
        return replace(stated, delimiter=None)
    return stated


def _chance(cells: Mapping[str, Any], place: str) -> float | None:
    if (given := cells.get(SAMPLING_PROBABILITY)) is None:
        return None
    if (chance := _number(given)) is not None and 0 < chance <= 1:
        return chance
    fault = f"'{given}' is no number above 0, up to 1"
    raise FieldError(SAMPLING_PROBABILITY, fault, place)


def _number(cell: object) -> float | None:
    """Read a number, also with a decimal comma; ``None`` if it is none."""
    with suppress(ValueError):
        return float(str(cell).replace(",", "."))
    return None


def _only(numbers: Collection[int]) -> int | None:
    return next(iter(numbers)) if len(numbers) == 1 else None


class MergedTable:
    """A table with the corrections of people in it.

    Raise ``CustosError`` if two corrections of one row differ, a row that was corrected is not in
    the table, or one of the table's cannot be read.
    """

    def __init__(self, rows: RowsOfTable, corrections: Corrections) -> None:
        if rows.faults:
            raise rows.faults[0]
        self.rows, self.corrections = rows, corrections
        differ = []
        for number, given in sorted(corrections.by_row.items()):
            if len({each.label for each in given}) > 1:
                labels = "; ".join(f"{each.place}: {each.written}" for each in given)
                differ.append(f"row {number} ({labels})")
        if differ:
            raise CustosError(
                f"{rows.table.name}: corrections of one row differ: {_listed(differ)}; leave one "
                "label of each"
            )
        for path, numbers in corrections.unknown.items():
            raise CustosError(
                f"{path}: {_listed(map(str, numbers), 'row')} with a label "
                f"{'are' if len(numbers) > 1 else 'is'} of no row of {rows.table.name}, or of "
                "several, as it is now; give the table that was reviewed, or empty these labels"
            )
        if not corrections.by_row:
            raise CustosError(f"{', '.join(map(str, corrections.files))}: no row has a label")
        before = rows.labels()
        self.changed = {
            number
            for number, given in corrections.by_row.items()
            if before.get(number, "") != given[0].label
        }
        """Numbers of the rows whose label is another one than before."""
        column = field_columns(rows.mapping)[SAMPLING_PROBABILITY]
        known = {
            n: _chance({SAMPLING_PROBABILITY: row[column]}, rows.table.location(n))
            for n, row in rows.cells.items()
            if not is_empty(row.get(column))
        }
        chances = corrections.chances
        is_same = all(chance == chances.get(n) for n, chance in known.items())
        self.earlier_draw = dict.fromkeys(sorted(known) if chances and not is_same else ())
        """Numbers of the rows whose probability is that of another draw."""

    def lines(self) -> Iterator[str]:
        """Say which rows people labelled twice or not at all, and what else to know."""
        for number, given in sorted(self.corrections.by_row.items()):
            if len(given) > 1:
                places = ", ".join(each.place for each in given)
                yield f"row {number} has the same label several times: {places}"
        for path, numbers in self.corrections.unlabelled.items():
            have = "have" if len(numbers) > 1 else "has"
            yield f"{path}: {_listed(map(str, numbers), 'row')} {have} no label yet"
        if self.earlier_draw:
            yield (
                f"sampling probabilities of an earlier draw are emptied "
                f"({_listed(map(str, self.earlier_draw), 'row')}): rows of two draws cannot be "
                "weighed together"
            )

    def cells(self, out: Path) -> Iterator[dict[str, Any]]:
        """Yield the rows of the table by its own columns, for a file at ``out``."""
        rows, mapping = self.rows, self.rows.mapping
        columns = field_columns(mapping)
        is_open = rows.table.is_open or bool(mapping.columns)
        is_moved = rows.table.folder.resolve() != out.parent.resolve()
        for number, row in rows.cells.items():
            cells = dict(row)
            request, pictures = rows.requests[number], row.get(columns["images"])
            if is_moved and not is_empty(pictures) and isinstance(request, JudgeRequest):
                names, separator = request.images, mapping.separator or DEFAULT_SEPARATOR
                # Pictures whose bytes are in the table need no other name.
                if isinstance(pictures, str):
                    cells[columns["images"]] = joined(names, separator)
                elif isinstance(pictures, list) and all(isinstance(p, str) for p in pictures):
                    cells[columns["images"]] = [*names]
            if number in self.earlier_draw:
                cells.pop(columns[SAMPLING_PROBABILITY])
            if given := self.corrections.by_row.get(number):
                self._correct(cells, number, given, is_open)
            yield cells

    def _correct(
        self, cells: dict[str, Any], number: int, given: Sequence[Correction], is_open: bool
    ) -> None:
        columns = field_columns(self.rows.mapping)
        of_label, first = columns[PERSONS_LABEL], given[0]
        named = with_nested_columns(cells, columns.values())
        before = cell_text(named.get(of_label))
        if number in self.changed:
            for column in (columns[name] for name in _OF_OLD_LABEL if name in columns):
                if column in named:  # an empty text is read in place of a part of a nested cell
                    cells[column] = None if column in cells else ""
        if number in self.changed or before in (None, ""):  # also if single people gave it before
            cells[of_label] = first.written
        for name, value in first.fields.items():
            if isinstance(value, str) and not self.rows.table.is_spreadsheet:
                value = self._stored(name, value, first.place)
            cells[columns[name]] = value
        if number in self.corrections.chances:
            cells[columns[SAMPLING_PROBABILITY]] = self.corrections.chances[number]
        told = {
            CORRECTED_BY: ", ".join(dict.fromkeys(each.who for each in given if each.who)),
            CORRECTED_AT: max(each.when for each in given),
        }
        if number in self.changed and before not in (None, ""):
            told[LABEL_BEFORE] = str(before)
        told = {name: text for name, text in told.items() if text}
        if is_open:
            cells |= told
        else:  # such rows have our fields alone
            cells["metadata"] = {**(cells.get("metadata") or {}), **told}

    def _stored(self, name: str, text: str, place: str) -> object:
        """Read a cell of a spreadsheet as what a table with types holds: a number or a list."""
        if name == "tags":
            return as_list(text, self.rows.mapping.separator or DEFAULT_SEPARATOR)
        if name not in ("confidence", "score"):
            return text
        if (number := _number(text)) is None:
            raise FieldError(name, f"'{text}' is no number", place)
        return number


def write_rows(
    out: Path, table: Table, mapping: TableMapping, rows: Iterable[dict[str, Any]]
) -> None:
    """Write rows in the shape of the table that they are of: its kind, delimiter and types."""
    cells = list(rows)
    label = field_columns(mapping)[PERSONS_LABEL]
    kinds = {type(row[label]) for row in cells if label in row} - {str, type(None)}
    if len(kinds) == 1 and not table.is_csv:  # labels are numbers or truth values
        for row in cells:
            if isinstance(text := row.get(label), str):
                with suppress(CustosError):  # of a text that is no such value
                    value = decode_json(text)
                    if kinds == {float} and type(value) is int:  # as tables with gaps have them
                        value = float(value)
                    row[label] = value if type(value) in kinds else text
    if table.is_parquet:
        _write_parquet(out, table.path, label, cells)
    elif out.suffix == ".json":
        content = read_json(table.path, table.stated)
        is_array = isinstance(content, list)
        write_json(out, cells if is_array else {**content, key_of_rows(table.path, content): cells})
    elif table.is_spreadsheet:
        stored = table.columns(mapping.columns.values())
        columns = list(dict.fromkeys([*stored, *(n for row in cells for n in row)]))
        texts = ([cell_text(row.get(name)) for name in columns] for row in cells)
        write_spreadsheet(out, columns, texts, table.delimiter)
    else:
        write_records(out, map(json_value, cells))
    if table.stated.encoding and out.suffix in (".json", ".jsonl"):
        # A byte order mark overrides the stated encoding, with which this file will be read too.
        write_text(out, BYTE_ORDER_MARK + out.read_text(encoding="utf-8"))


def _write_parquet(out: Path, source: Path, label: str, rows: Sequence[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stored = pq.read_schema(source)
    named = named_columns(stored)  # rows hold the names of their numbers
    types = {each.name: pa.string() if each.name in named else each.type for each in stored}
    for name in dict.fromkeys(name for row in rows for name in row):
        if objects := [row[name] for row in rows if isinstance(row.get(name), dict)]:
            fields = {key: pa.field(key, pa.string()) for held in objects for key in held}
            fields |= {each.name: each for each in types.get(name, ())}
            types[name] = pa.struct(list(fields.values()))
        elif name not in types:
            types[name] = pa.float64() if name == SAMPLING_PROBABILITY else pa.string()
    if any(isinstance(row.get(label), str) for row in rows):
        types[label] = pa.string()
        rows = [{**row, label: as_text(row[label])} if label in row else row for row in rows]
    with atomic_path(out) as partial:
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(list(types.items()))), partial)


def _listed(names: Iterable[str], noun: str = "") -> str:
    """Write names as text, the first ones of many: ``rows 1, 4 and 12 more``."""
    shown = list(names)
    text = ", ".join(shown[:_MOST_NAMED])
    if len(shown) > _MOST_NAMED:
        text += f" and {len(shown) - _MOST_NAMED} more"
    return f"{noun}{'s' if len(shown) > 1 else ''} {text}" if noun else text
