"""Verdicts on disk, so that the same question to the same judge is graded once.

The file may fail or hang: no call is lost or late for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from judging.errors import CustosError
from judging.fingerprint import picture_sha256
from judging.judge import Judge
from judging.scoring.ask_model import critique_sampling
from judging.tasks import get_task
from judging.types import JudgeRequest, Verdict

logger = logging.getLogger("custos.serve")

FILE = "verdicts.sqlite"
CACHE_ERRORS = (sqlite3.Error, OSError, ValueError)
"""What reading and writing may raise; a ``ValueError`` for a row that is no verdict."""
EVICTED_AT_ONCE = 64
OPENING_S = 5.0
"""Longest wait for others who open the file at the same time."""
BUSY_MS = 50
"""Longest wait for others who use it later: a verdict is graded again in less."""
LOOK_UP_S = 0.5
"""Longest wait of a call for verdicts of the cache; then they are graded."""
MOST_WAITING = 4096
"""Verdicts that may wait to be written; others are not kept."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS verdicts (key BLOB PRIMARY KEY, verdict TEXT NOT NULL, used INTEGER);
CREATE INDEX IF NOT EXISTS by_use ON verdicts (used);
"""


def cache_key(judge: Judge, request: JudgeRequest, salt: bytes = b"") -> bytes | None:
    """Hash everything that a verdict depends on to 32 bytes (SHA-256).

    That is the judge's fingerprint (of weights, calibration, instruction and versions), and the
    request without ``id`` and ``metadata``, its pictures by their content. The salt differs for
    callers that may not learn what others have asked, which the time of an answer would tell them.
    ``None`` for a critique without a ``seed`` of the client's, which may differ the next time.
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


class VerdictCache:
    """Verdicts by key in one SQLite file of bounded size; the least recently used go first.

    The folder is made if it is not there; only this user may open the file, whose pages have at
    most ``max_bytes``. One thread may read while another writes. Several services may share a
    folder. Raises ``CustosError`` if the file cannot be opened or is not a cache.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Not opened here: closing it would release the locks that another connection of this
            # process has on it. SQLite gives the files beside it the same mode.
            path.touch(mode=0o600)
            for file in (path, *(path.with_name(f"{FILE}-{end}") for end in ("wal", "shm"))):
                if file.exists() and file.stat().st_mode & 0o077:
                    file.chmod(0o600)
            self._writer = _connect(path)
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute("PRAGMA synchronous = NORMAL")
            self._writer.execute("PRAGMA journal_size_limit = 1000000")
            self._writer.executescript(SCHEMA)
            (last,) = self._writer.execute("SELECT COALESCE(MAX(used), 0) FROM verdicts").fetchone()
            self._uses = itertools.count(last + 1)
            self._reader = _connect(path)
            for connection in (self._writer, self._reader):
                connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise CustosError(
                f"--cache '{folder}': cannot be opened ({reason}); name another folder"
            ) from None

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Verdict]:
        """Look up the verdicts that are there for some keys. Nobody who writes delays this.

        Raises ``CACHE_ERRORS`` if the file cannot be read.
        """
        query = "SELECT verdict FROM verdicts WHERE key = ?"
        rows = {key: self._reader.execute(query, (key,)).fetchone() for key in keys}
        return {key: Verdict.model_validate_json(row[0]) for key, row in rows.items() if row}

    def put(self, verdicts: Mapping[bytes, Verdict], used: Iterable[bytes] = ()) -> None:
        """Keep verdicts, all or none, and remove old ones while there are too many.

        ``used`` are keys of verdicts that were asked for again. Raises ``CACHE_ERRORS`` if the file
        cannot be written, or another process is writing.
        """
        database = self._writer
        database.execute("BEGIN IMMEDIATE")
        try:
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
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise

    @property
    def num_bytes(self) -> int:
        """Count the bytes of the pages in use; free pages are filled before the file grows."""
        pages, free, size = (
            self._writer.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
        self._writer.close()


def _connect(file: Path) -> sqlite3.Connection:
    """Open a file; each statement outside of a transaction is committed at once."""
    return sqlite3.connect(file, check_same_thread=False, isolation_level=None, timeout=OPENING_S)


class CacheAccess:
    """Lookups and writes of calls on one event loop, each in a thread of its own.

    The cache is closed with this. ``count_fault`` is called with ``read``, ``write`` or ``full``
    when something is not looked up or not kept.
    """

    def __init__(self, cache: VerdictCache, count_fault: Callable[[str], None]) -> None:
        self._cache = cache
        self._count_fault = count_fault
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cache-reader")
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cache-writer")
        self._lock = threading.Lock()
        """Held to read or change what waits to be written."""
        self._verdicts: dict[bytes, Verdict] = {}
        self._being_written: dict[bytes, Verdict] = {}
        self._used: set[bytes] = set()
        self._is_closed = False

    async def look_up(self, keys: Sequence[bytes]) -> dict[bytes, Verdict]:
        """Look up the verdicts that are there for some keys.

        Those that wait to be written count; of the others there are none if the cache fails.
        """
        with self._lock:
            unwritten = {**self._being_written, **self._verdicts}
        waiting = {key: unwritten[key] for key in keys if key in unwritten}
        written = [key for key in keys if key not in waiting]
        if not written:
            return waiting
        loop = asyncio.get_running_loop()
        with self._faults_counted("read"):
            async with asyncio.timeout(LOOK_UP_S):
                look_up = loop.run_in_executor(self._reader, self._cache.get, written)
                return waiting | await look_up
        return waiting

    def keep(self, verdicts: Mapping[bytes, Verdict], used: Iterable[bytes]) -> None:
        """Have new verdicts written soon, unless too many wait already; note keys used again."""
        with self._lock:
            if self._is_closed:  # the last answers of a service that ends
                return
            is_written_soon = bool(self._verdicts or self._used)
            if len(self._verdicts) + len(verdicts) > MOST_WAITING:
                logger.warning("the cache is too slow: %d verdicts are not kept", len(verdicts))
                self._count_fault("full")
                return
            self._verdicts.update(verdicts)
            if len(self._used) < MOST_WAITING:
                self._used.update(used)
            if (self._verdicts or self._used) and not is_written_soon:
                self._writer.submit(self._write)

    def close(self) -> None:
        """Write what waits, and close the cache."""
        with self._lock:
            self._is_closed = True
        self._reader.shutdown(cancel_futures=True)
        self._writer.shutdown()
        self._cache.close()

    def _write(self) -> None:
        with self._lock:
            self._being_written, used = self._verdicts, self._used
            self._verdicts, self._used = {}, set()
        with self._faults_counted("write"):
            self._cache.put(self._being_written, used)
        with self._lock:
            self._being_written = {}

    @contextmanager
    def _faults_counted(self, operation: str) -> Iterator[None]:
        try:
            yield
        except CACHE_ERRORS as error:  # a timeout is an OSError
            reason = str(error) or "it takes too long"
            logger.warning("the cache failed (%s): %s; going on without", operation, reason)
            self._count_fault(operation)
