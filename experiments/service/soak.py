"""The traces of hours of hostile load in a service: memory, descriptors, log, lost calls.

python -m experiments soak --minutes 60 --out runs/soak

A real ``custos serve`` on this machine is kept busy by clients that send requests, lists, pictures,
streams and chat prompts, and check every answer. Meanwhile other clients are killed in mid-call,
others never read their answers or never end their headers, the file of access keys is changed
every few seconds and sometimes damaged, and a neighbour process takes one core. Every few seconds
one sample is appended to samples.jsonl. At the end the service must stop with exit code 0, and its
own counters must add up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import secrets
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from rich.console import Console

from experiments.cost.busy_neighbour import busy_process
from experiments.cost.load_generator import Connection, request_bytes
from experiments.cost.service_load import running, service_command
from experiments.service.soak_clients import (
    DEADLINE_S,
    REFUSALS,
    Stalled,
    Tally,
    ask_for_health,
    bearer,
    good_client,
    kill_client,
    repeated,
    write_keys,
)
from experiments.service.soak_report import draw_samples, summarise, table
from judging.errors import CustosError
from judging.files.records import write_json

SAMPLES, SUMMARY, PICTURE, LOG = "samples.jsonl", "soak.json", "soak.png", "service.log"
GUESTS = 4
"""Clients whose key comes and goes."""
GUEST_REFUSALS = REFUSALS | {401}
KEYS_S, KILL_S, STALL_S = 5.0, 10.0, 30.0
"""Seconds between two files of keys, two killed clients, and two that stall."""
HELD_S = 600
"""Longest time that the service may hold the connection of a client that stalls. It is cut off 30
seconds after the last byte that the system took, which on a busy machine comes late."""
UNREAD, NUM_UNREAD = "/pages/static/playground.js", 20
"""Calls whose answers a client does not read. They cost the service little, and together they are
more than the system holds for such a client: 212 kB."""
COUNTER = re.compile(
    r'^judge_(?:requests_total\{outcome="(?P<outcome>\w+)"|num_requests_(?P<state>\w+)\{judge="judge")'
    r"\} (?P<count>\S+)$",
    re.MULTILINE,
)
"""The service's own counters of requests in its metrics."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judge", default="embedded-ea", help="Default: embedded-ea")
    parser.add_argument("--minutes", type=float, default=60.0, help="Default: 60")
    parser.add_argument("--clients", type=int, default=32, help="good clients. Default: 32")
    parser.add_argument(
        "--every", type=float, default=10.0, help="seconds of a sample. Default: 10"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help=f"folder for {SAMPLES}, {SUMMARY}, {PICTURE}, {LOG}"
    )
    arguments = parser.parse_args(argv)
    summary = soak(
        arguments.judge,
        60 * arguments.minutes,
        arguments.out,
        clients=arguments.clients,
        every=arguments.every,
    )
    Console().print(table(summary))


