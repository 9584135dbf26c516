"""Splits of a run that share rows or questions: refused, or allowed and named in the card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from data_prep.splits.overlap import Overlap, find_overlaps
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import read_table
from judging.errors import FieldError
from judging.files.questions import count_trained_on
from judging.types import LabelledExample
from train.setup.data import RunSplits
from train.setup.recipe import DataSection, Recipe

ADVICE = (
    "give each question to one split ('custos prep' does), "
    "or set data.allow_overlap=true, and the card will name it"
)


def check_overlaps(splits: RunSplits, data: DataSection) -> list[Overlap]:
    """Compare the splits of a run, before anything is loaded.

    Args:
        splits: Rows as they are used, replayed ones included.
        data: Their files, and which of them may overlap.

    Returns:
        The overlaps that the recipe allows, and those that a sentence model suspects.

    Raises:
        FieldError: If two splits overlap and the recipe does not allow it. The message has counts
            for every two such splits, and names the first two rows by file and row.
    """
    rows = {"train": splits.train, "val": splits.val, "cal": splits.cal, "test": splits.test}
    overlaps = find_overlaps({name: part for name, part in rows.items() if part})
    refused = [each for each in overlaps if each.is_certain and not _is_allowed(each, data)]
    if refused:
        first = refused[0]
        files = [_files(name, data) for name in (first.split, first.other)]
        locations = " and ".join(
            _row_location(paths, row, data.mapping)
            for paths, row in zip(files, first.example, strict=True)
        )
        counts = "; ".join(_describe(overlap, data) for overlap in refused)
        raise FieldError(f"data.{first.split}", f"{counts} (first: {locations}); {ADVICE}")
    return overlaps


def count_known_to_start(recipe: Recipe, rows: Sequence[LabelledExample] | None) -> int:
    """Count the rows whose question the judge of ``adapter.init`` was trained on or chosen by.

    Judges that do not say what they were trained on, such as the shipped ones, count as 0.
    """
    folder = recipe.adapter.init_folder
    return (count_trained_on(folder, rows) or 0) if folder and rows else 0


def _is_allowed(overlap: Overlap, data: DataSection) -> bool:
    if isinstance(data.allow_overlap, bool):
        return data.allow_overlap
    compared = {overlap.split, overlap.other}
    return any(compared == set(pair) for pair in data.allow_overlap)


def _describe(overlap: Overlap, data: DataSection) -> str:
    same = {path.resolve() for path in _files(overlap.split, data)} & {
        path.resolve() for path in _files(overlap.other, data)
    }
    text = overlap.describe()
    return f"{text} (both read {same.pop()})" if same else text


def _row_location(paths: Sequence[Path], row: LabelledExample, mapping: TableMapping | None) -> str:
    """Return file and number of a row of one of the files, such as ``mine.jsonl row 4``."""
    wanted = (row.question, row.references, row.responses)
    for path in paths:
        for number, other in read_table(path, LabelledExample, mapping, {}):
            if (other.question, other.references, other.responses) == wanted:
                return f"{path} row {number}"
    return f"row '{row.id}'"


def _files(split: str, data: DataSection) -> tuple[Path, ...]:
    path = {"val": data.val, "cal": data.cal, "test": data.test}.get(split)
    return (path,) if path else data.train
