"""``custos serve`` in processes: a quiet start, signals, and restarts that fail no call."""

import asyncio
import json
import os
import random
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import torch

from clients.pool import JudgePool
from judging.judge import Judge
from judging.types import JudgeRequest, Verdict
from serve import server
from serve.queue import worker
from serve.queue.cache import FILE
from tests.forks import ROOT, Fork, custos_with, forked
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import wait_until

ADDRESS = r"at (http://\S+)\n"
SERVE = ("serve", "--judge", "a=a", "--port", "0")


class BusyJudge(FakeJudge):
    """Never lets a window end, and is most of the time in torch, where no thread can be ended."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        worker.CLOSE_S = 1.0  # its thread is waited for in vain

    def grade(self, requests: Iterable[JudgeRequest], **settings: Any) -> Iterator[Verdict]:
        values = torch.ones(1000, 1000)
        while self.batches:  # the first is the warm-up
            values @ values
        return super().grade(requests, **settings)


class WaitingJudge(FakeJudge):
    """Grades nothing after the warm-up until a file is there."""

    def __init__(self, file: Path, source: str) -> None:
        super().__init__(source)
        self.file = file

    def grade(self, requests: Iterable[JudgeRequest], **settings: Any) -> Iterator[Verdict]:
        while self.batches and not self.file.exists():
            time.sleep(0.01)
        return super().grade(requests, **settings)


class HangingJudge(FakeJudge):
    """Hangs at a response."""

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        if "hang" in request.response:
            time.sleep(60)
        return super().verdict_on(request, confidence)


class BreakingJudge(FakeJudge):
    """Breaks at a response, which stands in the traceback."""

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        if "break" in request.response:
            raise RuntimeError(request.response)
        return super().verdict_on(request, confidence)


def load_forever(source: str) -> Judge:
    values = torch.ones(1000, 1000)
    while True:
        values @ values


def with_little_time_for_answers(*arguments: Any) -> None:
    server.LAST_ANSWERS_S = 1
    custos_with(*arguments)


def with_few_files(*arguments: Any) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    custos_with(*arguments)


@contextmanager
def serve(
    load: Callable[[str], Judge], *options: str, target: Callable[..., None] = custos_with
) -> Iterator[tuple[Fork, str]]:
    """Start ``custos serve`` and wait until it is ready; yield the process and its address.

    Args:
        load: Loads the judge.
        options: More options of the command.
        target: What the process calls.
    """
    with forked(target, load, *SERVE, *options) as process:
        address = process.wait_for(ADDRESS)[1]
        wait_until(lambda: is_ready(address), seconds=60)
        yield process, address


def accepted(count: int) -> str:
    """The line of the metrics after so many requests."""
    return f'judge_requests_total{{outcome="accepted"}} {count}.0'


async def drain_after(count: int, client: httpx.AsyncClient, process: Fork) -> None:
    """Send a signal once so many requests are accepted, and wait until no more are."""
    while accepted(count) not in (await client.get("/metrics")).text:
        await asyncio.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    while (await client.get("/health/ready")).status_code == 200:
        await asyncio.sleep(0.01)


def is_ready(address: str) -> bool:
    try:
        # Certificates, which take long to read, are not needed.
        return httpx.get(f"{address}/health/ready", verify=False).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.usefixtures("embedded")
def test_a_shipped_judge_starts_without_notices_of_libraries(tmp_path: Path) -> None:
    """In a new interpreter, which imports them."""
    command = [sys.executable, "-m", "cli", "serve", "--judge", "embedded-qs", "--port", "0"]
    output, log = tmp_path / "output", tmp_path / "log"
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)}
    with output.open("w") as stdout, log.open("w") as stderr:
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr, env=environment)
    try:
        wait_until(lambda: bool(re.search(ADDRESS, output.read_text())), seconds=300)
        match = re.search(ADDRESS, output.read_text())
        assert match
        answer = httpx.post(f"{match[1]}/judge", json=row(reference_mode="any"), timeout=60)
        assert answer.json()["label"] == "Correct"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait(20)
    lines = log.read_text().splitlines()
    assert any("POST /judge 200" in line for line in lines)
    entry = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ INFO ")
    assert [line for line in lines if not entry.match(line)] == []


def test_a_signal_in_mid_load_loses_no_accepted_request(tmp_path: Path) -> None:
    """Fifty calls are accepted before the signal, and graded after it."""
    gate = tmp_path / "gate"

    async def post(client: httpx.AsyncClient, number: int) -> tuple[int, str]:
        try:
            answer = await client.post("/judge", json=row(id=str(number)))
        except httpx.TransportError:  # not accepted: nobody listens any more
            return 0, ""
        if answer.status_code == 200:
            assert answer.json()["id"] == str(number)
        return answer.status_code, answer.headers.get("Retry-After", "")

    async def load(address: str, process: Fork) -> list[tuple[int, str]]:
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(base_url=address, timeout=30, limits=limits) as client:
            calls = []
            for number in range(100):
                calls.append(asyncio.create_task(post(client, number)))
                await asyncio.sleep(0.001)
                if number == 49:
                    await drain_after(50, client, process)
            while not any(call.done() and call.result()[0] == 503 for call in calls):
                await asyncio.sleep(0.01)
            gate.touch()
            return await asyncio.gather(*calls)

    with serve(partial(WaitingJudge, gate)) as (process, address):
        answers = asyncio.run(load(address, process))
        assert process.wait(60) == 0
    statuses = [status for status, _ in answers]
    assert statuses[:50] == [200] * 50
    assert 503 in statuses
    assert all(wait == "5" for status, wait in answers if status == 503)
    assert set(statuses) <= {200, 503, 0}


def test_a_second_signal_answers_what_is_left() -> None:
    """20 accepted calls, of which the judge, busy in native code, grades none."""

    async def load(address: str, process: Fork) -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            calls = [asyncio.create_task(client.post("/judge", json=row())) for _ in range(20)]
            await drain_after(20, client, process)
            process.send_signal(signal.SIGINT)
            return await asyncio.gather(*calls)

    with serve(BusyJudge) as (process, address):
        answers = asyncio.run(load(address, process))
        assert process.wait(60) == 0
        log = process.stderr
    assert [answer.status_code for answer in answers] == [503] * 20
    for answer in answers:
        assert answer.headers["Retry-After"] == "5"
        assert answer.json()["error"]["type"] == "unavailable"
    assert "Traceback" not in log


def test_a_drain_lasts_as_long_as_the_longest_deadline() -> None:
    with serve(BusyJudge, "--deadline", "1") as (process, address):
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(httpx.post, f"{address}/judge", json=row(), timeout=30)
            wait_until(lambda: accepted(1) in httpx.get(f"{address}/metrics").text)
            process.send_signal(signal.SIGTERM)
            assert late.result().status_code == 504
        assert process.wait(60) == 0


def test_a_call_whose_body_is_still_to_come_is_told_to_come_again() -> None:
    with serve(FakeJudge, target=with_little_time_for_answers) as (process, address):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(
                b"POST /judge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
                b"Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n"
            )
            assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(b"{")
            process.send_signal(signal.SIGTERM)
            answer = connection.makefile("rb").read().decode()
        assert process.wait(60) == 0
    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 503 ")
    assert "retry-after: 5" in head.lower()
    assert json.loads(body)["error"]["type"] == "unavailable"


def test_a_signal_while_judges_are_loaded_ends_the_process() -> None:
    with forked(custos_with, load_forever, *SERVE) as process:
        match = process.wait_for(r"loading a; (http://\S+) answers 503")
        wait_until(lambda: httpx.get(f"{match[1]}/health/live").status_code == 200)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_more_sockets_than_files_neither_end_the_service_nor_fill_the_log() -> None:
    with serve(FakeJudge, target=with_few_files) as (process, address):
        with ExitStack() as sockets:
            host, port = address.removeprefix("http://").split(":")
            for _ in range(1300):
                sockets.enter_context(socket.create_connection((host, int(port)), timeout=20))
            time.sleep(0.5)
        wait_until(lambda: is_ready(address))
        log = process.stderr
    assert len(log) < 10_000
    assert "only 1024 files may be open" in log


def test_a_model_that_hangs_ends_the_process() -> None:
    with serve(HangingJudge, "--watchdog", "4") as (process, address):
        assert httpx.post(f"{address}/judge", json=row()).status_code == 200
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(httpx.post, f"{address}/judge", json=row("hang"), timeout=30)
            wait_until(lambda: not is_ready(address))
            assert httpx.get(f"{address}/health/ready").json() == {"status": "stalled"}
            assert httpx.post(f"{address}/judge", json=row()).status_code == 503
            assert process.wait(60) == 1
            with pytest.raises(httpx.TransportError):
                call.result()
        log = process.stderr
    assert "the model makes no progress for 4 s" in log
    assert "verdict_on" in log


def test_a_hang_up_reads_keys_again_and_ends_no_call(tmp_path: Path) -> None:
    gate, file = tmp_path / "gate", tmp_path / "keys"
    alice, bob = ({"Authorization": f"Bearer {name * 16}"} for name in "ab")
    file.write_text("a" * 16)
    file.chmod(0o600)
    judge = partial(WaitingJudge, gate)
    options = ("--api-key-file", str(file), "--metrics-address", "127.0.0.1:0")
    with serve(judge, *options) as (process, address):
        counters = process.wait_for(r"counters of all callers: (\S+)")[1]
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(
                httpx.post, f"{address}/judge", json=row(), headers=alice, timeout=60
            )
            wait_until(lambda: accepted(1) in httpx.get(counters).text)
            file.write_text("b" * 16)
            process.send_signal(signal.SIGHUP)
            process.wait_for("access keys read again: key-1")
            gate.touch()
            assert call.result().status_code == 200
        assert httpx.get(f"{address}/judges", headers=bob).status_code == 200
        assert httpx.get(f"{address}/judges", headers=alice).status_code == 401
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def with_a_log_that_nobody_reads(*arguments: Any) -> None:
    """Serve with a full pipe as standard error; what it held before is lost."""
    _, end = os.pipe()
    os.set_blocking(end, False)
    with suppress(BlockingIOError):
        while True:
            os.write(end, b"x" * 4096)
    os.set_blocking(end, True)
    os.dup2(end, 2)
    custos_with(*arguments)


def without_a_reader(*arguments: Any) -> None:
    """Serve with a pipe as standard output whose other end is closed."""
    begin, end = os.pipe()
    os.close(begin)
    os.dup2(end, 1)
    custos_with(*arguments)


def test_a_service_whose_output_nobody_reads_answers() -> None:
    with forked(without_a_reader, FakeJudge, *SERVE) as process:
        address = process.wait_for(r"loading a; (http://\S+) answers 503")[1]
        wait_until(lambda: is_ready(address))
        assert httpx.post(f"{address}/judge", json=row()).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_nobody_waits_for_a_log_that_nobody_reads() -> None:
    with serve(FakeJudge, target=with_a_log_that_nobody_reads) as (process, address):
        with httpx.Client(base_url=address, timeout=10) as client:
            for _ in range(300):
                assert client.get("/health/live").status_code == 200
            assert client.post("/judge", json=row()).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_no_text_of_a_caller_is_a_line_of_the_log() -> None:
    forged = "break\n2026-11-27 12:00:00,000 INFO forged\r\x1b[2J\x85forged\u2028forged"
    with serve(BreakingJudge, "--log-contents") as (process, address):
        with httpx.Client(base_url=address, timeout=20) as client:
            broken = client.post("/judge", json=row(forged, id=forged))
            assert broken.json()["status"] == "judge_error"
            assert client.post("/judge", json=row(judge=forged)).status_code == 404
            assert client.get(f"/{quote(forged)}").status_code == 404
            chat = {"model": forged, "messages": [{"role": "user", "content": forged}]}
            assert client.post("/v1/chat/completions", json=chat).status_code == 404
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        log = process.stderr
    assert log.count("forged") >= 6, "contents are logged"
    entry = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ (INFO|WARNING|ERROR) (?!forged)|    ")
    assert [line for line in log.splitlines() if not entry.match(line)] == []
    assert {char for char in log if not char.isprintable()} == {"\n"}


ROUND = 12
"""Rows that a client asks for at a time."""


def free_port() -> int:
    """A port that the system gives to no other connection while nobody listens there."""
    while True:
        port = random.randrange(20_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def test_services_restarted_in_turn_fail_no_call(tmp_path: Path) -> None:
    """Two with one cache; a third of a round's rows are those of the round before."""
    verdicts: list[Verdict] = []
    is_over = threading.Event()

    def ask(pool: JudgePool) -> None:
        for first in count(0, ROUND * 2 // 3):
            rows = [row(id=str(n), question=f"Boat {n}?") for n in range(first, first + ROUND)]
            verdicts.extend(pool.grade(map(JudgeRequest.model_validate, rows)))
            if is_over.is_set():
                return

    def go_on() -> None:
        """Wait until two more rounds have ended, or the client has."""
        enough = len(verdicts) + 2 * ROUND
        wait_until(lambda: client.done() or len(verdicts) >= enough, seconds=120)

    ports = [free_port(), free_port()]
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    with ExitStack() as running, ThreadPoolExecutor(1) as executor:

        def start(number: int) -> Fork:
            options = ("--port", str(ports[number]), "--cache", str(tmp_path / "cache"))
            service = forked(custos_with, FakeJudge, "serve", "--judge", "a=a", *options)
            process = running.enter_context(service)
            wait_until(lambda: is_ready(urls[number]), seconds=120)
            return process

        processes = [start(0), start(1)]
        client = executor.submit(ask, JudgePool.connect(urls))
        for number, process in enumerate(processes):
            go_on()
            process.send_signal(signal.SIGTERM)  # as a supervisor does, which waits for its end
            assert process.wait(60) == 0
            assert not re.search(r"Traceback|/\S* 500 ", process.stderr), process.stderr
            start(number)
        go_on()
        is_over.set()
        client.result()
        for url in urls:  # both know what either has judged
            assert httpx.post(f"{url}/judge", json=row(question="Boat 0?")).status_code == 200
            metrics = httpx.get(f"{url}/metrics").text
            assert 'judge_requests_total{outcome="cached"} 0.0' not in metrics
    firsts = range(0, len(verdicts) * 2 // 3, ROUND * 2 // 3)
    assert [v.id for v in verdicts] == [str(f + n) for f in firsts for n in range(ROUND)]
    assert {verdict.label for verdict in verdicts} == {"Correct"}


@pytest.mark.slow
def test_services_that_share_a_cache_outlive_those_that_are_killed(tmp_path: Path) -> None:
    """Eight begin at once with a new cache; three are killed under load, and start again."""
    folder, num_rows = tmp_path / "cache", 600
    answered: list[int] = []

    def ask(number: int) -> str:
        """Ask the services in turn until one answers."""
        response = f"{'Paris' if number % 2 else 'Rome'} {number}"
        for attempt in count(number):
            with suppress(httpx.TransportError):  # killed just now
                answer = httpx.post(
                    f"{addresses[attempt % 8]}/judge", json=row(response), timeout=30
                )
                assert answer.status_code == 200, answer.text
                answered.append(number)
                return str(answer.json()["label"])
        raise AssertionError

    with ExitStack() as running, ThreadPoolExecutor(16) as executor:

        def start(number: int) -> list[Fork]:
            return [
                running.enter_context(
                    forked(custos_with, FakeJudge, *SERVE, "--cache", str(folder))
                )
                for _ in range(number)
            ]

        def addresses_of(services: list[Fork]) -> list[str]:
            found = [service.wait_for(ADDRESS)[1] for service in services]
            wait_until(lambda: all(map(is_ready, found)), seconds=120)
            return found

        services = start(8)
        addresses = addresses_of(services)
        labels = executor.map(ask, range(num_rows))
        wait_until(lambda: len(answered) > num_rows // 4, seconds=120)
        for service in services[:3]:
            service.send_signal(signal.SIGKILL)
            service.wait(60)
        services[:3] = start(3)
        addresses[:3] = addresses_of(services[:3])
        assert list(labels) == ["Wrong", "Correct"] * (num_rows // 2)
        assert [ask(number) for number in range(100)] == ["Wrong", "Correct"] * 50
        for service in services:
            service.send_signal(signal.SIGTERM)
        assert [service.wait(60) for service in services] == [0] * 8
        for service in services:
            assert "Traceback" not in service.stderr
    assert [file.name for file in folder.iterdir()] == [FILE]
    with closing(sqlite3.connect(folder / FILE)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (kept,) = database.execute("SELECT COUNT(*) FROM verdicts").fetchone()
    assert num_rows - 100 < kept <= num_rows
