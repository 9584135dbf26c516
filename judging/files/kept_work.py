"""Work that can be stopped at any moment and continued by the next run.

A :class:`KeptFile` holds one result on every line, with its key: a digest of everything that the
result depends on. The next run keeps lines whose key has not changed: :meth:`KeptFile.matching`
finds them anywhere in the file; :meth:`KeptFile.fill` keeps whole batches of them from the start of
the file and does everything after them again. :func:`locked` lets only one process at a time write
it.
"""

import itertools
import os
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError

from judging.errors import CustosError, system_errors_at
from judging.files.atomic import write_text
from judging.files.records import write_records
from judging.progress import in_batches

Origin = tuple[int | str, str]
"""Row number or id of the item that a line is a result of, and the line's key."""


class KeptLine(BaseModel, ABC):
    """A line of a file of results."""

    key: str
    """Digest of everything that the result depends on."""

    @property
    @abstractmethod
    def origin(self) -> Origin:
        """Return the item that the line is a result of, and the line's key."""

    @property
    def failed(self) -> bool:
        """Tell whether the work failed, and may succeed another time."""
        return False


Item = TypeVar("Item")
Line = TypeVar("Line", bound=KeptLine)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock on a file, ``NAME.lock``; raise ``CustosError`` if another process holds it.

    Its folder is made if it is missing. The operating system frees it when the process dies.
    """
    lock_path = path.with_name(f"{path.name}.lock")
    lock_path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(lock_path)
    with system_errors_at(lock_path):
        if lock_path.is_symlink() or lock_path.exists() and lock_path.stat().st_size:
            raise CustosError(f"{lock_path}: is no lock of custos; move it away")
        try:
            lock_path.touch()  # without a file FileLock says that another run holds the lock
            lock.acquire(blocking=False)
        except FileNotFoundError:
            raise CustosError(
                f"{path}: no file can be made in {path.parent}; name another folder"
            ) from None
        except Timeout:
            raise CustosError(f"{path}: another run is writing it; wait for that one") from None
    try:
        yield
    finally:
        # Deleted before it is released: a process that has the file open sees that it is deleted
        # and takes no lock on it. A failure is no error of the work, which is done.
        with suppress(OSError):
            lock_path.unlink(missing_ok=True)
        with suppress(OSError):
            lock.release()


class KeptFile(Generic[Line]):
    """A JSONL file of results that grows while work is done; it need not exist.

    Lines are on the disk before the next work is begun, so a process that dies loses only what it
    was working on.
    """

    def __init__(self, path: Path, line_type: type[Line]) -> None:
        self.path = path
        self._line_type = line_type

    def lines(self) -> Iterator[Line]:
        """Yield the lines; leave out those that are cut off or damaged."""
        if not self.path.exists():
            return
        with system_errors_at(self.path), self.path.open("rb") as file:
            for text in file:
                if (line := self._parsed(text)) is not None:
                    yield line

    def matching(self, origins: Collection[Origin]) -> Iterator[Line]:
        """Read the lines of these origins, in the order of the file.

        A last line that was cut off is deleted first, so that the next one appended is whole. A
        file that is a link or holds something else raises ``CustosError``.
        """
        self._check_is_ours()
        if self.path.exists():
            with system_errors_at(self.path), self.path.open("rb+") as file:
                file.truncate(sum(len(line) for line in file if line.endswith(b"\n")))
        return (line for line in self.lines() if line.origin in origins)

    def append(self, lines: Iterable[Line]) -> None:
        """Write lines at the end, as :func:`append_lines`."""
        append_lines(self.path, lines)

    def fill(
        self,
        items: Callable[[], Iterable[Item]],
        origin: Callable[[Item], Origin],
        work: Callable[[Sequence[Item]], Iterable[Line]],
        *,
        batch: int,
        retry_failed: bool = False,
    ) -> Iterator[int]:
        """Bring the file up to one line per item; yield the number of lines as it grows.

        Lines from the start of the file are kept while each has the origin of its item, in whole
        batches. So every batch has the same items as in a run that was never stopped. This matters
        because the last digits of a judge's result depend on the other items of its batch.

        ``items`` is called several times; ``work`` returns one line per item of a batch, in order.
        With ``retry_failed`` all failed lines are done again first, not only those whose item has
        changed. Raises ``CustosError`` as :meth:`keep_batches`.
        """
        num_lines = self.keep_batches(map(origin, items()), batch)
        failed = (
            (number, item)
            for number, (line, item) in enumerate(zip(self.lines(), items(), strict=False))
            if line.failed and (retry_failed or line.origin != origin(item))
        )
        redone: dict[int, Line] = {}
        for numbered in in_batches(failed, batch):
            numbers = (number for number, _ in numbered)
            redone.update(zip(numbers, work([item for _, item in numbered]), strict=True))
        if redone:
            lines = (redone.get(number, line) for number, line in enumerate(self.lines()))
            write_records(self.path, lines)
        yield num_lines
        for batch_items in in_batches(itertools.islice(items(), num_lines, None), batch):
            self.append(work(batch_items))
            num_lines += len(batch_items)
            yield num_lines

    def keep_batches(self, origins: Iterable[Origin], batch: int) -> int:
        """Cut the file after the last whole batch whose lines are of these origins; count lines.

        The first line that is cut off or damaged ends what is kept. If every origin has its line
        and nothing follows, the whole file is kept, even if its last batch is short. A failed line
        may be of another origin than now: there is nothing to lose. Another line of another origin,
        or of none, raises ``CustosError``.
        """
        self._check_is_ours()
        number = num_kept = end = 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with system_errors_at(self.path), self.path.open("ab+") as file:
            file.seek(0)
            for number, origin in enumerate(origins, 1):
                line = self._parsed(file.readline())
                if line is None:
                    break
                if line.origin != origin and not line.failed:
                    raise self._other_origin(number)
                if number % batch == 0:
                    num_kept, end = number, file.tell()
            else:
                rest = file.readline()
                if self._parsed(rest) is not None:
                    raise self._other_origin(number + 1)
                if not rest:
                    num_kept, end = number, file.tell()
            file.truncate(end)
        return num_kept

    def remove_unless_failed(self) -> None:
        """Delete the file, unless it holds failed lines that can be done again."""
        if not any(line.failed for line in self.lines()):
            self.remove()

    def remove(self) -> None:
        """Delete the file, unless it is somebody else's."""
        if self._is_ours():
            self.path.unlink(missing_ok=True)

    def _is_ours(self) -> bool:
        """Tell whether the file is missing or empty, or holds a whole line of this type."""
        if self.path.is_symlink():  # its file may be anybody's
            return False
        if not self.path.exists() or not self.path.stat().st_size:
            return True
        return any(True for _ in self.lines())

    def _check_is_ours(self) -> None:
        if not self._is_ours():
            raise CustosError(
                f"{self.path}: is a link or holds something else than results that were kept; name "
                "another output, or move it away"
            )

    def _other_origin(self, number: int) -> CustosError:
        return CustosError(
            f"{self.path}: line {number} is a result on something else: the input, the judge or "
            "the version of a package has changed since. Name another output, or begin anew with: "
            f"rm {shlex.quote(str(self.path))}"
        )

    def _parsed(self, text: bytes) -> Line | None:
        try:
            return self._line_type.model_validate_json(text) if text.endswith(b"\n") else None
        except ValidationError:
            return None


def append_lines(path: Path, lines: Iterable[BaseModel]) -> None:
    """Write lines at the end of a JSONL file; they are on the disk when this returns.

    An ``OSError``, as on a full disk, leaves the earlier lines whole. The first lines appear
    together, so that no file of ours is without a whole one.
    """
    text = "".join(line.model_dump_json(exclude_unset=True) + "\n" for line in lines)
    if not path.exists() or not path.stat().st_size:
        write_text(path, text)
        return
    with system_errors_at(path), path.open("ab", buffering=0) as file:
        end = file.tell()
        try:
            unwritten = memoryview(text.encode())
            while unwritten:
                unwritten = unwritten[file.write(unwritten) :]
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(end)
            raise
