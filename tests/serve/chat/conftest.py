"""The chat routes behind a real socket."""

from collections.abc import Iterator

import httpx
import pytest

from tests.serve.chat.made_up import KnowingJudge
from tests.serve.sockets import serving_judges


@pytest.fixture(scope="session")
def judge() -> KnowingJudge:
    return KnowingJudge()


@pytest.fixture(scope="session")
def address(judge: KnowingJudge) -> Iterator[str]:
    """A service with one judge of every task, and an alias."""
    with serving_judges({"knowing": judge}, aliases={"gpt-4o": "custos/qa"}) as address:
        yield address


@pytest.fixture(scope="session")
def http(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=20) as client:
        yield client
