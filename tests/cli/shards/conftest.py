from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from judging.judge import Judge
from tests.serve.made_up import FakeJudge

Plain = Callable[[Path, str], bytes]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plain:
    """What ``custos grade`` of one file writes, with the same judge and batches."""

    def plain(source: Path, suffix: str) -> bytes:
        monkeypatch.setattr(Judge, "load", lambda source: FakeJudge())
        out = tmp_path / f"plain{suffix}"
        files = ["--in", str(source), "--out", str(out), "--batch", "4", "--allow-failed"]
        done = CliRunner().invoke(app, ["grade", "--judge", "fake", *files])
        assert done.exit_code == 0, done.output
        return out.read_bytes()

    return plain
