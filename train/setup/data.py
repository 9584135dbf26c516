"""Splits of a recipe, read and checked."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from pathlib import Path

from data_prep.tables.examples import check_dropped, check_row_pictures
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow, read_table, task_fields
from data_prep.tables.source import open_table
from judging.errors import FieldError, Missing, errors_at
from judging.tasks import get_task
from judging.types import LabelledExample
from train.setup.examples import Examples
from train.setup.held_out import hold_out
from train.setup.recipe import DataSection


@dataclass(frozen=True)
class RunSplits:
    """Labelled rows of a run, by what they are used for; they stay on disk."""

    train: Examples
    val: Examples
    """Scored during training; selects the best adapter."""
    cal: Examples | None = None
    """Fits the calibration."""
    test: Examples | None = None
    """Reported on once, at the end."""
    watched: dict[str, Examples] = field(default_factory=dict)
    """Rows of earlier stages, by name: scored with every validation, never used to select."""
    replayed: int = 0
    """How many of the last rows of ``train`` are an earlier stage's."""

    def map(self, change: Callable[[Examples], Examples]) -> RunSplits:
        """Return the splits with every list of rows changed."""
        return RunSplits(
            change(self.train),
            change(self.val),
            None if self.cal is None else change(self.cal),
            None if self.test is None else change(self.test),
            {name: change(rows) for name, rows in self.watched.items()},
            self.replayed,
        )


def read_splits(data: DataSection) -> RunSplits:
    """Read ``train``, ``val`` and, where the recipe names them, ``cal`` and ``test``.

    Without ``val`` a part of ``train`` is held out for it.
    Rows that a task decides without the model (empty responses) are not trained on.

    Raises:
        CustosError: If a file is missing or has no rows to use, a row is bad (the message names
            file, row and field), or the answerer to exclude is in no split or leaves one empty.
    """
    train = join_examples(_read(path, data.limit, data.mapping) for path in data.train)
    if data.val:
        val = _read(data.val, data.val_limit, data.mapping)
    else:
        divided = hold_out(list(train), ["val"])
        train = Examples.write(divided["train"])
        val = Examples.write(divided["val"][: data.val_limit])
    splits = RunSplits(
        train,
        val,
        _read(data.cal, None, data.mapping) if data.cal else None,
        _read(data.test, None, data.mapping) if data.test else None,
    )
    if data.exclude_answerer:
        splits = _without_answerer(splits, data.exclude_answerer)
    splits = replace(
        splits,
        train=splits.train.where(_needs_model),
        val=splits.val.where(_needs_model),
    )
    for name in ("train", "val"):
        if not getattr(splits, name):
            raise FieldError(f"data.{name}", "no rows to use")
    for name in ("cal", "test"):
        rows = getattr(splits, name)
        if rows is not None and not rows:
            raise FieldError(f"data.{name}", "the file has no rows; give some, or set it to null")
    return splits


def read_split(
    path: Path, limit: int | None = None, exclude_answerer: str | None = None
) -> Examples:
    """Read the rows of a split that need a model and are not by one answerer.

    Args:
        path: File of the split.
        limit: Most rows to read, before any are left out.
        exclude_answerer: The answerer (``metadata.answerer``) whose rows to leave out.

    Raises:
        CustosError: If the file is missing or a row is bad.
    """
    rows = _read(path, limit).where(_needs_model)
    if exclude_answerer is None:
        return rows
    return rows.where(lambda row: _answerer(row) != exclude_answerer)


def join_examples(parts: Iterable[Examples]) -> Examples:
    """Return the rows of several parts, one after the other."""
    return reduce(operator.add, parts)


def under_task(splits: RunSplits, task: str | None) -> RunSplits:
    """Return the same rows under another task; ``None`` leaves them as they are."""
    if task is None:
        return splits
    return splits.map(lambda rows: rows.with_fields(task_fields(task)))


def check_splits(splits: RunSplits, data: DataSection) -> None:
    """Check the rows of all splits before anything is loaded.

    Raises:
        CustosError: If a task cannot judge a row or does not declare its label; the message names
            file or split, and row.
    """
    watched = {f"split '{name}'": rows for name, rows in splits.watched.items()}
    trained_on = {"split 'train'": splits.train, "split 'val'": splits.val, **watched}
    graded = ((str(data.cal), splits.cal), (str(data.test), splits.test))
    for location, rows in (*trained_on.items(), *graded):
        for row in rows or ():
            with errors_at(f"{location}: row '{row.id}'"):
                task = get_task(row.task)
                task.check(row)
                task.target(row)


def _without_answerer(splits: RunSplits, answerer: str) -> RunSplits:
    """Leave the answerer out of every split; leave everybody else out of the test."""
    every = chain(splits.train, splits.val, splits.cal or (), splits.test or ())
    answerers = sorted({_answerer(row) for row in every})
    if answerer not in answerers:
        raise FieldError("data.exclude_answerer", f"'{answerer}' is none of {', '.join(answerers)}")
    others = splits.map(lambda rows: rows.where(lambda row: _answerer(row) != answerer))
    test = splits.test and splits.test.where(lambda row: _answerer(row) == answerer)
    for name, rows in (("cal", others.cal), ("test", test)):
        if rows is not None and not rows:
            raise FieldError(f"data.{name}", f"no rows are left with exclude_answerer={answerer}")
    return replace(others, test=test)


def _read(path: Path, limit: int | None = None, mapping: TableMapping | None = None) -> Examples:
    if open_table(path).hub is None and not path.is_file():
        raise Missing(
            f"{path}: no such split; make it with 'custos prep', or as the comment at the top of "
            "the recipe says"
        )
    bad_rows: dict[int, BadRow] = {}
    numbers: list[int] = []
    rows = Examples.write(_numbered(path, mapping, bad_rows, numbers))
    check_dropped(path, bad_rows, len(rows), allow_dropped=None)
    rows = rows[:limit]
    check_row_pictures(path, zip(numbers, rows, strict=False))
    return rows


def _numbered(
    path: Path, mapping: TableMapping | None, bad_rows: dict[int, BadRow], numbers: list[int]
) -> Iterator[LabelledExample]:
    """Yield the good rows of a table, each with an id, and note their numbers."""
    for number, row in read_table(path, LabelledExample, mapping, bad_rows):
        numbers.append(number)
        yield row if row.id else row.model_copy(update={"id": f"{path} row {number}"})


def _needs_model(row: LabelledExample) -> bool:
    """Return whether no rule of its task decides a row."""
    return get_task(row.task).rule_if_empty(row) is None


def _answerer(row: LabelledExample) -> str:
    return str(row.metadata.get("answerer"))  # a table may number them
