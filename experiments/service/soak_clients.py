"""Clients of a service that is soaked: good ones, and those that break off or never read."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from experiments.cost.load_generator import (
    CONNECTION_FAILED,
    Connection,
    quantile,
    request_bytes,
)

DEADLINE_S = 60
"""Deadline of the service that is soaked."""
LONGEST_ANSWER_S = DEADLINE_S + 30
PAUSE_S = 0.5
"""Wait of a client that was refused."""
SEGMENT = 536
"""Largest packet that a client which never reads takes. The system holds answers of about forty
packets for it: 50 to 100 kB, and 3 MB with the packets that are usual inside a machine."""
CITIES = ("Paris", "Rome", "Oslo", "Lima", "Cairo", "Quito", "Seoul", "Accra")
REFUSALS = frozenset({429, 503, 504})
KILLED = """
import socket, sys, time
host, port = sys.argv[1], int(sys.argv[2])
call = sys.stdin.buffer.read()
connections = [socket.create_connection((host, port)) for _ in range(8)]
for number, connection in enumerate(connections):
    connection.sendall(call if number % 4 else call[:-10])
print("sent", flush=True)
time.sleep(60)
"""
"""A client with six whole calls and two halves, which is killed."""


@dataclass
class Tally:
    """The results of calls and connections since the last sample."""

    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    """Seconds of the calls that were answered 200."""
    health_latencies: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Calls that got no answer or a wrong one, in words."""
    events: Counter[str] = field(default_factory=Counter)
    """What was done to the service, and what the service did to clients that never read."""

    @property
    def num_calls(self) -> int:
        """Return how many calls had an answer, or lost their connection."""
        return self.statuses.total() + len(self.health_latencies)

    def take(self) -> Tally:
        """Return all that is in here, and begin anew."""
        taken = replace(self)
        self.__dict__.update(vars(Tally()))
        return taken

    def figures(self, seconds: float) -> dict[str, Any]:
        """Return rates and latencies of a time of so many seconds."""
        return {
            "calls_per_second": self.num_calls / seconds,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            **_quantiles("", self.latencies),
            **_quantiles("health_", self.health_latencies),
            "faults": self.faults,
            "events": dict(self.events),
        }


def _quantiles(prefix: str, latencies: Sequence[float]) -> dict[str, float | None]:
    ordered = sorted(latencies)
    return {
        f"{prefix}p{percent}_ms": 1000 * quantile(ordered, percent / 100) if ordered else None
        for percent in (50, 95, 99)
    }


@dataclass(frozen=True)
class Call:
    """One call, and what its answer must hold."""

    path: str
    body: bytes
    expected: tuple[str, ...]
    """Texts in the answer, in this order."""


def random_call(draw: random.Random) -> Call:
    """Draw one call: a request, a list, one with a picture, a stream, or a chat prompt.

    A third of the requests was sent before, so that the cache may answer it.
    """
    kind = draw.choices(("one", "list", "picture", "stream", "chat"), (60, 10, 10, 10, 10))[0]
    if kind == "chat":
        city = draw.choice(CITIES)
        prompt = f"Question: Which city?\nReference: {city}\nResponse: It is {draw.choice(CITIES)}."
        message = {"role": "user", "content": prompt}
        return _call(
            "/v1/chat/completions", {"model": "custos/qa", "messages": [message]}, "choices"
        )
    rows = [_row(draw) for _ in range(8 if kind == "list" else 1)]
    expected = [f'"id":"{row["id"]}"' for row in rows]
    if kind == "list":
        return _call("/judge", rows, *expected)
    if kind == "stream":
        return _call("/judge/stream", rows[0], "event: verdict")
    if kind == "picture":
        rows[0] |= {"task": "hieval-ea", "images": [_picture(draw)]}
    return _call("/judge", rows[0], *expected)


def _call(path: str, body: object, *expected: str) -> Call:
    return Call(path, json.dumps(body).encode(), expected)


def _row(draw: random.Random) -> dict[str, object]:
    number = draw.randrange(20) if draw.random() < 1 / 3 else draw.randrange(10**9)
    city = CITIES[number % len(CITIES)]
    return {
        "id": f"{draw.randrange(10**9)}",
        "task": "hieval-qs",
        "question": f"Which city has the number {number}?",
        "references": [city],
        "reference_mode": "any",
        "response": f"It is {city}." if number % 3 else "I do not know.",
    }


