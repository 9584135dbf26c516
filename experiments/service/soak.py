"""What two hostile keys cost a well-behaved one, and what they leave behind in a service.

python -m experiments soak --minutes 60 --out runs/soak

A real ``custos serve`` on this machine answers a few clients of one key, which check every answer:
first alone, for a tenth of the time, then beside two keys that attack. Those send large bodies,
deep and wide metadata, stop lists, many pictures and long lists, write slowly, leave in mid-call,
never read their answers, or never end their headers. They run in a process of their own, of the
lowest priority, as attackers have machines of their own. Every few seconds one sample is appended
to samples.jsonl. At the end the service must stop with exit code 0.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import json
import multiprocessing
import os
import random
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from statistics import fmean, median
from typing import Any
from urllib.parse import urlsplit

import psutil
from rich.console import Console
from rich.table import Table

from experiments.cost.load_generator import Connection, quantile, request_bytes
from experiments.cost.service_load import running, service_command
from judging.errors import CustosError
from judging.files.records import write_json

SAMPLES, SUMMARY, LOG = "samples.jsonl", "soak.json", "service.log"
IDLE_SHARE = 0.1
"""Time without attacks, as a share of that with them."""
LONGEST_ANSWER_S = 150
"""Longer than the service's deadline."""
GOOD_SHARE = 0.25
"""Share of its time that a good client waits while it is alone: less than its part of the model
beside two hostile keys, however fast the machine is."""
HOSTILE_PAUSE_S = 0.5
"""Pause of a hostile client after each call."""
LOWEST_PRIORITY = 19
CITIES = ("Paris", "Rome", "Oslo", "Lima", "Cairo", "Quito", "Seoul", "Accra")
FIGURES = {
    "memory_mb": "memory of the service, MB",
    "decoders_mb": "memory of its decoders, MB",
    "descriptors": "open files",
    "threads": "threads",
    "log_bytes": "log, bytes",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judge", default="embedded-ea", help="Default: embedded-ea")
    parser.add_argument("--minutes", type=float, default=60.0, help="of attacks. Default: 60")
    parser.add_argument(
        "--clients",
        type=int,
        default=1,
        help="good clients. Default: 1, which needs a fourth of the model",
    )
    parser.add_argument("--attackers", type=int, default=8, help="of each hostile key. Default: 8")
    parser.add_argument(
        "--every", type=float, default=10.0, help="seconds of a sample. Default: 10"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help=f"folder for {SAMPLES}, {SUMMARY} and {LOG}"
    )
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        keys = {name: secrets.token_hex(16) for name in ("good", "hostile-1", "hostile-2")}
        key_file = Path(folder) / "keys.txt"
        lines = (f"{name}: {sha256(key.encode()).hexdigest()}\n" for name, key in keys.items())
        key_file.touch(mode=0o600)
        key_file.write_text("".join(lines), "ascii")

        def command(port: int) -> list[str]:
            return [*service_command(given.judge, port), "--api-key-file", str(key_file)]

        with running(command, given.out / LOG) as (url, process):
            soak = Soak(url, keys, psutil.Process(process.pid), given.out)
            asyncio.run(soak.run(60 * given.minutes, given.clients, given.attackers, given.every))
    summary = {
        "judge": given.judge,
        "minutes": given.minutes,
        "exit_code": process.returncode,
        **soak.summary(),
    }
    write_json(given.out / SUMMARY, summary)
    for table in tables(summary):
        Console().print(table)


@dataclass
class Tally:
    """The calls of the well-behaved key."""

    seconds: list[float] = field(default_factory=list)
    """Of the calls that were answered as they should be."""
    faults: list[str] = field(default_factory=list)
    """What the others were answered."""

    def figures(self) -> dict[str, Any]:
        """Return numbers of calls, and times in milliseconds."""
        ordered = sorted(self.seconds)
        return {
            "calls": len(ordered) + len(self.faults),
            "errors": len(self.faults),
            **{
                f"p{percent}_ms": 1000 * quantile(ordered, percent / 100) if ordered else None
                for percent in (50, 99)
            },
        }


class Soak:
    """A service with a well-behaved key, called ``good``, and hostile ones, and samples of it."""

    def __init__(self, url: str, keys: dict[str, str], service: psutil.Process, out: Path) -> None:
        self.url = url
        self.keys = keys
        self.service = service
        self.out = out
        self.tallies = {"idle": Tally(), "attacked": Tally()}
        self.samples: list[dict[str, float]] = []
        self.outcomes: dict[str, Counter[str]] = {}
        """How the attacks ended, by their names."""
        self._now = "idle"
        self._end = 0.0

    async def run(self, seconds: float, clients: int, attackers: int, every: float) -> None:
        """Call the service alone, then beside the attackers.

        Raise ``CustosError`` if the service ends meanwhile.
        """
        hostile = [key for name, key in self.keys.items() if name != "good"] * attackers
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, spawn, os.nice, (LOWEST_PRIORITY,)) as process:
            process.submit(attack_until, 0.0, self.url, [], ()).result()  # it takes time to start
            start = time.monotonic()
            self._end = start + IDLE_SHARE * seconds + seconds
            async with asyncio.TaskGroup() as tasks:
                good = [tasks.create_task(self._good_client()) for _ in range(clients)]
                sampling = tasks.create_task(self._take_samples(start, every))
                await asyncio.sleep(IDLE_SHARE * seconds)
                self._now = "attacked"
                attacked = process.submit(attack_until, self._end, self.url, hostile, attacks())
                await asyncio.wait(good)
                sampling.cancel()
        self.outcomes = attacked.result()
        if not self.service.is_running() or self.service.status() == psutil.STATUS_ZOMBIE:
            raise CustosError(f"the service ended by itself: {self.out / LOG}")

    async def _good_client(self) -> None:
        connection, draw = Connection(self.url, self.keys["good"]), random.Random()
        while time.monotonic() < self._end and self.service.is_running():
            path, body, expected = random_call(draw)
            tally, start = self.tallies[self._now], time.perf_counter()
            status, content = 0, b""
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_ANSWER_S):
                    status, content = await connection.answer_to(body, path)
            if status == 200 and holds_in_order(content.decode(), expected):
                tally.seconds.append(time.perf_counter() - start)
            else:
                tally.faults.append(f"{path}: {status} {content[:200].decode(errors='replace')}")
                connection.close()
            alone = self.tallies["idle"].seconds
            await asyncio.sleep((1 / GOOD_SHARE - 1) * fmean(alone) if alone else 1.0)
        connection.close()

    async def _take_samples(self, start: float, every: float) -> None:
        while True:
            children = 0
            for child in self.service.children():
                with suppress(psutil.NoSuchProcess):
                    children += child.memory_info().rss
            sample = {
                "minutes": (time.monotonic() - start) / 60,
                "memory_mb": self.service.memory_info().rss / 1e6,
                "decoders_mb": children / 1e6,
                "descriptors": self.service.num_fds(),
                "threads": self.service.num_threads(),
                "log_bytes": (self.out / LOG).stat().st_size,
            }
            self.samples.append(sample)
            with (self.out / SAMPLES).open("a", encoding="ascii") as file:
                file.write(json.dumps(sample) + "\n")
            await asyncio.sleep(every)

    def summary(self) -> dict[str, Any]:
        """Return what the good key saw, the ratio of its 99th percentiles, and the figures."""
        good = {state: tally.figures() for state, tally in self.tallies.items()}
        slowest = [good[state]["p99_ms"] for state in ("idle", "attacked")]
        return {
            "good_key": good,
            "p99_ratio": slowest[1] / slowest[0] if all(slowest) else None,
            "faults": [fault for tally in self.tallies.values() for fault in tally.faults][:20],
            "attacks": {name: dict(found) for name, found in sorted(self.outcomes.items())},
            "figures": {name: over_time([each[name] for each in self.samples]) for name in FIGURES},
        }


