"""How far a long job is, on a terminal and in a log."""

from __future__ import annotations

import pytest
from rich.progress import TextColumn

from judging import progress as progress_module
from judging.progress import ProgressBar, progress_over


def test_a_log_holds_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(progress_module, "monotonic", lambda: now)
    seen = []
    for item in progress_over(range(9), "drawing", 9):
        seen.append(item)
        now += progress_module.LINE_EVERY / 3
    *lines, bar = capsys.readouterr().err.splitlines()
    assert seen == list(range(9))
    assert [line.split("  ")[:2] for line in lines] == [
        ["drawing", "3/9"],
        ["drawing", "6/9"],
        ["drawing", "9/9"],
    ]
    assert "9/9" in bar


def test_a_line_has_the_further_columns_and_no_unknown_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module, "LINE_EVERY", 0.0)
    with ProgressBar(TextColumn("{task.fields[cost]}")) as bar:
        task = bar.add_task("asking", total=None, cost="")
        bar.update(task, completed=2, cost="cost [1.50]")
    assert capsys.readouterr().err.splitlines()[0] == "asking  2/?  cost [1.50]"


def test_a_terminal_gets_no_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module, "LINE_EVERY", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(ProgressBar, "line", lambda *_: pytest.fail("a line on a terminal"))
    assert list(progress_over("ab", "reading", 2)) == ["a", "b"]
    assert "reading" in capsys.readouterr().err
