"""``custos serve`` in a process of its own: a quiet start, and what a signal does to calls."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.made_up import row
from tests.serve.sockets import wait_until

REPOSITORY = str(Path(__file__).parents[2])
FAKE_JUDGE = """
from judging import Judge
from tests.serve.made_up import FakeJudge
Judge.load = lambda source: FakeJudge(source, pause_s={pause_s})
"""
BUSY_JUDGE = """
import torch
from judging import Judge
from tests.serve.made_up import FakeJudge

class BusyJudge(FakeJudge):
    def grade(self, requests, **settings):
        values = torch.ones(1000, 1000)
        while self.batches:  # the first is the warm-up
            values @ values
        return super().grade(requests, **settings)

Judge.load = lambda source: BusyJudge(source)
"""
"""Never lets a window end, and is most of the time in torch, where Python cannot end a thread."""
SLOW_LOADING = """
import torch
from judging import Judge

def load(source):
    values = torch.ones(1000, 1000)
    while True:
        values @ values

Judge.load = load
"""
FEW_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
"""
SERVE = """
import sys
import threading
sys.path.insert(0, {repository!r})
{before}
from cli.main import app
app()
"""


@contextmanager
def serve(
    judge: str, log: Path, before: str = "", options: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start ``custos serve`` and wait until it is ready; yield the process and its address.

    Args:
        judge: Value of ``--judge``.
        log: File for its standard error.
        before: Python to run before the command.
        options: More options of the command.
    """
    script = SERVE.format(repository=REPOSITORY, before=before)
    with log.open("w") as log_file:
        process = subprocess.Popen(
            [sys.executable, "-c", script, "serve", "--judge", judge, "--port", "0", *options],
            stdout=subprocess.PIPE,
            stderr=log_file,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    try:
        assert process.stdout
        match = re.search(r"at (http://\S+)", process.stdout.readline())
        assert match
        wait_until(lambda: process.poll() is not None or is_ready(match[1]), seconds=120)
        yield process, match[1]
    finally:
        process.kill()
        process.wait()


def is_ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health/ready").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.usefixtures("embedded")
def test_a_shipped_judge_starts_without_notices_of_libraries(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serve("embedded-qs", log) as (process, address):
        answer = httpx.post(f"{address}/judge", json=row(reference_mode="any"), timeout=60)
        assert answer.json()["label"] == "Correct"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    lines = log.read_text().splitlines()
    assert any("POST /judge 200" in line for line in lines)
    entry = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ INFO ")
    assert [line for line in lines if not entry.match(line)] == []


def test_a_signal_in_mid_load_loses_no_accepted_request(tmp_path: Path) -> None:
    async def post(client: httpx.AsyncClient, number: int) -> tuple[int, str]:
        try:
            answer = await client.post("/judge", json=row(id=str(number)))
        except httpx.TransportError:  # not accepted: nobody listens any more
            return 0, ""
        if answer.status_code == 200:
            assert answer.json()["id"] == str(number)
        return answer.status_code, answer.headers.get("Retry-After", "")

    async def load(address: str, process: subprocess.Popen[str]) -> list[tuple[int, str]]:
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(base_url=address, timeout=30, limits=limits) as client:
            calls = []
            for number in range(100):
                calls.append(asyncio.create_task(post(client, number)))
                await asyncio.sleep(0.005)
                if number == 50:
                    metrics = (await client.get("/metrics")).text
                    assert 'judge_requests_total{outcome="accepted"}' in metrics
                    process.send_signal(signal.SIGTERM)
                if number == 60:
                    assert (await client.get("/health/ready")).status_code == 503
            return await asyncio.gather(*calls)

    with serve("a=a", tmp_path / "log", FAKE_JUDGE.format(pause_s=0.06)) as (process, address):
        answers = asyncio.run(load(address, process))
        assert process.wait(60) == 0
    statuses = [status for status, _ in answers]
    # Everything sent well before the signal was accepted, and all of that was answered.
    assert statuses[:45] == [200] * 45
    assert 503 in statuses
    assert all(wait == "5" for status, wait in answers if status == 503)
    assert set(statuses) <= {200, 503, 0}


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_answers_what_is_left(tmp_path: Path, signal_number: int) -> None:
    """300 accepted calls, of which the judge, busy in native code, grades none."""

    async def post(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/judge", json=row())

    async def load(address: str, process: subprocess.Popen[str]) -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=400)
        async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
            calls = [asyncio.create_task(post(client)) for _ in range(300)]
            accepted = 'judge_requests_total{outcome="accepted"} 300.0'
            while accepted not in (await client.get("/metrics")).text:
                await asyncio.sleep(0.05)
            process.send_signal(signal_number)
            while (await client.get("/health/ready")).status_code == 200:
                await asyncio.sleep(0.05)
            process.send_signal(signal_number)
            return await asyncio.gather(*calls)

    with serve("a=a", tmp_path / "log", BUSY_JUDGE) as (process, address):
        answers = asyncio.run(load(address, process))
        assert process.wait(60) == 0
    assert [answer.status_code for answer in answers] == [503] * 300
    for answer in answers:
        assert answer.headers["Retry-After"] == "5"
        assert answer.json()["error"]["type"] == "unavailable"
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_drain_lasts_as_long_as_the_longest_deadline(tmp_path: Path) -> None:
    with serve("a=a", tmp_path / "log", BUSY_JUDGE, ["--deadline", "3"]) as (process, address):
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(httpx.post, f"{address}/judge", json=row(), timeout=30)
            accepted = 'judge_requests_total{outcome="accepted"} 1.0'
            wait_until(lambda: accepted in httpx.get(f"{address}/metrics").text)
            process.send_signal(signal.SIGTERM)
            assert late.result().status_code == 504
        assert process.wait(60) == 0


def test_a_call_whose_body_is_still_to_come_is_told_to_come_again(tmp_path: Path) -> None:
    with serve("a=a", tmp_path / "log", FAKE_JUDGE.format(pause_s=0)) as (process, address):
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


def test_a_signal_while_judges_are_loaded_ends_the_process(tmp_path: Path) -> None:
    script = SERVE.format(repository=REPOSITORY, before=SLOW_LOADING)
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", script, "serve", "--judge", "a=a", "--port", "0"], stderr=log
        )
        try:
            loading = re.compile(r"loading a; (http://\S+) answers 503")
            wait_until(lambda: bool(loading.search((tmp_path / "log").read_text())), seconds=300)
            match = loading.search((tmp_path / "log").read_text())
            assert match
            wait_until(lambda: httpx.get(f"{match[1]}/health/live").status_code == 200)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()


def test_more_sockets_than_files_neither_end_the_service_nor_fill_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    before = FEW_FILES + FAKE_JUDGE.format(pause_s=0)
    with serve("a=a", log, before) as (_, address), ExitStack() as sockets:
        host, port = address.removeprefix("http://").split(":")
        for _ in range(1300):
            sockets.enter_context(socket.create_connection((host, int(port)), timeout=20))
        time.sleep(2)
        sockets.close()
        wait_until(lambda: is_ready(address))
    assert log.stat().st_size < 10_000
    assert "only 1024 files may be open" in log.read_text()


HANGING_JUDGE = """
import time
from judging import Judge
from tests.serve.made_up import FakeJudge
class Hanging(FakeJudge):
    def verdict_on(self, request, confidence):
        if "hang" in request.response:
            time.sleep(60)
        return super().verdict_on(request, confidence)
Judge.load = Hanging
"""


def test_a_model_that_hangs_ends_the_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serve("a=a", log, HANGING_JUDGE, ["--watchdog", "4"]) as (process, address):
        assert httpx.post(f"{address}/judge", json=row()).status_code == 200
        with httpx.Client(base_url=address, timeout=30) as client:
            call = threading.Thread(target=_post_in_vain, args=(client, row("hang")))
            call.start()
            wait_until(lambda: not is_ready(address))
            assert httpx.get(f"{address}/health/ready").json() == {"status": "stalled"}
            assert httpx.post(f"{address}/judge", json=row()).status_code == 503
            assert process.wait(20) == 1
            call.join()
    assert "Timeout (0:00:04)!" in log.read_text()
    assert "verdict_on" in log.read_text()


def _post_in_vain(client: httpx.Client, body: Any) -> None:
    with pytest.raises(httpx.TransportError):
        client.post("/judge", json=body)