def attack_until(
    end: float, url: str, keys: Sequence[str], known: Sequence[Attack]
) -> dict[str, Counter[str]]:
    """Attack until ``end`` with one client for each of the keys; count how the attacks ended."""
    outcomes: dict[str, Counter[str]] = {}

    async def hostile_client(key: str) -> None:
        draw = random.Random()
        while True:
            attack = draw.choice(known)
            outcome = await attack.send(url, key)
            outcomes.setdefault(attack.name, Counter())[outcome] += 1
            await asyncio.sleep(HOSTILE_PAUSE_S)

    async def main() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(end - time.monotonic()), asyncio.TaskGroup() as tasks:
                for key in keys:
                    tasks.create_task(hostile_client(key))

    asyncio.run(main())
    return outcomes


def over_time(values: Sequence[float]) -> dict[str, float]:
    """Return the medians of the thirds of some samples, and the highest."""
    third = max(1, len(values) // 3)
    parts = (values[:third], values[third : 2 * third] or values, values[-third:])
    names = ("first_third", "second_third", "last_third")
    return {**dict(zip(names, map(median, parts), strict=True)), "highest": max(values)}


def tables(summary: dict[str, Any]) -> list[Table]:
    """Return the summary for the screen."""
    good = Table("the good key", "calls", "errors", "p50, ms", "p99, ms")
    for state, row in summary["good_key"].items():
        times = (f"{row[name]:,.0f}" if row[name] else "-" for name in ("p50_ms", "p99_ms"))
        good.add_row(state, f"{row['calls']:,}", f"{row['errors']:,}", *times)
    ratio = f"{summary['p99_ratio']:.2f}" if summary["p99_ratio"] else "-"
    good.caption = f"p99 under attack / idle: {ratio}; exit code {summary['exit_code']}"
    figures = Table("figure", "first third", "second third", "last third", "highest")
    for name, words in FIGURES.items():
        figures.add_row(words, *(f"{value:,.0f}" for value in summary["figures"][name].values()))
    hostile = Table("attack", "how it ended")
    for name, outcomes in summary["attacks"].items():
        hostile.add_row(name, ", ".join(f"{count:,} x {end}" for end, count in outcomes.items()))
    return [good, figures, hostile]


def random_call(draw: random.Random) -> tuple[str, bytes, list[str]]:
    """Draw one call of a client that means well.

    A third of the requests was sent before, so that a cache may answer it. Return path, body, and
    texts that the answer must hold in this order.
    """
    kind = draw.choices(("one", "list", "picture", "stream", "chat"), (60, 10, 10, 10, 10))[0]
    rows = [_row(draw) for _ in range(8 if kind == "list" else 1)]
    if kind == "chat":
        city = draw.choice(CITIES)
        prompt = f"Question: Which city?\nReference: {city}\nResponse: It is {draw.choice(CITIES)}."
        message = {"role": "user", "content": prompt}
        body = json.dumps({"model": "custos/qa", "messages": [message]})
        return "/v1/chat/completions", body.encode(), ["choices"]
    if kind == "stream":
        return "/judge/stream", json.dumps(rows[0]).encode(), ["event: verdict"]
    if kind == "picture":
        color = tuple(draw.randrange(256) for _ in range(3))
        size = draw.randrange(60, 200), draw.randrange(60, 200)
        rows[0] |= {"task": "hieval-ea", "images": [_picture(size, color)]}
    body = json.dumps(rows if kind == "list" else rows[0])
    return "/judge", body.encode(), [f'"id":"{row["id"]}"' for row in rows]


def holds_in_order(text: str, expected: Sequence[str]) -> bool:
    """Return whether texts stand in another one after the other."""
    start = 0
    for each in expected:
        start = text.find(each, start)
        if start < 0:
            return False
    return True


def _row(draw: random.Random) -> dict[str, Any]:
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


def _picture(size: tuple[int, int], color: tuple[int, ...]) -> str:
    """Return a PNG of one colour as a data URL."""
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", size, color).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


@dataclass(frozen=True)
class Attack:
    """A call that costs the service more than its caller, and the way it is sent."""

    name: str
    body: bytes
    path: str = "/judge"
    times: int = 1
    """How often it is sent on one connection before anything is read."""
    share: float = 1.0
    """Share of its bytes that is sent."""
    bytes_per_second: float = float("inf")
    leaves_after_s: float | None = None
    """When the client leaves, once all is sent; ``None``: with the answer."""

    async def send(self, url: str, key: str) -> str:
        """Send it once; return the status of its answer, or how it ended otherwise."""
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
        header = f"Authorization: Bearer {key}\r\n"
        call = self.times * request_bytes(host, port, self.path, self.body, header)
        call = call[: round(self.share * len(call))]
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(LONGEST_ANSWER_S):
                reader, writer = await asyncio.open_connection(host, port)
                step = round(min(self.bytes_per_second, len(call)))
                for start in range(0, len(call), step):
                    writer.write(call[start : start + step])
                    if self.leaves_after_s is None:
                        await writer.drain()
                    if step < len(call):
                        await asyncio.sleep(1)
                if self.leaves_after_s is not None:
                    await asyncio.sleep(self.leaves_after_s)
                    return "left"
                line = await reader.readline()
                return line.split()[1].decode() if line else "closed"
        except TimeoutError:
            return "no answer"
        except OSError:
            return "cut off"
        finally:
            if writer:
                writer.transport.abort()


@cache
def attacks() -> tuple[Attack, ...]:
    """Return what hostile clients send."""
    draw = random.Random(0)
    row = _row(draw)
    chat = {"model": "custos/qa", "messages": [{"role": "user", "content": "x"}]}

    def with_metadata(value: str) -> bytes:
        return json.dumps(row)[:-1].encode() + f', "metadata": {{"x": {value}}}}}'.encode()

    large = with_metadata(f'"{"y" * 18_000_000}"')
    rows = [_row(draw) | {"response": "It may be Rome. " * 100} for _ in range(256)]
    black = _picture((4_000, 4_000), (0, 0, 0))
    return (
        Attack("large body", large),
        Attack("large body that is no JSON", large[:-1]),
        Attack("deep metadata", with_metadata("[" * 190 + "]" * 190)),
        Attack("wide metadata", with_metadata(f"[{'[],' * 49_000}0]")),
        Attack("six million lists", with_metadata(f"[{'[],' * 6_000_000}0]")),
        Attack(
            "stop of 10 MB",
            json.dumps({**chat, "stop": "x" * 10_000_000}).encode(),
            "/v1/chat/completions",
        ),
        Attack(
            "stop list",
            json.dumps({**chat, "stop": ["x" * 1_000] * 100}).encode(),
            "/v1/chat/completions",
        ),
        Attack(
            "many pictures",
            json.dumps(row | {"task": "hieval-ea", "images": [black] * 4}).encode(),
        ),
        Attack("256 long rows", json.dumps(rows).encode()),
        Attack("leaves in mid-call", json.dumps(rows).encode(), leaves_after_s=0.5),
        Attack("half a body", large, share=0.5, leaves_after_s=5.0),
        Attack("slow body", json.dumps(rows).encode(), bytes_per_second=5_000),
        Attack("never reads", json.dumps(row).encode(), times=200, leaves_after_s=20.0),
        Attack("headers that never end", b"", share=0.5, leaves_after_s=40.0),
    )
