"""The service behind a real socket, in a thread of the test."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from serve.app import create_app
from serve.queue.service import Service
from serve.server import DrainingServer, bind, url


@contextmanager
def serving(service: Service, **options: object) -> Iterator[httpx.Client]:
    """The app on a free port, and a client of it."""
    server = DrainingServer(create_app(service, **options), service)  # type: ignore[arg-type]
    with bind("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started)
            with httpx.Client(base_url=url(listener), timeout=20) as client:
                yield client
        finally:
            server.stop()
            thread.join()


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    pytest.fail("waited in vain")
