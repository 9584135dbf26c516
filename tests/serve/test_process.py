"""``custos serve`` in a process of its own: a quiet start, and what a signal does to calls."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
SERVE = """
import sys
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
    except httpx.ConnectError:
        return False


@pytest.mark.usefixtures("embedded")
def test_a_shipped_judge_starts_without_notices_of_libraries(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serve("embedded-qs", log) as (process, address):
        answer = httpx.post(f"{address}/judge", json=row(reference_mode="any"), timeout=60)
        assert answer.json()["label"] == "Correct"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == -signal.SIGTERM
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
        assert process.wait(20) == -signal.SIGTERM
    statuses = [status for status, _ in answers]
    # Everything sent well before the signal was accepted, and all of that was answered.
    assert statuses[:45] == [200] * 45
    assert 503 in statuses
    assert all(wait == "5" for status, wait in answers if status == 503)
    assert set(statuses) <= {200, 503, 0}


def test_a_second_signal_ends_the_wait(tmp_path: Path) -> None:
    with serve("a=a", tmp_path / "log", FAKE_JUDGE.format(pause_s=1.0)) as (process, address):

        def signals() -> None:
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)

        threading.Thread(target=signals).start()
        start = time.monotonic()
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{address}/judge", json={"requests": [row()] * 60}, timeout=30)
        assert process.wait(20) == -signal.SIGTERM
        assert 0.7 < time.monotonic() - start < 20


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
