"""Bad rows on the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.shared.screen import show_problems, show_skipped


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
