"""Verdicts on disk, so that the same question to the same judge is graded once."""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from judging.errors import CustosError
from judging.fingerprint import picture_sha256
from judging.judge import Judge
from judging.scoring.ask_model import critique_sampling
from judging.tasks import get_task
from judging.types import JudgeRequest, Verdict

FILE = "verdicts.sqlite"
CACHE_ERRORS = (sqlite3.Error, OSError, ValueError)
"""What reading and writing may raise; a ``ValueError`` for a row that is no verdict."""
EVICTED_AT_ONCE = 64
OPENING_S = 5.0
"""Longest wait for others who open the file at the same time."""
BUSY_MS = 50
"""Longest wait for others who use it later: a verdict is graded again in less."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS verdicts (key BLOB PRIMARY KEY, verdict TEXT NOT NULL, used INTEGER);
CREATE INDEX IF NOT EXISTS by_use ON verdicts (used);
"""


def cache_key(judge: Judge, request: JudgeRequest, salt: bytes = b"") -> bytes | None:
    """Return the SHA-256 of everything that a verdict depends on.

    That is the judge's fingerprint (of weights, calibration, instruction and versions), and the
    request without ``id`` and ``metadata``, its pictures by their content.

    Args:
        judge: Gives the verdict.
        request: What it is a verdict on.
        salt: Differs for callers that may not learn what others have asked. The time of an answer
            would tell them.

    Returns:
        32 bytes; ``None`` for a critique without a ``seed`` of the client's, which may differ the
        next time.
    """
    is_drawn = request.mode == "critique" and request.given_critique is None
    if is_drawn and "seed" not in request.model_fields_set:
        return None
    content = request.model_dump(exclude={"id", "metadata", "images"})
    content["images"] = [picture_sha256(source) for source in request.images]
    if request.answers != request.responses:  # earlier versions graded thoughts too
        content["answers"] = request.answers
    content["judge"] = judge.fingerprint(request)
    content["rubric"] = get_task(request.task).full_rubric(request)
    if sampling := critique_sampling(request):
        content["sampling"] = vars(sampling)
    return hashlib.sha256(salt + json.dumps(content, sort_keys=True).encode()).digest()


def _make_private(path: Path) -> None:
    """Let only this user open a database; SQLite gives the files beside it the same mode.

    The file is not opened here: closing it would release the locks that another connection of this
    process has on it.
    """
    path.touch(mode=0o600)
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if file.exists() and file.stat().st_mode & 0o077:
            file.chmod(0o600)


class VerdictCache:
    """Verdicts by key in one SQLite file of bounded size; the least recently used go first.

    One thread may read while another writes. Several services may share a folder.

    Args:
        folder: Made if it is not there.
        max_bytes: Most bytes of the file's pages.

    Raises:
        CustosError: If the file cannot be opened or is not a cache.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _make_private(folder / FILE)
            self._writer = _connect(folder / FILE)
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute("PRAGMA synchronous = NORMAL")
            self._writer.execute("PRAGMA journal_size_limit = 1000000")
            self._writer.executescript(SCHEMA)
            (last,) = self._writer.execute("SELECT COALESCE(MAX(used), 0) FROM verdicts").fetchone()
            self._uses = itertools.count(last + 1)
            self._reader = _connect(folder / FILE)
            for connection in (self._writer, self._reader):
                connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        except (OSError, sqlite3.Error) as error:
            raise CustosError(f"cache {folder}: cannot be opened: {error}") from None

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Verdict]:
        """Return the verdicts that are there for some keys. Nobody who writes delays this.

        Raises:
            CACHE_ERRORS: If the file cannot be read.
        """
        verdicts = {}
        for key in keys:
            row = self._reader.execute(
                "SELECT verdict FROM verdicts WHERE key = ?", (key,)
            ).fetchone()
            if row:
                verdicts[key] = Verdict.model_validate_json(row[0])
        return verdicts

    def put(self, verdicts: Mapping[bytes, Verdict], used: Iterable[bytes] = ()) -> None:
        """Keep verdicts, all or none, and remove old ones while there are too many.

        Args:
            verdicts: New ones.
            used: Keys of verdicts that were asked for again.

        Raises:
            CACHE_ERRORS: If the file cannot be written, or another process is writing.
        """
        with self._transaction() as database:
            for key in used:
                database.execute(
                    "UPDATE verdicts SET used = ? WHERE key = ?", (next(self._uses), key)
                )
            for key, verdict in verdicts.items():
                text = verdict.model_copy(update={"id": ""}).model_dump_json(exclude_unset=True)
                database.execute(
                    "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)",
                    (key, text, next(self._uses)),
                )
            while self.num_bytes > self.max_bytes:
                evicted = database.execute(
                    "DELETE FROM verdicts WHERE key IN "
                    "(SELECT key FROM verdicts ORDER BY used LIMIT ?)",
                    (EVICTED_AT_ONCE,),
                )
                if not evicted.rowcount:
                    break

    @property
    def num_bytes(self) -> int:
        """Return the size of the pages in use; free pages are filled before the file grows."""
        pages, free, size = (
            self._writer.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
        self._writer.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Do all that is done with the database, or nothing."""
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield self._writer
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise


def _connect(file: Path) -> sqlite3.Connection:
    """Open a file; statements outside of a transaction stand for themselves."""
    return sqlite3.connect(file, check_same_thread=False, isolation_level=None, timeout=OPENING_S)
