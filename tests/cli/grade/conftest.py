from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judging.judge import Judge
from tests.cli.grade.made_up import Run
from tests.cli.made_up import custos, write_lines
from tests.serve.made_up import FakeJudge


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    judge = FakeJudge()
    monkeypatch.setattr(Judge, "load", lambda source: judge)
    return judge


@pytest.fixture
def run(judge: FakeJudge, tmp_path: Path) -> Run:
    def run(rows: Sequence[Any] | None, *options: str, out: str = "out.jsonl") -> Any:
        source = tmp_path / "in.jsonl"
        if rows is not None:
            write_lines(source, rows)
        return custos("grade", "--judge", "fake", "--in", source, "--out", tmp_path / out, *options)

    return run
