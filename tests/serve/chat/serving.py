"""A service behind a real socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import uvicorn

from judging import Judge
from serve.app import create_app
from serve.limits import Limits
from serve.queue.service import Service
from serve.server import bind, url


@contextmanager
def serving(
    judges: Mapping[str, Judge],
    aliases: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    keys: tuple[str, ...] = (),
) -> Iterator[str]:
    """Address of a service on a free port."""
    app = create_app(Service(judges, limits), keys=keys, aliases=aliases or {})
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    with bind("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield url(listener)
        finally:
            server.should_exit = True
            thread.join()
