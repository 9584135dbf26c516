"""Splits of a recipe, read and checked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from judging.errors import CustosError, Missing
from judging.records import read_records
from judging.scoring.prompts import read_image
from judging.tasks import get_task
from judging.types import LabelledExample
from train.setup.recipe import DataSection


def load_splits(data: DataSection) -> dict[str, list[LabelledExample]]:
    """Read ``train``, ``val`` and, where given, ``cal`` and ``test``.

    Rows a task decides without the model (empty responses) are not trained on.

    Raises:
        CustosError: If a file is missing, a row is bad (the message names file, row and field), or
            the answerer to exclude is in no split or leaves one empty.
    """
    splits = {
        "train": [row for path in data.train for row in _read(path, data.limit)],
        "val": _read(data.val, data.val_limit),
    }
    for name, path in (("cal", data.cal), ("test", data.test)):
        if path:
            splits[name] = _read(path, None)
    if data.exclude_answerer:
        splits = _hold_out(splits, data.exclude_answerer)
    for name in ("train", "val"):
        splits[name] = list(_needing_a_model(splits[name]))
        if not splits[name]:
            raise CustosError(f"data.{name}: no rows to use")
    return splits


def read_split(
    path: Path, limit: int | None = None, exclude_answerer: str | None = None
) -> list[LabelledExample]:
    """Rows of a split that need a model and are not of an answerer.

    At most ``limit`` before any are left out.

    Raises:
        CustosError: If the file is missing or a row is bad.
    """
    rows = _needing_a_model(_read(path, limit))
    return [row for row in rows if exclude_answerer is None or _answerer(row) != exclude_answerer]


def _hold_out(
    splits: dict[str, list[LabelledExample]], answerer: str
) -> dict[str, list[LabelledExample]]:
    """Every split without the answerer; the test with nothing else."""
    known = sorted({str(_answerer(row)) for rows in splits.values() for row in rows})
    if answerer not in known:
        raise CustosError(f"data.exclude_answerer: '{answerer}' is none of {', '.join(known)}")
    kept = {
        name: [row for row in rows if (_answerer(row) == answerer) == (name == "test")]
        for name, rows in splits.items()
    }
    for name in ("cal", "test"):
        if kept.get(name) == []:
            raise CustosError(f"data.{name}: no rows are left with exclude_answerer={answerer}")
    return kept


def _read(path: Path, limit: int | None) -> list[LabelledExample]:
    if not path.is_file():
        raise Missing(f"{path}: no such split; make it with 'custos prep'")
    rows = [
        row if row.id else row.model_copy(update={"id": f"{path} row {number}"})
        for number, row in read_records(path, LabelledExample)
    ]
    return rows[:limit]


def check_rows(rows: Iterable[LabelledExample]) -> None:
    """Check rows of ``cal`` and ``test`` before training, not after it.

    Raises:
        CustosError: If a task cannot judge a row, does not declare its label, or a picture cannot
            be read; the message names the row.
    """
    readable: set[str] = set()
    for row in rows:
        try:
            task = get_task(row.task)
            task.check(row)
            task.target(row)
            for source in set(row.images) - readable:
                read_image(source)
                readable.add(source)
        except CustosError as error:
            raise CustosError(f"row '{row.id}': {error}") from None


def _needing_a_model(rows: Iterable[LabelledExample]) -> Iterable[LabelledExample]:
    return (row for row in rows if get_task(row.task).rule(row) is None)


def _answerer(row: LabelledExample) -> object:
    return row.metadata.get("answerer")
