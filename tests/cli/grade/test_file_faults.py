"""``custos grade`` while any call of the file system fails: one line, and nothing half done."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from judging import Judge
from tests.serve.made_up import FakeJudge, row

CALLS: dict[str, Any] = {"open": io, "fsync": os, "replace": os, "unlink": os, "mkdir": os}
"""Functions through which files are opened, written through, renamed and removed."""
ROWS = [row(f"Paris {number}" if number % 3 else "Rome") for number in range(9)]


@contextmanager
def one_failing(folder: Path, number: int | None) -> Iterator[list[str]]:
    """Let one of the calls that concern a folder fail; yield the names of those made.

    Calls are told apart by a path below the folder, or by a descriptor of a file there.
    """
    made: list[str] = []

    def concerns(target: Any) -> bool:
        if isinstance(target, int):
            target = os.readlink(f"/proc/self/fd/{target}")
        return str(folder) in os.fspath(target) and not os.fspath(target).endswith(".lock")

    def failing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(target: Any, *arguments: Any, **options: Any) -> Any:
            if concerns(target):
                made.append(name)
                if len(made) - 1 == number:
                    fault = (errno.ENOSPC, errno.EIO)[number % 2]
                    raise OSError(fault, os.strerror(fault), str(target))
            return function(target, *arguments, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name, module in CALLS.items():
            patch.setattr(module, name, failing(name, getattr(module, name)))
        yield made


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="reads the names of open files")
def test_whichever_call_fails_the_next_run_gives_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Judge, "load", lambda source: FakeJudge())
    source = tmp_path / "in.jsonl"
    source.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))

    def grade(folder: Path) -> Any:
        files = ["--in", str(source), "--out", str(folder / "out.jsonl"), "--batch", "4"]
        return CliRunner().invoke(app, ["grade", "--judge", "fake", *files])

    (tmp_path / "clean").mkdir()
    with one_failing(tmp_path / "clean", None) as made:
        assert grade(tmp_path / "clean").exit_code == 0
    expected = (tmp_path / "clean" / "out.jsonl").read_bytes()
    assert len(expected.splitlines()) == len(ROWS)
    assert {"open", "fsync", "replace"} <= set(made)
    for number, name in enumerate(made):
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        with one_failing(folder, number):
            result = grade(folder)
        # An error that is known is one line and status 2; anything else would be an exception.
        assert result.exit_code in (0, 2), (number, name, result.exception)
        out = folder / "out.jsonl"
        if result.exit_code or out.exists():
            assert not out.exists() or out.read_bytes() == expected, (number, name)
        if result.exit_code == 2:
            assert result.stderr.splitlines()[-1].startswith("error: "), (number, name)
        assert grade(folder).exit_code == 0, (number, name)
        assert out.read_bytes() == expected, (number, name)
        assert [path.name for path in folder.iterdir()] == ["out.jsonl"], (number, name)
        shutil.rmtree(folder)
