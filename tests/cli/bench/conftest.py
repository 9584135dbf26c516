"""A judge of any task and a server for the verbs of benchmarks."""

import pytest

from judging.judge import Judge
from tests.cli.bench.made_up import Grader
from tests.clients.conftest import fake

__all__ = ["fake"]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Grader:
    judge = Grader()

    def load(source: str) -> Grader:
        judge.loaded.append(source)
        return judge

    monkeypatch.setattr(Judge, "load", load)
    return judge
