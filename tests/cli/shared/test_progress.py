"""Bars on standard error: how far a job is and what it costs."""

from __future__ import annotations

import pytest

from cli.shared.progress import counting_bar, job_bar
from clients.chat import Prices, Usage
from clients.jobs import JobProgress


def test_a_job_shows_tokens_cost_and_failures(capsys: pytest.CaptureFixture[str]) -> None:
    with job_bar(Prices(prompt=1.0, completion=10.0)) as show:
        show(JobProgress(10, 4, 0, Usage()))
        usage = Usage(prompt_tokens=1000, completion_tokens=100)
        show(JobProgress(10, 10, 2, usage))
    shown = capsys.readouterr()
    assert "asking" in shown.err
    assert "10/10 1,100 tokens, cost 0.0020 2 failed" in " ".join(shown.err.split())
    assert shown.out == ""


def test_without_prices_only_tokens_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with job_bar() as show:
        show(JobProgress(1, 1, 0, Usage(prompt_tokens=7)))
    shown = " ".join(capsys.readouterr().err.split())
    assert "1/1 7 tokens" in shown and "cost" not in shown and "failed" not in shown


def test_a_count_is_shown_as_it_grows(capsys: pytest.CaptureFixture[str]) -> None:
    with counting_bar("drawing", 5) as show:
        show(2)
        show(5)
    shown = " ".join(capsys.readouterr().err.split())
    assert "drawing" in shown and "5/5" in shown
