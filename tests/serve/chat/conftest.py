"""The chat routes behind a real socket."""

from collections.abc import Iterator

import httpx
import pytest

from serve.queue.service import Service
from tests.serve.chat.made_up import KnowingJudge
from tests.serve.sockets import serving


@pytest.fixture(scope="session")
def judge() -> KnowingJudge:
    return KnowingJudge()


@pytest.fixture(scope="session")
def http(judge: KnowingJudge) -> Iterator[httpx.Client]:
    """A client of a service with one judge of every task, and an alias."""
    with serving(Service({"knowing": judge}), aliases={"gpt-4o": "custos/qa"}) as client:
        yield client
