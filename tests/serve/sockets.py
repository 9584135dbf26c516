"""The service behind a real socket, in a thread of the test."""

import asyncio
import io
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from judging.judge import Judge
from serve.app import create_app
from serve.calls.limits import Limits
from serve.gate.gate import KnownKeys, parse_keys
from serve.queue.service import Service
from serve.server import DrainingServer, TlsFiles, bind, url

JSON = {"Content-Type": "application/json"}
POST = b"POST /judge HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def known(*keys: str) -> KnownKeys:
    """Keys that a service knows, as entries of a file."""
    return KnownKeys(parse_keys((key, "a test") for key in keys))


@contextmanager
def serving(
    service: Service,
    keys: KnownKeys | Sequence[str] = (),
    tls: TlsFiles | None = None,
    **options: Any,
) -> Iterator[httpx.Client]:
    """Run the app of a service on a free port; yield a client of it, which sends JSON."""
    if not isinstance(keys, KnownKeys):
        keys = known(*keys)
    app = create_app(service, keys=keys if keys.keys else None, **options)
    server = DrainingServer(app, service, tls)
    with bind("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started)
            address = url(listener, "https" if tls else "http")
            # Certificates, which take long to read, are needed for https alone.
            with httpx.Client(
                base_url=address, timeout=20, headers=JSON, verify=tls is not None
            ) as client:
                yield client
        finally:
            server.stop()
            thread.join(timeout=30)
            if thread.is_alive():
                pytest.fail(f"the service does not stop, but waits here:\n{waits(thread)}")


def waits(thread: threading.Thread) -> str:
    """Tell where a thread is, and where each task of all event loops waits."""
    lines = io.StringIO()
    traceback.print_stack(sys._current_frames()[thread.ident or 0], file=lines)
    for task in list(asyncio.tasks._all_tasks):  # type: ignore[attr-defined]  # of each loop
        if not task.done():
            task.print_stack(file=lines)
    return lines.getvalue()


@contextmanager
def serving_judges(
    judges: Mapping[str, Judge], limits: Limits | None = None, **options: Any
) -> Iterator[str]:
    """Run a service with judges on a free port; yield its address."""
    with serving(Service(judges, limits), **options) as client:
        yield str(client.base_url).rstrip("/")


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail("waited in vain")
        time.sleep(0.005)


def send_raw(client: httpx.Client, content: bytes) -> socket.socket:
    """Open a connection to a client's service and send bytes as they are."""
    connection = socket.create_connection((client.base_url.host, client.base_url.port or 0))
    connection.settimeout(10)
    connection.sendall(content)
    return connection


def first_line(connection: socket.socket) -> str:
    return connection.makefile("rb").readline().decode().strip()
