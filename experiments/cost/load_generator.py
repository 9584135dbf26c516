"""A load generator for ``POST /judge`` over bare sockets.

Bare sockets cost little, so that on a small machine the service keeps nearly all of the processor.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

CONNECTION_FAILED = 0
"""Stands in for the HTTP status of a call that got no answer."""


@dataclass
class LoadResult:
    """The answers to a number of calls."""

    rows_per_call: int = 1
    seconds: float = 0.0
    """From the first call to the last answer."""
    latencies: dict[int, list[float]] = field(default_factory=dict)
    """Seconds of each call, by HTTP status or ``CONNECTION_FAILED``."""

    def add(self, status: int, seconds: float) -> None:
        """Count one answer."""
        self.latencies.setdefault(status, []).append(seconds)

    @property
    def rows_per_second(self) -> float:
        """Return verdicts per second."""
        return self.rows_per_call * len(self.latencies.get(200, [])) / self.seconds

    def report(self) -> dict[str, Any]:
        """Return rates, counts by status and latencies of answered calls in milliseconds."""
        answered = sorted(self.latencies.get(200, []))
        return {
            "seconds": round(self.seconds, 3),
            "rows_per_second": round(self.rows_per_second, 3),
            "statuses": {
                str(status): len(seconds) for status, seconds in sorted(self.latencies.items())
            },
            **{
                f"p{q}_ms": round(1000 * quantile(answered, q / 100), 1) if answered else None
                for q in (50, 95, 99)
            },
        }


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least a share of the values do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Connection:
    """One connection that posts bodies to ``/judge``."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 80
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, body: bytes) -> int:
        """Post one body; return the HTTP status, or ``CONNECTION_FAILED``."""
        head = (
            f"POST /judge HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(self.host, self.port)
            reader, writer = self._streams
            writer.write(head.encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(answer.split(b"content-length:")[1].split(b"\r\n")[0]))
            if b"connection: close" in answer:
                self.close()
            return int(answer.split(b" ", 2)[1])
        except (OSError, EOFError, IndexError, ValueError):
            self.close()
            return CONNECTION_FAILED

    def close(self) -> None:
        """Close the connection."""
        if self._streams:
            self._streams[1].close()
            self._streams = None


async def closed_loop(
    url: str, bodies: Sequence[bytes], clients: int, *, rows_per_call: int = 1
) -> LoadResult:
    """Send every body once; each client posts its next one when its last is answered."""
    result = LoadResult(rows_per_call)
    unsent = iter(bodies)

    async def client() -> None:
        connection = Connection(url)
        for body in unsent:
            start = time.perf_counter()
            result.add(await connection.post(body), time.perf_counter() - start)
        connection.close()

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    result.seconds = time.perf_counter() - start
    return result


async def open_loop(
    url: str, bodies: Sequence[bytes], rate: float, seconds: float, *, rows_per_call: int = 1
) -> LoadResult:
    """Post bodies at a rate (calls per second), whether or not earlier ones are answered."""
    result = LoadResult(rows_per_call)
    idle: list[Connection] = []

    async def post(body: bytes) -> None:
        connection = idle.pop() if idle else Connection(url)
        start = time.perf_counter()
        result.add(await connection.post(body), time.perf_counter() - start)
        idle.append(connection)

    start = time.perf_counter()
    calls = []
    for number, body in zip(range(round(rate * seconds)), itertools.cycle(bodies), strict=False):
        await asyncio.sleep(start + number / rate - time.perf_counter())
        calls.append(asyncio.create_task(post(body)))
    await asyncio.gather(*calls)
    result.seconds = time.perf_counter() - start
    for connection in idle:
        connection.close()
    return result
