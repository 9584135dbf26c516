"""Load on a running service, beside the two yardsticks: offline grading and a plain app.

The callers are bare sockets, so that on a small machine the load itself costs little.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from judging import CustosError, Judge, JudgeRequest, Verdict

CONNECT_FAILED = 0
STARTING_S = 300
GRADE_BATCH = 256
"""As ``custos grade`` hands rows to a judge."""


@dataclass
class Load:
    """What a number of calls came to."""

    rows_per_call: int = 1
    seconds: float = 0.0
    """From the first call to the last answer."""
    latencies: dict[int, list[float]] = field(default_factory=dict)
    """Seconds of each call, by status; status 0 is a connection that failed."""

    def add(self, status: int, seconds: float) -> None:
        """Count one answer."""
        self.latencies.setdefault(status, []).append(seconds)

    @property
    def rows_per_second(self) -> float:
        """Verdicts per second."""
        return self.rows_per_call * len(self.latencies.get(200, [])) / self.seconds

    def report(self) -> dict[str, Any]:
        """Figures; latencies in milliseconds, of answered calls."""
        answered = sorted(self.latencies.get(200, []))
        return {
            "seconds": round(self.seconds, 3),
            "rows_per_second": round(self.rows_per_second, 3),
            "statuses": {str(s): len(found) for s, found in sorted(self.latencies.items())},
            **{
                f"p{q}_ms": round(1000 * quantile(answered, q / 100), 1) if answered else None
                for q in (50, 95, 99)
            },
        }


def quantile(ordered: Sequence[float], share: float) -> float:
    """Smallest value that at least a share of the values do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Caller:
    """One connection that posts bodies to ``/judge``."""

    def __init__(self, url: str, key: str | None = None) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 80
        auth = f"Authorization: Bearer {key}\r\n" if key else ""
        self._head = (
            f"POST /judge HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n{auth}"
            "Content-Type: application/json\r\n"
        )
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, body: bytes) -> int:
        """Post one body; the status of the answer, 0 if there was none."""
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(self.host, self.port)
            reader, writer = self._streams
            writer.write(f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            if b"connection: close" in head:
                self.close()
            return int(head.split(b" ", 2)[1])
        except (OSError, EOFError, IndexError, ValueError):
            self.close()
            return CONNECT_FAILED

    def close(self) -> None:
        """Hang up."""
        if self._streams:
            self._streams[1].close()
            self._streams = None


async def closed_loop(
    url: str, bodies: Sequence[bytes], clients: int, *, rows_per_call: int = 1
) -> Load:
    """Every client posts its next body when the last is answered; each body goes once."""
    load = Load(rows_per_call)
    rest = iter(bodies)

    async def client() -> None:
        caller = Caller(url)
        for body in rest:
            start = time.perf_counter()
            load.add(await caller.call(body), time.perf_counter() - start)
        caller.close()

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    load.seconds = time.perf_counter() - start
    return load


async def open_loop(
    url: str, bodies: Sequence[bytes], rate: float, seconds: float, *, rows_per_call: int = 1
) -> Load:
    """Bodies are posted at a rate (calls per second), whether or not earlier ones are answered."""
    load = Load(rows_per_call)
    idle: list[Caller] = []

    async def one(body: bytes) -> None:
        caller = idle.pop() if idle else Caller(url)
        start = time.perf_counter()
        load.add(await caller.call(body), time.perf_counter() - start)
        idle.append(caller)

    start = time.perf_counter()
    calls = []
    for number, body in zip(range(round(rate * seconds)), itertools.cycle(bodies), strict=False):
        await asyncio.sleep(start + number / rate - time.perf_counter())
        calls.append(asyncio.create_task(one(body)))
    await asyncio.gather(*calls)
    load.seconds = time.perf_counter() - start
    for caller in idle:
        caller.close()
    return load


def measure(
    judge: str,
    requests: Sequence[JudgeRequest],
    *,
    clients: int = 64,
    rows_per_call: int = 1,
    overload: float = 5.0,
    overload_seconds: float = 30.0,
    plain_rows: int = 400,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Measure a judge behind the service, offline, and behind a plain app, one after another.

    Args:
        judge: Run folder, shipped judge or backbone.
        requests: Rows to grade; each goes once in the closed loops.
        clients: Concurrent clients of the closed loops.
        rows_per_call: Rows of a call to the service; the plain app gets one at a time. Rows that do
            not fill a call are left out.
        overload: Rate of rows in the open loop, as a multiple of the closed loop's rows per second.
        overload_seconds: How long bodies are posted in the open loop.
        plain_rows: How many of the rows the plain app is given.
        tell: Called with progress.

    Returns:
        ``offline`` (before and after the service), ``service``, ``overload``, ``plain``, and the
        two ratios that the service is held to.
    """
    requests = requests[: len(requests) - len(requests) % rows_per_call]
    singles = [request.model_dump_json(exclude_unset=True).encode() for request in requests]
    bodies = _calls(singles, rows_per_call)
    offline = [_offline(judge, requests)]
    tell(f"offline: {offline[0]:.1f} rows/s")
    with _started("serve_judge", judge) as (url, pid):
        asyncio.run(closed_loop(url, bodies[:clients], clients))  # kernels and prefixes
        service = asyncio.run(closed_loop(url, bodies, clients, rows_per_call=rows_per_call))
        service_report = service.report() | {"clients": clients, "peak_rss_mb": _peak_rss_mb(pid)}
        tell(f"service, {clients} clients: {service.rows_per_second:.1f} rows/s")
        rate = overload * service.rows_per_second / rows_per_call
        flood = asyncio.run(
            open_loop(url, bodies, rate, overload_seconds, rows_per_call=rows_per_call)
        )
        overload_report = flood.report() | {
            "calls_per_second": round(rate, 1),
            "peak_rss_mb": _peak_rss_mb(pid),
        }
        tell(f"service at {overload:g} times that: {flood.rows_per_second:.1f} rows/s")
    offline.append(_offline(judge, requests))
    tell(f"offline again: {offline[1]:.1f} rows/s")
    with _started("serve_plain", judge) as (url, pid):
        asyncio.run(closed_loop(url, singles[:clients], clients))
        plain = asyncio.run(closed_loop(url, singles[:plain_rows], clients))
        plain_report = plain.report() | {"clients": clients, "peak_rss_mb": _peak_rss_mb(pid)}
        tell(f"plain app, {clients} clients: {plain.rows_per_second:.1f} rows/s")
    return {
        "judge": judge,
        "rows": len(requests),
        "rows_per_call": rows_per_call,
        "cores": os.cpu_count(),
        "offline": {"rows_per_second": [round(rate, 3) for rate in offline]},
        "service": service_report,
        "overload": overload_report,
        "plain": plain_report,
        "service_to_offline": round(service.rows_per_second / (sum(offline) / 2), 3),
        "overload_to_service": round(flood.rows_per_second / service.rows_per_second, 3),
    }


def _calls(singles: Sequence[bytes], rows_per_call: int) -> list[bytes]:
    """Bodies of calls: lists of requests, or single ones as they are."""
    if rows_per_call == 1:
        return list(singles)
    return [
        b'{"requests": [%s]}' % b",".join(singles[start : start + rows_per_call])
        for start in range(0, len(singles), rows_per_call)
    ]


def _offline(judge: str, requests: Sequence[JudgeRequest]) -> float:
    """Rows per second of the judge alone, in a process that ends with it."""
    code = (
        "import sys; from judging import JudgeRequest;"
        "from experiments.cost.service_load import time_offline;"
        "print(time_offline(sys.argv[1], "
        "[JudgeRequest.model_validate_json(line) for line in sys.stdin]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, judge],
        input="\n".join(request.model_dump_json(exclude_unset=True) for request in requests),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CustosError(f"grading offline failed: {done.stderr.strip().splitlines()[-1]}")
    return float(done.stdout)


def time_offline(judge: str, requests: Sequence[JudgeRequest]) -> float:
    """Rows per second of ``Judge.grade`` in batches, once it is warm."""
    loaded = Judge.load(judge)
    list(loaded.grade(requests[:64]))
    start = time.perf_counter()
    for first in range(0, len(requests), GRADE_BATCH):
        list(loaded.grade(requests[first : first + GRADE_BATCH]))
    return len(requests) / (time.perf_counter() - start)


def serve_judge(judge: str) -> None:
    """The service with one judge on a free port, until a signal."""
    from serve.app import create_app
    from serve.queue.service import Service
    from serve.server import bind, run, url

    service = Service()
    with bind("127.0.0.1", 0) as listener:
        sys.stdout.write(f"{url(listener)}\n")
        sys.stdout.flush()
        run(create_app(service), service, listener, lambda: {"judge": Judge.load(judge)})


def serve_plain(judge: str) -> None:
    """What one would write in an afternoon: an app that judges each request as it comes."""
    import threading

    import uvicorn
    from fastapi import FastAPI

    from serve.server import bind, url

    loaded, lock, app = Judge.load(judge), threading.Lock(), FastAPI()

    @app.post("/judge")
    def grade(request: JudgeRequest) -> Verdict:
        with lock:
            return next(iter(loaded.grade([request])))

    @app.get("/health/ready")
    def ready() -> None:
        return None

    with bind("127.0.0.1", 0) as listener:
        sys.stdout.write(f"{url(listener)}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


@contextlib.contextmanager
def _started(function: str, judge: str) -> Iterator[tuple[str, int]]:
    """A server in a process of its own, ready; its address and process id."""
    code = (
        f"import sys; from experiments.cost.service_load import {function}; {function}(sys.argv[1])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, judge], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        url = process.stdout.readline().strip()
        if not url:
            raise CustosError(f"--judge '{judge}': the server did not start")
        _wait_until_ready(url, process)
        yield url, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _wait_until_ready(url: str, process: subprocess.Popen[str]) -> None:
    import httpx

    until = time.monotonic() + STARTING_S
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/health/ready").status_code == 200:
                return
        time.sleep(0.1)
    raise CustosError("the server did not become ready")


def _peak_rss_mb(pid: int) -> float | None:
    """Largest resident memory of a process so far; ``None`` where the system does not say."""
    status = Path(f"/proc/{pid}/status")
    if not status.is_file():
        return None
    found = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    return round(int(found["VmHWM"].split()[0]) / 1024, 1)