def _picture(draw: random.Random) -> str:
    """Return a PNG of one random colour as a data URL."""
    from PIL import Image

    file = io.BytesIO()
    color = tuple(draw.randrange(256) for _ in range(3))
    Image.new("RGB", (draw.randrange(60, 200), draw.randrange(60, 200)), color).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


async def good_client(
    url: str, key: str, tally: Tally, is_over: Callable[[], bool], refusals: frozenset[int]
) -> None:
    """Send one call after another and check every answer.

    Args:
        url: Address of the service.
        key: Access key.
        tally: Gets what became of the calls.
        is_over: Asked before each call.
        refusals: Statuses that are no fault.
    """
    connection, draw = Connection(url, key), random.Random()
    while not is_over():
        call, start = random_call(draw), time.perf_counter()
        try:
            async with asyncio.timeout(LONGEST_ANSWER_S):
                status, content = await connection.answer_to(call.body, call.path)
        except TimeoutError:
            connection.close()
            tally.faults.append(f"{call.path}: no answer in {LONGEST_ANSWER_S} s")
            continue
        tally.statuses[status] += 1
        if status == 200:
            tally.latencies.append(time.perf_counter() - start)
        if fault := _fault(call, status, content, refusals):
            tally.faults.append(f"{call.path}: {fault}")
        if status != 200:
            await asyncio.sleep(PAUSE_S)
    connection.close()


def _fault(call: Call, status: int, content: bytes, refusals: frozenset[int]) -> str:
    """Return what is wrong with an answer; empty if nothing is."""
    if status == CONNECTION_FAILED:
        return "the connection ended without an answer"
    text = content.decode(errors="replace")
    is_late = (
        '"type":"deadline_exceeded"' in text
    )  # a stream that has begun says so in its last event
    if status in refusals or is_late:
        return ""
    if status != 200:
        return f"{status} {text[:200]}"
    start = 0
    for expected in call.expected:
        start = text.find(expected, start)
        if start < 0:
            return f"200 without {expected!r}: {text[:200]}"
    return ""


async def ask_for_health(url: str, tally: Tally, is_over: Callable[[], bool]) -> None:
    """Ask whether the service lives, once in half a second."""
    connection = Connection(url)
    while not is_over():
        start = time.perf_counter()
        status, _ = await connection.answer_to(b"", "/health/live", "GET")
        tally.health_latencies.append(time.perf_counter() - start)
        if status != 200:
            tally.faults.append(f"/health/live: {status}")
        await asyncio.sleep(0.5)
    connection.close()


def kill_client(host: str, port: int, key: str, draw: random.Random) -> None:
    """Start a client in a process of its own and kill it in the middle of its calls."""
    rows = [_row(draw) for _ in range(16)]
    call = request_bytes(host, port, "/judge", json.dumps(rows).encode(), bearer(key))
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", KILLED, host, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write(call)
        process.stdin.close()
        process.stdout.readline()
        time.sleep(draw.uniform(0.05, 1.0))
        process.kill()


def bearer(key: str) -> str:
    """Return the header with a key."""
    return f"Authorization: Bearer {key}\r\n"


@dataclass
class Stalled:
    """A connection whose client never reads, or never ends its headers."""

    connection: socket.socket
    opened_at: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, host: str, port: int, content: bytes) -> Stalled:
        """Open a connection and write as much as it takes at once."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
        connection.settimeout(5)
        connection.connect((host, port))
        connection.setblocking(False)
        try:
            while content:
                content = content[connection.send(content) :]
        except BlockingIOError:
            pass
        return cls(connection)

    @property
    def seconds(self) -> float:
        """Return how long the connection has been open."""
        return time.monotonic() - self.opened_at

    @property
    def port(self) -> int:
        """Return the port of this side."""
        return int(self.connection.getsockname()[1])


def write_keys(file: Path, keys: Sequence[tuple[str, str]], *, damaged: bool = False) -> None:
    """Replace a file of access keys.

    Args:
        file: The file.
        keys: Name and key of each.
        damaged: Add a line that is no key, so that the service keeps the keys it knows.
    """
    lines = [f"{name}: {sha256(key.encode()).hexdigest()}" for name, key in keys]
    partial = file.with_suffix(".partial")
    partial.write_text("\n".join([*lines, *(["short"] if damaged else [])]) + "\n", "ascii")
    partial.chmod(0o600)
    os.replace(partial, file)


async def repeated(work: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Do some work again and again, with a pause between, until cancelled."""
    while True:
        await work()
        await asyncio.sleep(seconds)
