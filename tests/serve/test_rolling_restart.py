"""Two services that share one cache, restarted one after the other while clients call both."""

from __future__ import annotations

import itertools
import signal
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.serve.made_up import row
from tests.serve.sockets import wait_until
from tests.serve.test_process import FAKE_JUDGE, serve

NUM_QUESTIONS = 40
"""So few that both services meet questions that the other has answered."""


class Balancer:
    """Clients that call the services in turn, and the other one if one refuses or is not there.

    Args:
        addresses: Of the services.
    """

    def __init__(self, addresses: list[str]) -> None:
        self.addresses = addresses
        self.is_over = threading.Event()
        self.numbers = itertools.count()
        self.statuses = Counter[str]()

    def call(self) -> None:
        """Send calls until it is over."""
        while not self.is_over.is_set():
            number = next(self.numbers)
            response = f"Paris {number % NUM_QUESTIONS}"
            for turn in range(200):
                status = self._post(self.addresses[(number + turn) % 2], response, str(number))
                self.statuses[status] += 1
                if status not in ("503", "not there"):
                    break
                time.sleep(0.02)
            else:
                self.statuses["given up"] += 1

    def _post(self, address: str, response: str, number: str) -> str:
        try:
            answer = httpx.post(f"{address}/judge", json=row(response, id=number), timeout=30)
        except httpx.TransportError:
            return "not there"
        if answer.status_code == 200:
            verdict = answer.json()
            return "right" if (verdict["id"], verdict["label"]) == (number, "Correct") else "wrong"
        return str(answer.status_code)


def cached(address: str) -> float:
    text = httpx.get(f"{address}/metrics").text
    return float(text.partition('judge_requests_total{outcome="cached"} ')[2].split()[0])


def test_no_call_fails_while_each_of_two_services_is_restarted(tmp_path: Path) -> None:
    options = ["--cache", str(tmp_path / "cache")]
    before = FAKE_JUDGE.format(pause_s=0.005)

    def start(number: int, *more: str) -> tuple[subprocess.Popen[str], str]:
        log = tmp_path / f"log-{number}"
        return stack.enter_context(serve("a=a", log, before, [*options, *more]))

    with ExitStack() as stack, ThreadPoolExecutor(8) as pool:
        services = list(pool.map(start, range(2)))
        balancer = Balancer([address for _, address in services])
        clients = [pool.submit(balancer.call) for _ in range(4)]
        try:
            for number, (process, address) in enumerate(services):
                wait_until(lambda: balancer.statuses["right"] > NUM_QUESTIONS)
                wait_until(lambda address=address: cached(address) > 0)  # type: ignore[misc]
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0
                start(number + 2, "--port", address.rpartition(":")[2])
        finally:
            balancer.is_over.set()
        for client in clients:
            client.result(60)
        assert set(balancer.statuses) <= {"right", "503", "not there"}
        assert balancer.statuses["right"] > 2 * NUM_QUESTIONS
        for address in balancer.addresses:
            # What was kept before the restart is not graded again.
            assert cached(address) > 0
