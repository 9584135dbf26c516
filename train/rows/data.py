"""Splits of a recipe: read, kept on disk, mixed with rows of an earlier stage, and compared."""

from __future__ import annotations

import json
import operator
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any, Literal, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from data_prep.splits.overlap import Overlap, find_overlaps
from data_prep.tables.examples import check_dropped, check_row_pictures, join_people
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow, read_table, task_fields
from data_prep.tables.source import open_table
from evaluation.outcomes import full_label
from evaluation.people.agreement import labels_by_person
from judging.errors import CustosError, FieldError, Missing, errors_at
from judging.progress import in_batches
from judging.tasks import get_task
from judging.types import LabelledExample, type_of
from train.rows.held_out import hold_out
from train.setup.recipe import DataSection, Files, Section

WRITTEN_AT_ONCE = 1024
_SCHEMA = pa.schema([("row", pa.large_binary())])


class _File:
    """Rows in a memory-mapped Arrow file without a name: it goes when no process has it open."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        with pa.memory_map(f"/dev/fd/{file.fileno()}") as source:
            self.rows = pa.ipc.open_file(source).read_all()["row"]

    def __getstate__(self) -> Any:
        return DupFd(self.file.fileno())

    def __setstate__(self, handle: Any) -> None:
        self.__init__(open(handle.detach(), "rb"))  # type: ignore[misc]


class Examples(Sequence[LabelledExample]):
    """Labelled rows that are read from memory-mapped files whenever they are used.

    ``positions`` has the file and number of each row, ``[rows, 2]``; ``changes`` has fields whose
    values differ from the files. A process that gets them pickled at its start maps the same files.
    """

    def __init__(
        self,
        files: Sequence[_File],
        positions: NDArray[np.int64],
        changes: Mapping[str, Any] | None = None,
    ) -> None:
        self._files, self._positions, self._changes = tuple(files), positions, dict(changes or {})

    @classmethod
    def write(cls, rows: Iterable[LabelledExample]) -> Examples:
        """Write rows to a temporary file, in the folder that ``TMPDIR`` names."""
        count = 0
        with _disk_errors():
            file = tempfile.TemporaryFile(prefix="custos-rows-")
            writer = pa.ipc.new_file(file, _SCHEMA)
        for part in in_batches(rows, WRITTEN_AT_ONCE):  # what is read may be on another disk
            # Unlike Pydantic's own, this JSON keeps numbers that are not finite.
            texts = (json.dumps(row.model_dump(exclude_unset=True), default=str) for row in part)
            lines = pa.array([text.encode() for text in texts], pa.large_binary())
            with _disk_errors():
                writer.write_batch(pa.record_batch([lines], _SCHEMA))
            count += len(part)
        with _disk_errors():
            writer.close()
            file.flush()
        positions = np.stack([np.zeros(count, np.int64), np.arange(count)], axis=1)
        return cls([_File(file)], positions)

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, index: int) -> LabelledExample: ...

    @overload
    def __getitem__(self, index: slice) -> Examples: ...

    def __getitem__(self, index: int | slice) -> LabelledExample | Examples:
        if isinstance(index, slice):
            return self.take(index)
        return self._read(*self._positions[index].tolist())

    def __iter__(self) -> Iterator[LabelledExample]:
        return (self._read(file, number) for file, number in self._positions.tolist())

    def __add__(self, other: Examples) -> Examples:
        """Join these rows and others after them, of which none has been changed."""
        assert not self._changes and not other._changes
        moved = other._positions + np.array([len(self._files), 0])
        return Examples((*self._files, *other._files), np.concatenate([self._positions, moved]))

    def take(self, indices: Sequence[int] | slice | NDArray[Any]) -> Examples:
        """Take the rows of some indices, in their order."""
        return Examples(self._files, self._positions[indices], self._changes)

    def where(self, keeps: Callable[[LabelledExample], bool]) -> Examples:
        """Take the rows for which a function is true."""
        return self.take(np.flatnonzero([keeps(row) for row in self]))

    def with_fields(self, changes: Mapping[str, Any]) -> Examples:
        """Copy the rows with other values in some fields."""
        return Examples(self._files, self._positions, {**self._changes, **changes})

    def _read(self, file: int, number: int) -> LabelledExample:
        line = self._files[file].rows[number].as_buffer()
        row = LabelledExample.model_validate_json(memoryview(line).tobytes())
        return row.model_copy(update=self._changes) if self._changes else row


@contextmanager
def _disk_errors() -> Iterator[None]:
    """Turn an error of writing temporary files into one that names their folder."""
    try:
        yield
    except OSError as error:
        raise CustosError(
            f"{tempfile.gettempdir()}: the rows cannot be written there ({error.strerror}); "
            "make room, or set TMPDIR to another folder"
        ) from None


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

    @property
    def by_name(self) -> dict[str, Examples]:
        """List the splits that there are, watched ones left out."""
        splits = {"train": self.train, "val": self.val, "cal": self.cal, "test": self.test}
        return {name: rows for name, rows in splits.items() if rows is not None}

    def map(self, change: Callable[[Examples], Examples]) -> RunSplits:
        """Copy the splits with every list of rows changed."""
        changed: dict[str, Any] = {name: change(rows) for name, rows in self.by_name.items()}
        watched = {name: change(rows) for name, rows in self.watched.items()}
        return replace(self, watched=watched, **changed)


def read_splits(data: DataSection) -> RunSplits:
    """Read ``train``, ``val`` and, where the recipe names them, ``cal`` and ``test``.

    Every row is checked here, and nowhere later: its task can judge it and declares its label.
    Without ``val`` a part of ``train`` is held out for it. ``votes`` divides training rows that
    people labelled differently (:func:`by_votes`). Rows that a task decides without the
    model (empty responses) are not trained on.
    """
    train = reduce(operator.add, (_read(path, data.limit, data.mapping) for path in data.train))
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
    train, val = splits.train.where(_needs_model), splits.val.where(_needs_model)
    if data.votes == "shares":
        train = Examples.write(chain.from_iterable(map(by_votes, train)))
    splits = replace(splits, train=train, val=val)
    for name, rows in splits.by_name.items():
        if not rows:
            is_graded = name in ("cal", "test")
            reason = "the file has no rows; give some, or set it to null"
            raise FieldError(f"data.{name}", reason if is_graded else "no rows to use")
    return splits


def by_votes(row: LabelledExample) -> Iterator[LabelledExample]:
    """Divide a row among the labels that people gave it, each with its share of the weight.

    Losses are linear in a row's weight, so together they teach the shares as a soft label. A row
    with a critique stays whole: the critique leads to one label. So does one whose label is not
    among those that most gave: somebody has decided it since, such as in a review.
    """
    votes = Counter(labels_by_person(row).values())
    is_decided = max(votes[full_label(row)], votes[row.label]) < max(votes.values(), default=0)
    if len(votes) < 2 or row.critique is not None or is_decided:
        yield row
        return
    for label, count in votes.items():
        weight = row.weight * count / votes.total()
        changes = {"label": label, "error_type": type_of(label) or None, "weight": weight}
        yield row.model_copy(update=changes)


def under_task(splits: RunSplits, task: str | None) -> RunSplits:
    """Put the same rows under another task and check them; ``None`` leaves them as they are."""
    if task is None:
        return splits
    splits, kind = splits.map(lambda rows: rows.with_fields(task_fields(task))), get_task(task)
    for name, rows in splits.by_name.items():
        for row in rows:
            with errors_at(f"split '{name}': row '{row.id}'"):
                kind.check(row)
                kind.target(row)
    return splits


def _without_answerer(splits: RunSplits, answerer: str) -> RunSplits:
    """Leave the answerer out of every split; leave everybody else out of the test."""
    answerers = sorted({_answerer(row) for row in chain(*splits.by_name.values())})
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

    def numbered() -> Iterator[LabelledExample]:
        rows = read_table(path, LabelledExample, mapping, bad_rows)
        # Files of our shape, which may be too large for the memory, are joined when they are made.
        for number, row in rows if mapping is None else join_people(list(rows)):
            numbers.append(number)
            yield row if row.id else row.model_copy(update={"id": f"{path} row {number}"})

    rows = Examples.write(numbered())
    check_dropped(path, bad_rows, len(rows), allow_dropped=None)
    rows = rows[:limit]
    check_row_pictures(path, zip(numbers, rows, strict=False))
    return rows


def _needs_model(row: LabelledExample) -> bool:
    """Tell whether no rule of its task decides a row."""
    return get_task(row.task).rule_if_empty(row) is None


def _answerer(row: LabelledExample) -> str:
    return str(row.metadata.get("answerer"))  # a table may number them


class ReplaySection(Section):
    """``D_mix = D_task2 + Sample(D_task1, rho)`` (HiEval section 3.2)."""

    train: Files = ()
    """Training splits of the earlier stage; empty: no replay."""
    val: Path | None = None
    """Validation split of the earlier stage, scored to see what the judge forgets."""
    rho: float = Field(default=1.0, ge=0)
    """Replay ratio: how many rows of the earlier stage are mixed in."""
    of: Literal["task2", "task1"] = "task2"
    """What ``rho`` is a share of; the paper leaves it open."""
    val_limit: int | None = Field(default=None, gt=0)
    """Watch only the first ``val_limit`` rows of ``val``."""


def with_replay(
    splits: RunSplits, replay: ReplaySection, seed: int, exclude_answerer: str | None = None
) -> RunSplits:
    """Add sampled earlier rows to the training split, and the earlier validation to the watched.

    Rows by the answerer to exclude are left out.
    """

    def read(path: Path, limit: int | None = None) -> Examples:
        rows = _read(path, limit).where(_needs_model)
        if exclude_answerer is None:
            return rows
        return rows.where(lambda row: _answerer(row) != exclude_answerer)

    train, watched = splits.train, splits.watched
    if replay.train:
        earlier = reduce(operator.add, map(read, replay.train))
        drawn = replay_sample(earlier, len(train), replay.rho, replay.of, seed)
        train = train + earlier.take(drawn)
    if replay.val:
        rows = read(replay.val, replay.val_limit)
        if not rows:
            raise FieldError("replay.val", "no rows to use")
        watched = {**watched, "stage1": rows}
    replayed = len(train) - len(splits.train)
    return replace(splits, train=train, watched=watched, replayed=replayed)


def replay_sample(
    earlier: Collection[LabelledExample],
    num_task2: int,
    rho: float,
    of: Literal["task2", "task1"],
    seed: int,
) -> list[int]:
    """Draw indices of earlier rows without replacement, each label in proportion.

    The draw depends on ``seed`` and the rows alone: every process and every resume sees the same.
    ``num_task2`` rows are new; ``of`` says what ``rho`` is a share of (:class:`ReplaySection`).
    """
    count = round(rho * (num_task2 if of == "task2" else len(earlier)))
    if count > len(earlier):
        raise FieldError(
            "replay.rho",
            f"{rho} of {of} asks for {count} earlier rows, but there are {len(earlier)}",
        )
    rng = random.Random(f"replay/{seed}")
    keys = [(row.task, row.label) for row in earlier]
    strata: dict[tuple[str, str], list[int]] = {}
    for index in rng.sample(range(len(keys)), len(keys)):
        strata.setdefault(keys[index], []).append(index)
    # Largest remainders: the counts of the strata add up to the count asked for.
    shares = {key: count * len(rows) / max(1, len(earlier)) for key, rows in strata.items()}
    counts = {key: int(share) for key, share in shares.items()}
    by_remainder = sorted(shares, key=lambda key: (counts[key] - shares[key], key))
    for key in by_remainder[: count - sum(counts.values())]:
        counts[key] += 1
    return [index for key, drawn in sorted(strata.items()) for index in drawn[: counts[key]]]


def check_overlaps(splits: RunSplits, data: DataSection) -> list[Overlap]:
    """Compare the splits of a run, before anything is loaded; return the overlaps that are allowed.

    Those that a sentence model suspects are among them. Raises ``FieldError`` if two splits overlap
    and the recipe does not allow it. The message has counts for every two such splits, and names
    the first two rows by file and row.
    """
    overlaps = find_overlaps({name: part for name, part in splits.by_name.items() if part})
    refused = [overlap for overlap in overlaps if overlap.is_certain]
    if isinstance(allowed := data.allow_overlap, bool):
        refused = [] if allowed else refused
    else:
        pairs = [set(pair) for pair in allowed]
        refused = [each for each in refused if {each.split, each.other} not in pairs]
    if not refused:
        return overlaps
    first, counts = refused[0], []
    for overlap in refused:
        one, other = (
            {p.resolve() for p in _files(name, data)} for name in (overlap.split, overlap.other)
        )
        both = f" (both read {(one & other).pop()})" if one & other else ""
        counts.append(f"{overlap.describe()}{both}")
    locations = " and ".join(
        _row_location(_files(name, data), row, data.mapping)
        for name, row in zip((first.split, first.other), first.example, strict=True)
    )
    raise FieldError(
        f"data.{first.split}",
        f"{'; '.join(counts)} (first: {locations}); give each question to one split ('custos prep' "
        "does), or set data.allow_overlap=true, and the card will name it",
    )


def _row_location(paths: Sequence[Path], row: LabelledExample, mapping: TableMapping | None) -> str:
    """Name file and number of a row of one of the files, such as ``mine.jsonl row 4``."""
    wanted = (row.question, row.references, row.responses)
    for path in paths:
        for number, other in read_table(path, LabelledExample, mapping, {}):
            if (other.question, other.references, other.responses) == wanted:
                return f"{path} row {number}"
    return f"row '{row.id}'"


def _files(split: str, data: DataSection) -> tuple[Path, ...]:
    path = {"val": data.val, "cal": data.cal, "test": data.test}.get(split)
    return (path,) if path else data.train
