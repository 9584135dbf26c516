"""``custos serve`` as a process of its own: what a signal does to calls in hand."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.serve.made_up import row

SERVER = """
import sys
sys.path.insert(0, {repository!r})
from judging import Judge
from tests.serve.made_up import FakeJudge
Judge.load = lambda source: FakeJudge(source, pause_s={pause_s})
from cli.main import app
app()
"""


@contextmanager
def process(pause_s: float) -> Iterator[tuple[subprocess.Popen[str], str]]:
    script = SERVER.format(repository=str(Path(__file__).parents[2]), pause_s=pause_s)
    started = subprocess.Popen(
        [sys.executable, "-c", script, "serve", "--judge", "a=a", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert started.stdout
        match = re.search(r"at (http://\S+)", started.stdout.readline())
        assert match
        for _ in range(400):
            try:
                if httpx.get(f"{match[1]}/health/ready").status_code == 200:
                    break
            except httpx.ConnectError:
                pass
            time.sleep(0.05)
        else:
            pytest.fail("never ready")
        yield started, match[1]
    finally:
        started.kill()
        started.wait()


def test_a_signal_in_mid_load_loses_no_accepted_request() -> None:
    async def post(client: httpx.AsyncClient, number: int) -> tuple[int, str]:
        try:
            answer = await client.post("/judge", json=row(id=str(number)))
        except httpx.TransportError:  # not accepted: nobody listens any more
            return 0, ""
        if answer.status_code == 200:
            assert answer.json()["id"] == str(number)
        return answer.status_code, answer.headers.get("Retry-After", "")

    async def load(address: str, started: subprocess.Popen[str]) -> list[tuple[int, str]]:
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(base_url=address, timeout=30, limits=limits) as client:
            calls = []
            for number in range(100):
                calls.append(asyncio.create_task(post(client, number)))
                await asyncio.sleep(0.005)
                if number == 50:
                    metrics = (await client.get("/metrics")).text
                    assert 'judge_requests_total{outcome="accepted"}' in metrics
                    started.send_signal(signal.SIGTERM)
                if number == 60:
                    assert (await client.get("/health/ready")).status_code == 503
            return await asyncio.gather(*calls)

    with process(pause_s=0.06) as (started, address):
        answers = asyncio.run(load(address, started))
        assert started.wait(20) == -signal.SIGTERM
    statuses = [status for status, _ in answers]
    # Everything sent well before the signal was accepted, and all of that was answered.
    assert statuses[:45] == [200] * 45
    assert 503 in statuses
    assert all(wait == "5" for status, wait in answers if status == 503)
    assert set(statuses) <= {200, 503, 0}


def test_a_second_signal_ends_the_wait() -> None:
    with process(pause_s=1.0) as (started, address):

        def signals() -> None:
            time.sleep(0.5)
            started.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            started.send_signal(signal.SIGTERM)

        threading.Thread(target=signals).start()
        start = time.monotonic()
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{address}/judge", json={"requests": [row()] * 60}, timeout=30)
        assert started.wait(20) == -signal.SIGTERM
        assert 0.7 < time.monotonic() - start < 20
