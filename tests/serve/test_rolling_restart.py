"""Two services with one cache, restarted one after the other while clients never stop asking."""

import json
import random
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from clients.pool import JudgePool
from judging.judge import Judge
from judging.types import JudgeRequest, Verdict
from tests.conftest import Folders
from tests.forks import custos, forked, run
from tests.serve.made_up import row
from tests.serve.sockets import wait_until
from tests.serve.test_process import is_ready

ROUND = 24
"""Rows that a client asks for at a time."""


class Restarted:
    """A real ``custos serve`` that is started again and again on one port."""

    def __init__(self, judge: str, cache: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.logs: list[str] = []
        self._command = ["serve", "--judge", f"tiny={judge}"]
        self._command += ["--port", str(port), "--cache", str(cache)]

    def __enter__(self) -> Self:
        self._running = ExitStack()
        self._process = self._running.enter_context(forked(custos, *self._command))
        wait_until(self.is_ready, seconds=120)
        return self

    def __exit__(self, *error: object) -> None:
        self._running.close()

    def is_ready(self) -> bool:
        if self._process.poll() is not None:
            pytest.fail(f"the service has ended: {self._process.stderr[-3000:]}")
        return is_ready(self.url)

    def restart(self) -> None:
        """Stop it as a supervisor does, which waits for its end, and start it again."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(60) == 0
        self.logs.append(self._process.stderr)
        self._running.close()
        self.__enter__()


def free_port() -> int:
    """A port that the system gives to no other connection while nobody listens there."""
    while True:
        port = random.randrange(20_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class Client(threading.Thread):
    """Asks for round after round until it is told to stop, and checks and keeps all verdicts.

    A third of the rows of a round are those of the round before.

    Args:
        grade: Gives verdicts on rows.
        first: Number of its first row.
    """

    def __init__(self, grade: Callable[[list[dict[str, Any]]], list[Verdict]], first: int) -> None:
        super().__init__(daemon=True)
        self.verdicts: list[Verdict] = []
        self.error: BaseException | None = None
        self._grade = grade
        self._first = first
        self._num_rounds = 0
        self._is_over = threading.Event()

    def run(self) -> None:
        try:
            while not self._is_over.is_set():
                first = self._first + self._num_rounds * ROUND * 2 // 3
                rows = [numbered_row(number) for number in range(first, first + ROUND)]
                verdicts = self._grade(rows)
                assert [verdict.id for verdict in verdicts] == [row["id"] for row in rows]
                self.verdicts += verdicts
                self._num_rounds += 1
        except BaseException as error:  # noqa: BLE001 -- raised again in the test
            self.error = error

    def go_on(self) -> None:
        """Wait until another round has ended."""
        before = self._num_rounds
        wait_until(lambda: self.error is not None or self._num_rounds > before, seconds=120)
        if self.error:
            raise self.error

    def stop(self) -> None:
        self._is_over.set()
        self.join()
        if self.error:
            raise self.error


def numbered_row(number: int) -> dict[str, Any]:
    response = "The green one." if number % 2 else f"Number {number} is brown."
    return row(response, id=str(number), question=f"Which boat has the number {number}?")


def parsed(rows: Iterable[dict[str, Any]]) -> list[JudgeRequest]:
    return [JudgeRequest.model_validate(fields) for fields in rows]


def test_services_restarted_in_turn_fail_no_call(tiny_folders: Folders, tmp_path: Path) -> None:
    folder, source, out = tiny_folders("qwen3_vl"), tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    services = [Restarted(folder, tmp_path / "cache") for _ in range(2)]
    urls = [service.url for service in services]
    judges = [part for url in urls for part in ("--judge", url)]

    def grade_file(rows: list[dict[str, Any]]) -> list[Verdict]:
        """Run ``custos grade``, which knows nothing of earlier rounds."""
        source.write_text("".join(json.dumps(fields) + "\n" for fields in rows))
        done = run(custos, "grade", *judges, "--in", str(source), "--out", str(out))
        assert done.returncode == 0, done.stderr
        return [Verdict.model_validate_json(line) for line in out.read_text().splitlines()]

    with services[0], services[1]:
        pool = JudgePool.connect(urls)
        clients = [
            Client(lambda rows: list(pool.grade(parsed(rows))), 0),
            Client(grade_file, 10**6),
        ]
        for client in clients:
            client.start()
        for service in services:
            for client in clients:
                client.go_on()
            service.restart()
        for client in clients:
            client.go_on()
        for client in clients:
            client.stop()
        for url in urls:  # both know what either has judged
            httpx.post(f"{url}/judge", json=[numbered_row(0), numbered_row(10**6)])
            assert (
                'judge_requests_total{outcome="cached"} 0.0' not in httpx.get(f"{url}/metrics").text
            )
    assert [len(service.logs) for service in services] == [1, 1]
    for service in services:
        assert not re.search(r"Traceback|/\S* 500 ", service.logs[0]), service.logs[0]
    verdicts = [verdict for client in clients for verdict in client.verdicts]
    numbers = dict.fromkeys(int(verdict.id) for verdict in verdicts)
    alone = Judge.load(folder).grade(parsed(map(numbered_row, numbers)))
    expected = dict(zip(numbers, alone, strict=True))
    for verdict in verdicts:
        same = expected[int(verdict.id)]
        assert (verdict.status, verdict.label) == ("scored", same.label)
        assert verdict.probabilities == pytest.approx(same.probabilities, abs=0.005)
