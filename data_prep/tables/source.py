"""The source of a table: a file, or a data set of the hub."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from data_prep.splits.manifest import MANIFEST_NAME
from data_prep.tables.cells import DEFAULT_SEPARATOR, is_split, with_nested_columns
from judging.errors import CustosError
from judging.files.csv_rows import (
    DELIMITERS,
    SPREADSHEETS,
    CsvFile,
    SheetFile,
    open_spreadsheet,
    row_location,
)
from judging.files.opening import NOTHING_STATED, TextFormat
from judging.files.parquet import arrow_rows
from judging.files.records import ROW_SUFFIXES, read_rows
from judging.models.fetched import ask_hub

_HUB_NAME = re.compile(
    r"(?P<name>[^:@]+)(?:@(?P<revision>[^:]+))?(?::(?:(?P<config>.+)/)?(?P<split>[^/]+))?"
)
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class HubOptions:
    """The part of a hub data set to load."""

    split: str = "train"
    config: str | None = None
    revision: str | None = None


@dataclass(frozen=True)
class Table:
    """Rows that can be read several times, one by one."""

    name: str
    """The file or the hub id, as errors name it."""
    folder: Path
    """Folder that relative paths in cells start from."""
    hub: HubOptions | None = None
    """Part of the hub data set; ``None`` for a file."""
    stated: TextFormat = NOTHING_STATED
    """What the user states about the text of a file."""

    @property
    def path(self) -> Path:
        """Locate the file."""
        return Path(self.name)

    @property
    def is_csv(self) -> bool:
        """Tell whether all cells are texts."""
        return self.hub is None and self.path.suffix in DELIMITERS

    @property
    def is_spreadsheet(self) -> bool:
        """Tell whether no cell holds a list: a CSV or TSV file, or a workbook."""
        return self.hub is None and self.path.suffix in SPREADSHEETS

    @property
    def is_open(self) -> bool:
        """Tell whether rows may have any columns, and not only our fields."""
        return self.is_spreadsheet or self.hub is not None

    @property
    def is_parquet(self) -> bool:
        """Tell whether the cells have the types of a Parquet file."""
        return self.hub is None and self.path.suffix == ".parquet"

    def rows(self) -> Iterator[tuple[int, Any]]:
        """Yield ``(row number, decoded row)``, with an error in place of a bad row."""
        if self.hub is not None:
            return hub_rows(self.name, self.hub)
        if "sheet" in self.__dict__:  # its rows have been counted already
            return self.sheet.rows()
        return read_rows(self.path, self.stated)

    @cached_property
    def sheet(self) -> CsvFile | SheetFile:
        """Open the spreadsheet of the table; all of its rows are read to decide its form."""
        return open_spreadsheet(self.path, self.stated)

    @property
    def delimiter(self) -> str | None:
        """Look up what separates the cells of a CSV or TSV file; ``None`` for other tables."""
        file = self.sheet if self.is_csv else None
        return file.delimiter if isinstance(file, CsvFile) else None

    def columns(self, needed: Collection[str]) -> tuple[str, ...]:
        """Name the columns.

        Rows of JSONL and JSON files need not have the same keys; they are read until all columns
        that are needed have occurred.
        """
        if self.is_spreadsheet and self.path.is_file():
            return tuple(with_nested_columns(dict.fromkeys(self.sheet.columns), needed))
        keys: dict[str, None] = {}
        for _, row in self.rows():
            if isinstance(row, dict):
                keys.update(dict.fromkeys(with_nested_columns(row, needed)))
                if keys.keys() >= set(needed):
                    break
        if self.is_parquet:  # its rows lack the columns that are always empty
            import pyarrow.parquet as pq

            names = pq.read_schema(self.path).names
            keys.update(dict.fromkeys(name for name in names if name in needed))
        return tuple(keys)

    def doubts(self, column: str, separator: str | None) -> list[str]:
        """Say what was decided about a spreadsheet that its user may want to know.

        ``column`` is that of the references, and ``separator`` the text between them, if stated.
        Raise ``CustosError`` if the file cannot be read.
        """
        if not self.is_spreadsheet or not self.path.is_file():
            return []
        file, split = self.sheet, []
        if separator is None and column in file.columns:
            cells = ((n, row.get(column, "")) for n, row in file.rows() if isinstance(row, dict))
            split = [number for number, cell in cells if isinstance(cell, str) and is_split(cell)]
        doubts = [file.doubt] if file.doubt else []
        if split:
            doubts.append(
                f"column '{column}' was split at '{DEFAULT_SEPARATOR}' into several references in "
                f"{len(split)} rows, the first is row {split[0]}; --separator TEXT splits at "
                "another text, and not at all if no cell holds it; --separator ';' says that this "
                "is meant"
            )
        return doubts

    def location(self, number: int) -> str:
        """Say how errors name a row."""
        return row_location(self.path, number)


def open_table(source: Table | Path | str, stated: TextFormat = NOTHING_STATED) -> Table:
    """Open the table of a file or of a hub data set, without reading it.

    A source is a CSV, TSV, XLSX, JSONL, JSON or Parquet file, or ``OWNER/NAME[@REVISION][:SPLIT]``
    on the hub; ``:CONFIG/SPLIT`` names a configuration. The split is ``train`` by default. Raise
    ``CustosError`` if it is a folder. An open table is given back.
    """
    if isinstance(source, Table):
        return source
    path = Path(source)
    if path.is_dir():
        for file, split in (("dataset_dict.json", "['train']"), ("state.json", "")):
            if (path / file).is_file():
                raise CustosError(
                    f"{path}: is a data set of save_to_disk; write it as a file, in Python: "
                    f"datasets.load_from_disk('{path}'){split}.to_parquet('rows.parquet')"
                )
        files = sorted(file.name for file in path.iterdir() if file.suffix in ROW_SUFFIXES)
        names = f": {', '.join(files[:5])}" if files else ""
        raise CustosError(f"{path}: is a folder; name a file in it{names}")
    match = _HUB_NAME.fullmatch(str(source))
    if not path.exists() and match is not None and is_hub_id(match["name"]):
        options = HubOptions(match["split"] or "train", match["config"], match["revision"])
        return Table(match["name"], Path.cwd(), options)
    return Table(str(path), path.parent, stated=stated)


def is_hub_id(source: Path | str) -> bool:
    """Tell a data set on the hub (``owner/name``) from a local file; an existing file is local."""
    name = str(source)
    is_file_name = name.endswith(ROW_SUFFIXES) or Path(name).exists()
    return not is_file_name and _HUB_ID.fullmatch(name) is not None


def hub_rows(name: str, options: HubOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield rows of a hub data set with their numbers from 1; images stay undecoded.

    Raise ``CustosError`` if the data set, or that part of it, cannot be loaded.
    """
    import datasets

    answer = ask_hub(name, "README.md", revision=options.revision, repo_type="dataset")
    # Where the hub does not answer, the library reads what it has in its cache.
    offline = _no_requests() if answer.refusal else nullcontext()
    try:
        with offline:
            table = datasets.load_dataset(
                name, options.config, split=options.split, revision=options.revision
            )
    except (OSError, ValueError) as error:
        reason = answer.refusal or str(error).strip().partition("\n")[0]
        raise CustosError(
            f"{name}: no such file here, and split '{options.split}' of a hub data set of this "
            f"name cannot be loaded: {reason}"
        ) from None
    number = 0
    for batch in table.with_format("arrow").iter(batch_size=1000):
        for row in arrow_rows(batch):
            number += 1
            yield number, row


@contextmanager
def _no_requests() -> Iterator[None]:
    """Have the library work from its cache, without requests that it would repeat for long."""
    import datasets

    before = datasets.config.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before


def split_files(folder: Path, split: str) -> list[Path]:
    """List the files of a split in a folder, or in its ``data`` folder, sorted by name.

    The hub names a split's files after it: ``test.jsonl``, ``test-00000-of-00002.parquet``. Without
    such a file, all files belong to the split. Raise ``CustosError`` if the folder holds no file of
    rows.
    """
    for candidate in (folder, folder / "data"):
        files = sorted(
            file
            for file in (candidate.iterdir() if candidate.is_dir() else ())
            if file.suffix in ROW_SUFFIXES and file.name != MANIFEST_NAME
        )
        if files:
            return [file for file in files if file.stem.split("-")[0] == split] or files
    raise CustosError(f"{folder}: no {', '.join(ROW_SUFFIXES)} file in this folder")
