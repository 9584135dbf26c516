"""The plans of the page on many GPUs run as they stand there."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.docs.commands_in_text import commands_of
from tests.docs.markdown_pages import DOCS

PLANS = [
    words[1:] for words in commands_of(DOCS / "many-gpus.md") if words[:2] == ["custos", "plan"]
]


@pytest.mark.parametrize("arguments", [plan for plan in PLANS if len(plan) > 1], ids=" ".join)
def test_a_plan_of_the_page_runs(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "weights" in result.stdout
    last = result.stdout.splitlines()[-1]
    assert last.endswith(": fits") or "set optim.micro_batch_size=" in last
