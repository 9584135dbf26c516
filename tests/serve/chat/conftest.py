"""The chat routes behind a real socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import httpx
import pytest
import uvicorn

from judging import Judge
from serve.app import create_app
from serve.limits import Limits
from serve.server import bind, url
from serve.service import Service
from tests.serve.chat.made_up import KnowingJudge

Serving = Callable[..., AbstractContextManager[str]]


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


@pytest.fixture(scope="session")
def judge() -> KnowingJudge:
    return KnowingJudge()


@pytest.fixture(scope="session")
def address(judge: KnowingJudge) -> Iterator[str]:
    """A service with one judge of every task, and an alias."""
    with serving({"knowing": judge}, {"gpt-4o": "custos/qa"}) as address:
        yield address


@pytest.fixture(scope="session")
def http(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=20) as client:
        yield client
