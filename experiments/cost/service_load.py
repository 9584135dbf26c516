"""Speed of the service under load, beside offline grading and a plain app.

python -m experiments service_load --in data/evouna/test.jsonl --json runs/load.json

The rows are graded by the judge alone, behind the service, behind the service in a flood of
requests, and behind an app that grades one request at a time. Everything runs on this machine; the
service is the real one, ``custos serve`` in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from data_prep.tables.reader import BadRow, parse_table
from experiments.cost.load_generator import closed_loop, open_loop
from judging.errors import CustosError
from judging.files.records import write_json
from judging.judge import Judge
from judging.tasks import get_task
from judging.types import JudgeRequest, Verdict
from train.tracking.throughput import process_peak

STARTING_S = 300
STOPPING_S = 200
"""More than the longest deadline of a call."""
GRADE_BATCH = 256
"""Rows that ``custos grade`` gives to a judge at once."""
CUSTOS = (sys.executable, "-m", "cli")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--in", dest="source", type=Path, required=True, help="JSONL, JSON or Parquet of requests"
    )
    parser.add_argument("--json", type=Path, required=True, help="file for the figures")
    parser.add_argument(
        "--judge", default="embedded-qs", help="run folder, shipped judge, backbone"
    )
    parser.add_argument("--rows", type=_positive, default=2000, help="most rows; default 2000")
    parser.add_argument("--clients", type=_positive, default=64, help="at once; default 64")
    parser.add_argument("--rows-per-call", type=_positive, default=1, help="default 1")
    parser.add_argument(
        "--overload",
        type=float,
        default=5.0,
        help="rows per second in the flood, in those that the clients got before; default 5",
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="of the flood; default 30")
    arguments = parser.parse_args(argv)
    requests = list(itertools.islice(read_requests(arguments.source), arguments.rows))
    if len(requests) < arguments.rows_per_call:
        raise CustosError(f"{arguments.source}: holds {len(requests)} requests, fewer than a call")
    report = measure(
        arguments.judge,
        requests,
        clients=arguments.clients,
        rows_per_call=arguments.rows_per_call,
        overload=arguments.overload,
        overload_seconds=arguments.seconds,
        show=Console(stderr=True, highlight=False, soft_wrap=True).print,
    )
    write_json(arguments.json, report)
    sys.stdout.write(
        f"{report['service_to_offline']:.0%} of offline "
        f"({report['service_to_offline_of_so_many']:.0%} with as few rows at once), "
        f"{report['overload_to_service']:.0%} of that in the flood: {arguments.json}\n"
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: give 1 or more")
    return int(text)


def read_requests(source: Path) -> Iterator[JudgeRequest]:
    """Yield the rows of a table that are requests; leave the others out."""
    for _, row in parse_table(source, JudgeRequest):
        with contextlib.suppress(CustosError):
            if not isinstance(row, BadRow):
                get_task(row.task).check(row)
                yield row


def measure(
    judge: str,
    requests: Sequence[JudgeRequest],
    *,
    clients: int = 64,
    rows_per_call: int = 1,
    overload: float = 5.0,
    overload_seconds: float = 30.0,
    plain_rows: int = 400,
    show: Callable[[str], None],
) -> dict[str, Any]:
    """Measure a judge behind the service, offline, and behind a plain app, one after another.

    Each row is sent once in the closed loops of so many clients; the plain app gets ``plain_rows``,
    one at a time. Rows that do not fill a call are left out. In the open loop rows come at
    ``overload`` times the closed loop's rate. ``show`` gets a line after each measurement.

    Return ``offline`` (before and after the service, and with as few rows at once as the clients
    send), ``service``, ``overload``, ``plain``, and the ratios of the service to both kinds of
    offline grading and of the overloaded service to itself.
    """
    requests = requests[: len(requests) - len(requests) % rows_per_call]
    singles = [request.model_dump_json(exclude_unset=True).encode() for request in requests]
    bodies = _call_bodies(singles, rows_per_call)
    offline = [_measure_offline(judge, requests, GRADE_BATCH)]
    show(f"offline: {offline[0]:.1f} rows/s")
    at_once = clients * rows_per_call
    offline_few = _measure_offline(judge, requests, at_once)
    show(f"offline, {at_once} rows at once: {offline_few:.1f} rows/s")
    with running(lambda port: service_command(judge, port)) as (url, process):
        asyncio.run(closed_loop(url, bodies[:clients], clients))  # fills caches before the timing
        service = asyncio.run(closed_loop(url, bodies, clients, rows_per_call=rows_per_call))
        service_report = service.report() | {"clients": clients, **_peak_memory(process)}
        show(f"service, {clients} clients: {service.rows_per_second:.1f} rows/s")
        rate = overload * service.rows_per_second / rows_per_call
        flood = asyncio.run(
            open_loop(url, bodies, rate, overload_seconds, rows_per_call=rows_per_call)
        )
        overload_report = flood.report() | {
            "calls_per_second": round(rate, 1),
            **_peak_memory(process),
        }
        show(f"service at {overload:g} times that: {flood.rows_per_second:.1f} rows/s")
    offline.append(_measure_offline(judge, requests, GRADE_BATCH))
    show(f"offline again: {offline[1]:.1f} rows/s")
    plain_app = (
        "import sys; from experiments.cost.service_load import serve_plain_app;"
        "serve_plain_app(sys.argv[1], int(sys.argv[2]))"
    )
    with running(lambda port: [sys.executable, "-c", plain_app, judge, str(port)]) as (
        url,
        process,
    ):
        asyncio.run(closed_loop(url, singles[:clients], clients))
        plain = asyncio.run(closed_loop(url, singles[:plain_rows], clients))
        plain_report = plain.report() | {"clients": clients, **_peak_memory(process)}
        show(f"plain app, {clients} clients: {plain.rows_per_second:.1f} rows/s")
    return {
        "judge": judge,
        "rows": len(requests),
        "rows_per_call": rows_per_call,
        "cores": os.cpu_count(),
        "offline": {
            "rows_per_second": [round(rate, 3) for rate in offline],
            "rows_at_once": at_once,
            "rows_per_second_of_so_many": round(offline_few, 3),
        },
        "service": service_report,
        "overload": overload_report,
        "plain": plain_report,
        "service_to_offline": round(service.rows_per_second / (sum(offline) / 2), 3),
        "service_to_offline_of_so_many": round(service.rows_per_second / offline_few, 3),
        "overload_to_service": round(flood.rows_per_second / service.rows_per_second, 3),
    }


def _call_bodies(singles: Sequence[bytes], rows_per_call: int) -> list[bytes]:
    """Join requests into bodies of calls; single requests stay as they are."""
    if rows_per_call == 1:
        return list(singles)
    return [
        b'{"requests": [%s]}' % b",".join(singles[start : start + rows_per_call])
        for start in range(0, len(singles), rows_per_call)
    ]


def _measure_offline(judge: str, requests: Sequence[JudgeRequest], batch: int) -> float:
    """Return rows per second of the judge alone, measured in a process of its own."""
    code = (
        "import sys; from judging import JudgeRequest;"
        "from experiments.cost.service_load import time_offline;"
        "print(time_offline(sys.argv[1], "
        "[JudgeRequest.model_validate_json(line) for line in sys.stdin], int(sys.argv[2])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, judge, str(batch)],
        input="\n".join(request.model_dump_json(exclude_unset=True) for request in requests),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CustosError(f"grading offline failed: {done.stderr.strip().splitlines()[-1]}")
    return float(done.stdout)


def time_offline(judge: str, requests: Sequence[JudgeRequest], batch: int) -> float:
    """Return rows per second of ``Judge.grade``, ``batch`` rows at once, after a warm-up."""
    loaded = Judge.load(judge)
    list(loaded.grade(requests[:64]))
    start = time.perf_counter()
    for first in range(0, len(requests), batch):
        list(loaded.grade(requests[first : first + batch]))
    return len(requests) / (time.perf_counter() - start)


def serve_plain_app(judge: str, port: int) -> None:
    """Serve an app without a queue, which judges each request alone as it comes."""
    import threading

    import uvicorn
    from fastapi import FastAPI

    loaded, lock, app = Judge.load(judge), threading.Lock(), FastAPI()

    @app.post("/judge")
    def grade(request: JudgeRequest) -> Verdict:
        with lock:
            return next(iter(loaded.grade([request])))

    @app.get("/health/ready")
    def ready() -> None:
        return None

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


def service_command(judge: str, port: int) -> list[str]:
    """Return the command that serves a judge under the name ``judge``."""
    return [*CUSTOS, "serve", "--judge", f"judge={judge}", "--port", str(port)]


@contextlib.contextmanager
def running(
    command: Callable[[int], list[str]], log: Path | None = None
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run a server on a free port until the block ends; yield its address and its process.

    ``command`` is given the port. ``log`` gets the server's standard error, or else this process's.
    """
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "CUSTOS_API_KEYS": ""}  # Keys come from the command alone.
    with log.open("wb") if log else contextlib.nullcontext() as log_file:
        process = subprocess.Popen(
            command(port), stdout=subprocess.DEVNULL, stderr=log_file, env=environment
        )
        try:
            _wait_until_ready(url, process)
            yield url, process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOPPING_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    import httpx

    deadline = time.monotonic() + STARTING_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/health/ready").status_code == 200:
                return
        time.sleep(0.1)
    raise CustosError("the server did not become ready")


def _peak_memory(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """Return the largest resident memory of a process so far; 0 off Linux."""
    return {"peak_rss_mb": round(process_peak(Path(f"/proc/{process.pid}/status")) / 2**20, 1)}
