from collections.abc import Callable
from pathlib import Path

import pytest

from judging.judge import Judge
from tests.cli.made_up import succeed
from tests.serve.made_up import FakeJudge

Plain = Callable[[Path, str], bytes]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plain:
    """What ``custos grade`` of one file writes, with the same judge and batches."""

    def plain(source: Path, suffix: str) -> bytes:
        monkeypatch.setattr(Judge, "load", lambda source: FakeJudge())
        out = tmp_path / f"plain{suffix}"
        options = ("--in", source, "--out", out, "--batch", "4", "--allow-failed")
        succeed("grade", "--judge", "fake", *options)
        return out.read_bytes()

    return plain
