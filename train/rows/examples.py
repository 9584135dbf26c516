"""Labelled rows on disk, of which only the numbers are in memory."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.reduction import DupFd
from typing import IO, Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from judging.batches import in_batches
from judging.errors import CustosError
from judging.types import LabelledExample

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
        """Write rows to a temporary file, in the folder that ``TMPDIR`` names.

        Raises ``CustosError`` if it cannot be written.
        """
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

    def __eq__(self, other: object) -> bool:
        """Compare with another sequence: whether it holds the same rows."""
        if not isinstance(other, Sequence) or len(other) != len(self):
            return False
        return all(row == another for row, another in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

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
