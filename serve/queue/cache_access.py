"""The verdict cache as calls use it: it may fail or hang, and no call is lost or late for it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from judging import Verdict
from serve.queue.verdict_cache import CACHE_ERRORS, VerdictCache

logger = logging.getLogger("custos.serve")

LOOK_UP_S = 0.5
"""Longest wait for verdicts of the cache; then they are graded."""
MOST_WAITING = 4096
"""Verdicts that may wait to be written; others are not kept."""


class CacheAccess:
    """Lookups and writes, each in a thread of its own.

    Used on one event loop.

    Args:
        cache: The cache; closed with this.
        count_fault: Called with ``read``, ``write`` or ``full`` when something is not looked up or
            not kept.
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
        """Return the verdicts that are there for some keys.

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
        """Have verdicts written soon, unless too many wait already.

        Args:
            verdicts: New ones.
            used: Keys of verdicts that the cache had.
        """
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
            is_new = bool(self._verdicts or self._used)
            if is_new and not is_written_soon:
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
