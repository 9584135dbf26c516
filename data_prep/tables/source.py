"""The source of a table: a file, or a data set of the hub."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_prep.sources.hub import HubOptions, hub_rows, is_hub_id
from data_prep.tables.cells import DEFAULT_SEPARATOR, is_split
from data_prep.tables.nested_cells import with_nested_columns
from judging.errors import CustosError
from judging.files.csv_rows import DELIMITERS, CsvFile, row_location
from judging.files.opening import NOTHING_STATED, TextFormat
from judging.files.records import ROW_SUFFIXES, read_rows

_HUB_NAME = re.compile(
    r"(?P<name>[^:@]+)(?:@(?P<revision>[^:]+))?(?::(?:(?P<config>.+)/)?(?P<split>[^/]+))?"
)


@dataclass(frozen=True)
class Table:
    """Rows that can be read several times, one by one.

    Attributes:
        name: The file or the hub id, as errors name it.
        folder: Folder that relative paths in cells start from.
        hub: Part of the hub data set; ``None`` for a file.
        stated: What the user states about the text of a file.
    """

    name: str
    folder: Path
    hub: HubOptions | None = None
    stated: TextFormat = NOTHING_STATED

    @property
    def path(self) -> Path:
        """Return the file."""
        return Path(self.name)

    @property
    def is_csv(self) -> bool:
        """Return whether all cells are texts."""
        return self.hub is None and self.path.suffix in DELIMITERS

    @property
    def is_parquet(self) -> bool:
        """Return whether the cells have the types of a Parquet file."""
        return self.hub is None and self.path.suffix == ".parquet"

    def rows(self) -> Iterator[tuple[int, Any]]:
        """Yield ``(row number, decoded row)``, with an error in place of a bad row."""
        if self.hub is not None:
            return hub_rows(self.name, self.hub)
        return read_rows(self.path, self.stated)

    def csv(self) -> CsvFile:
        """Return the CSV or TSV file that the table is.

        Raises:
            CustosError: As ``CsvFile``.
        """
        return CsvFile(self.path, self.stated)

    def columns(self, needed: Collection[str]) -> tuple[str, ...]:
        """Return the names of the columns.

        Rows of JSONL and JSON files need not have the same keys; they are read until all columns
        that are needed have occurred.
        """
        if self.is_csv and self.path.is_file():
            return tuple(with_nested_columns(dict.fromkeys(self.csv().columns), needed))
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
        """Return what was decided about a CSV or TSV file that its user may want to know.

        Args:
            column: Name of the column of references.
            separator: Text between them, if the user states it.

        Raises:
            CustosError: If the file cannot be read.
        """
        if not self.is_csv or not self.path.is_file():
            return []
        file = self.csv()
        split = []
        if separator is None and column in file.columns:
            cells = ((n, row.get(column, "")) for n, row in file.rows() if isinstance(row, dict))
            split = [number for number, cell in cells if is_split(cell)]
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
        """Return how errors name a row."""
        return row_location(self.path, number)


def open_table(source: Path | str, stated: TextFormat = NOTHING_STATED) -> Table:
    """Return the table of a file or of a hub data set, without reading it.

    Args:
        source: A CSV, TSV, JSONL, JSON or Parquet file, or ``OWNER/NAME[@REVISION][:SPLIT]`` on the
            hub; ``:CONFIG/SPLIT`` names a configuration. The split is ``train`` by default.
        stated: Delimiter and encoding, if the user states them.

    Raises:
        CustosError: If it is a folder.
    """
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
