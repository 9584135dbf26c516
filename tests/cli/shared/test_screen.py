"""What commands print: columns, bars, bad rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.shared.screen import in_columns, job_bar, show_problems, show_skipped
from clients.chat import Prices, Usage
from clients.jobs import JobProgress


def test_cells_stand_below_each_other_without_trailing_blanks() -> None:
    rows = [("name", "n"), ("a", "12"), ("longest", "")]
    assert in_columns(rows) == ["name     n", "a        12", "longest"]


def test_rows_with_one_message_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    problems = dict.fromkeys(range(1, 13), "wrong task") | {13: "no picture"}
    problems |= dict.fromkeys(range(20, 40, 2), "empty")
    show_problems(Path("a.csv"), problems)
    assert capsys.readouterr().err.splitlines() == [
        "a.csv rows 1-12 (12 rows): wrong task",
        "a.csv row 13: no picture",
        "a.csv rows 20, 22, 24, 26, 28, ... (10 rows): empty",
    ]


def test_only_the_first_messages_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    show_problems(Path("a.csv"), {row: f"message {row % 12}" for row in range(24)})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "and 4 more bad rows"


def test_messages_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_problems(Path("a.csv"), {1: "no field 'a\x1b[2J\nrow 2'"})
    show_skipped(["row 3 \x9b2J"])
    assert capsys.readouterr().err.splitlines() == [
        r"a.csv row 1: no field 'a\x1b[2J\nrow 2'",
        r"skipped: row 3 \x9b2J",
    ]


def test_a_job_shows_tokens_cost_and_failures(capsys: pytest.CaptureFixture[str]) -> None:
    with job_bar(Prices(prompt=1.0, completion=10.0)) as show:
        show(JobProgress(10, 4, 0, Usage()))
        usage = Usage(prompt_tokens=1000, completion_tokens=100)
        show(JobProgress(10, 10, 2, usage))
    shown = capsys.readouterr()
    assert "asking" in shown.err
    assert "10/10 1,100 tokens, cost 0.0020 2 failed" in " ".join(shown.err.split())
    assert shown.out == ""