def soak(judge: str, seconds: float, out: Path, *, clients: int, every: float) -> dict[str, Any]:
    """Keep a service busy and return what was seen.

    Args:
        judge: Run folder, shipped judge or backbone.
        seconds: How long.
        out: Folder for samples, summary, picture, and the service's log.
        clients: Number of good clients.
        every: Seconds of a sample.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        soaking = Soaking(folder / "keys.txt", out, every)

        def command(port: int) -> list[str]:
            options = ["--api-key-file", str(soaking.key_file), "--cache", str(folder / "cache")]
            options += [
                "--metrics-address",
                operator_address(port),
                "--cache-mb",
                "1",
                "--queue",
                "64",
                "--deadline",
                str(DEADLINE_S),
            ]
            return [*service_command(judge, port), *options]

        with running(command, out / LOG) as (url, process), busy_process():
            counters = asyncio.run(soaking.run(url, process, seconds, clients))
    summary = {
        "judge": judge,
        "minutes": round(seconds / 60, 2),
        "clients": clients,
        "exit_code": process.returncode,
        "counters": counters,
        **summarise(soaking.samples),
    }
    write_json(out / SUMMARY, summary)
    draw_samples(soaking.samples, out / PICTURE)
    return summary


class Soaking:
    """A service under load, and the samples taken of it.

    Args:
        key_file: The service's file of access keys.
        out: Folder for samples; the service's log is there.
        every: Seconds of a sample.
    """

    def __init__(self, key_file: Path, out: Path, every: float) -> None:
        self.key_file = key_file
        self.samples: list[dict[str, Any]] = []
        self._log = out / LOG
        self._samples_file = out / SAMPLES
        self._every = every
        self._tally = Tally()
        self._draw = random.Random(0)
        self._stalled: list[Stalled] = []
        self._start = self._sampled_at = 0.0
        self._log_bytes = 0
        self._steady, self._guest = ((name, secrets.token_hex(16)) for name in ("steady", "guest"))
        write_keys(key_file, [self._steady, self._guest])

    async def run(
        self, url: str, process: subprocess.Popen[bytes], seconds: float, clients: int
    ) -> dict[str, float]:
        """Keep the service busy; return its own counters of requests once all are answered.

        Raises:
            CustosError: If the service ends meanwhile.
        """
        self._start = self._sampled_at = time.monotonic()
        service = psutil.Process(process.pid)

        def is_over() -> bool:
            return time.monotonic() >= self._start + seconds or process.poll() is not None

        def client(key: str, refusals: frozenset[int]) -> Coroutine[Any, Any, None]:
            return good_client(url, key, self._tally, is_over, refusals)

        async with self._disturbances(url, service), asyncio.TaskGroup() as tasks:
            for _ in range(clients):
                tasks.create_task(client(self._steady[1], REFUSALS))
            for _ in range(GUESTS):
                tasks.create_task(client(self._guest[1], GUEST_REFUSALS))
            tasks.create_task(ask_for_health(url, self._tally, is_over))
            tasks.create_task(self._take_samples(service, is_over))
        if process.poll() is not None:
            raise CustosError(f"the service ended with exit code {process.returncode}: {self._log}")
        self._take_sample(service)  # the last answers
        return await self._counters(url)

    @asynccontextmanager
    async def _disturbances(self, url: str, service: psutil.Process) -> AsyncIterator[None]:
        """Disturb the service until the block ends."""
        parts = urlsplit(url)
        address = parts.hostname or "", parts.port or 80
        tasks = [
            asyncio.create_task(repeated(self._change_keys, KEYS_S)),
            asyncio.create_task(repeated(lambda: self._kill_client(*address), KILL_S)),
            asyncio.create_task(repeated(lambda: self._stall(*address, service), STALL_S)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for error in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(error, Exception):  # not that it was cancelled
                    self._tally.faults.append(repr(error))
            for stalled in self._stalled:
                stalled.connection.close()

    async def _change_keys(self) -> None:
        """Let the guest in, keep it out, or write a file that cannot be used."""
        kind = self._draw.choice(("both", "one", "damaged"))
        keys = [self._steady] if kind == "one" else [self._steady, self._guest]
        write_keys(self.key_file, keys, damaged=kind == "damaged")
        self._tally.events["key files"] += 1

    async def _kill_client(self, host: str, port: int) -> None:
        await asyncio.to_thread(kill_client, host, port, self._steady[1], self._draw)
        self._tally.events["killed clients"] += 1

    async def _stall(self, host: str, port: int, service: psutil.Process) -> None:
        """Open two connections that stall, and see which of the earlier ones were cut off."""
        held = {peer.raddr.port for peer in service.net_connections("tcp") if peer.raddr}
        for stalled in list(self._stalled):
            is_cut = stalled.port not in held
            if not is_cut and stalled.seconds < HELD_S:
                continue
            self._stalled.remove(stalled)
            stalled.connection.close()
            self._tally.events["cut off"] += is_cut
            if not is_cut:
                self._tally.faults.append(f"a client stalled for {HELD_S} s and was not cut off")
        key = bearer(self._steady[1])
        calls = NUM_UNREAD * request_bytes(host, port, UNREAD, b"", key, "GET")
        for content in (calls, b"POST /judge HTTP/1.1\r\nHo"):
            self._stalled.append(await asyncio.to_thread(Stalled.of, host, port, content))
            self._tally.events["stalled"] += 1

    async def _take_samples(self, service: psutil.Process, is_over: Callable[[], bool]) -> None:
        """Append one sample after another to the file of samples."""
        while not is_over():
            await asyncio.sleep(self._every)
            with suppress(psutil.NoSuchProcess):  # the end of the service is an error elsewhere
                self._take_sample(service)

    def _take_sample(self, service: psutil.Process) -> None:
        figures, tally, now = process_figures(service), self._tally.take(), time.monotonic()
        log_bytes = self._log.stat().st_size
        sample = {
            "minutes": (now - self._start) / 60,
            **figures,
            **tally.figures(now - self._sampled_at),
            "log_bytes_per_call": (log_bytes - self._log_bytes) / max(1, tally.num_calls),
        }
        self._sampled_at, self._log_bytes = now, log_bytes
        self.samples.append(sample)
        with self._samples_file.open("a", encoding="ascii") as file:
            file.write(json.dumps(sample) + "\n")

    async def _counters(self, url: str) -> dict[str, float]:
        """Return the service's counters of requests, and how many it has still in hand."""
        operator = operator_address(urlsplit(url).port or 0)
        connection = Connection(f"http://{operator}", self._steady[1])
        write_keys(self.key_file, [self._steady])
        end = time.monotonic() + DEADLINE_S  # until then everything has an answer or is dropped
        while True:
            _, content = await connection.answer_to(b"", "/metrics", "GET")
            counts = {
                match["outcome"] or match["state"]: float(match["count"])
                for match in COUNTER.finditer(content.decode())
            }
            in_hand = counts["waiting"] + counts["running"]
            if not in_hand or time.monotonic() > end:
                connection.close()
                return counts
            await asyncio.sleep(0.2)


def operator_address(port: int) -> str:
    """Return where the service at a port tells the counters of all callers."""
    return f"127.0.0.1:{port + 1}"


def process_figures(service: psutil.Process) -> dict[str, float]:
    """Return memory, open files and threads of a service, and memory of its other processes."""
    children = 0
    for child in service.children():
        with suppress(psutil.NoSuchProcess):
            children += child.memory_info().rss
    return {
        "memory_mb": service.memory_info().rss / 1e6,
        "decoders_mb": children / 1e6,
        "descriptors": service.num_fds(),
        "threads": service.num_threads(),
    }
