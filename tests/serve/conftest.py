"""Fake judges, and a client of a service with two of them."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from serve.app import create_app
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge


@pytest.fixture
def judge() -> FakeJudge:
    return FakeJudge()


@pytest.fixture
def closed() -> Iterator[FakeJudge]:
    """A judge that waits until its gate is opened."""
    judge = FakeJudge()
    judge.gate.clear()
    yield judge
    judge.gate.set()


@pytest.fixture
def client(judge: FakeJudge) -> Iterator[TestClient]:
    app = create_app(Service({"first": judge, "second": FakeJudge("other")}))
    with TestClient(app) as client:
        yield client
