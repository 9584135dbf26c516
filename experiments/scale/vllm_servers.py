"""Time to grade rows on real vLLM servers of this machine, with one killed and one slowed tenfold.

python -m experiments vllm_servers --judge RUN --data FILE --vllm PYTHON --out FILE

The servers have the judge's text tower as a Llama model, so the judge must be a text-only one on
the embedded backbone. A slowed server runs a tenth of the time: its processes are stopped and
continued in turn. The last server is killed after a quarter of the time that healthy ones took.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from itertools import product
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from clients.connection import ModelServer
from clients.remote_judge import remote_judge
from experiments.cost.scoring_speed import export_llama, library_model, whole_questions
from judging.errors import CustosError
from judging.files.records import read_records, write_json
from judging.judge import Judge
from judging.types import FAILURES, JudgeRequest, LabelledExample, Verdict

MODEL = "judge"
START_S = 600.0
"""Longest time that a server may take to start."""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
"""One thread each, on any core: otherwise all servers would be bound to the same core."""
RUNS_S, STOPS_S = 0.1, 0.9
"""Seconds for which a slowed server runs, and for which it is stopped, in turn."""
KILLED_AFTER = 0.25
"""Share of the time that healthy servers took, after which one is killed."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=240)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=8, help="prompts at once, per server")
    parser.add_argument("--vllm", type=Path, required=True, help="Python that can import vLLM")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args(argv)

    examples = [example for _, example in read_records(arguments.data, LabelledExample)]
    requests = [example.request() for example in examples if example.response.strip()]
    rows = whole_questions(requests)[: arguments.rows]
    cases = measure(arguments.judge, rows, arguments.vllm, arguments.servers, arguments.concurrency)
    write_json(arguments.out, {"judge": arguments.judge, "rows": len(rows), "cases": cases})
    table = Table(*cases[0])
    for case in cases:
        table.add_row(*map(str, case.values()))
    Console(highlight=False).print(table)


def measure(
    judge_name: str, rows: Sequence[JudgeRequest], python: Path, num_servers: int, concurrency: int
) -> list[dict[str, Any]]:
    """Grade the rows with all servers healthy, one slowed, one killed, and both.

    Args:
        judge_name: Run folder or shipped judge.
        rows: Rows with a response.
        python: Python of an environment with vLLM.
        num_servers: Servers in each case.
        concurrency: Most prompts at once on each.

    Returns:
        Per case seconds, rows without a verdict, and how verdicts differ from those of the judge
        in this process.
    """
    judge = Judge.load(judge_name)
    here = list(judge.grade(rows))
    cases: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        library = library_model(judge)
        export_llama(library, judge.backbone.tokenizer, Path(folder) / "model")
        dtype = str(library.dtype).removeprefix("torch.")
        with ExitStack() as stack:
            servers: list[VllmServer] = []
            for is_killed, is_slow in product((False, True), repeat=2):
                alive = [server for server in servers if server.process.poll() is None]
                missing = num_servers - len(alive)
                first, *others = servers = alive + start(
                    stack, python, Path(folder), dtype, missing
                )
                pooled = remote_judge(
                    ModelServer(first.url, MODEL, concurrency=concurrency),
                    judge_name,
                    [server.url for server in others],
                )
                list(pooled.grade(rows[:num_servers]))
                if is_killed:
                    Timer(KILLED_AFTER * cases[0]["seconds"], others[-1].kill).start()
                started = time.perf_counter()
                with slowed(first) if is_slow else nullcontext():
                    there = list(pooled.grade(rows))
                seconds = round(time.perf_counter() - started, 1)
                case = {"slow": is_slow, "killed": is_killed, "seconds": seconds}
                cases.append(case | differences(here, there))
                Console(stderr=True, soft_wrap=True).print(cases[-1])
    return cases


def differences(here: Sequence[Verdict], there: Sequence[Verdict]) -> dict[str, Any]:
    """Return how many rows have no verdict or another label, and the largest difference."""
    judged = [pair for pair in zip(here, there, strict=True) if pair[1].status not in FAILURES]
    return {
        "without verdict": len(there) - len(judged),
        "other labels": sum(one.label != other.label for one, other in judged),
        "largest difference of a probability": max(
            (
                round(abs(one.probabilities[label] - other.probabilities[label]), 4)
                for one, other in judged
                for label in one.probabilities
            ),
            default=None,
        ),
    }


class VllmServer:
    """A vLLM server in processes of its own.

    Args:
        process: Its first process, the leader of their group.
        url: Address with the version.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self.process, self.url = process, url

    def signal(self, number: int) -> None:
        """Send a signal to all its processes, if there are any."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """Kill it, as a machine that fails would."""
        self.signal(signal.SIGKILL)

    def wait(self, log: Path) -> None:
        """Wait until it answers.

        Raises:
            CustosError: If it ends, or takes too long.
        """
        until = time.monotonic() + START_S
        address = self.url.removesuffix("v1") + "health"
        while not _answers(address):
            if self.process.poll() is not None or time.monotonic() > until:
                raise CustosError(f"vLLM did not start:\n{log.read_text('utf-8')[-3000:]}")
            time.sleep(1)


def start(
    stack: ExitStack, python: Path, folder: Path, dtype: str, number: int
) -> list[VllmServer]:
    """Start servers of the model in ``folder/model``; they are killed when the stack is closed."""
    servers, logs = [], []
    for _ in range(number):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [
            # The CPU build's own command does not find its version.
            *(str(python), "-P", "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", str(folder / "model"), "--served-model-name", MODEL),
            *("--host", "127.0.0.1", "--port", str(port), "--dtype", dtype, "--enforce-eager"),
            *("--max-model-len", "2048", "--gpu-memory-utilization", "0.1"),
        ]
        logs.append(folder / f"{port}.log")
        log = stack.enter_context(logs[-1].open("wb"))
        environment = os.environ | ENVIRONMENT
        process = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env=environment
        )
        servers.append(VllmServer(process, f"http://127.0.0.1:{port}/v1"))
        stack.callback(servers[-1].kill)
    for server, path in zip(servers, logs, strict=True):
        server.wait(path)
    return servers


@contextmanager
def slowed(server: VllmServer) -> Iterator[None]:
    """Let a server run a tenth of the time."""
    done = Event()

    def stop_and_continue() -> None:
        while not done.wait(RUNS_S):
            server.signal(signal.SIGSTOP)
            done.wait(STOPS_S)
            server.signal(signal.SIGCONT)

    thread = Thread(target=stop_and_continue)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _answers(address: str) -> bool:
    try:
        return httpx.get(address, timeout=2).is_success
    except httpx.HTTPError:
        return False
