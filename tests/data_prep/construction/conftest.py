"""A fake server, and headless Chromium where it is installed."""

from collections.abc import Iterator

import pytest

from tests.browser import browser as browser
from tests.clients.fake_server import FakeServer


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with FakeServer().running() as server:
        yield server
