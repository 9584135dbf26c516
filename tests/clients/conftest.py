"""A fake server for every test that wants one."""

from collections.abc import Iterator

import pytest

from tests.clients.fake_server import FakeServer


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with FakeServer().running() as server:
        yield server
