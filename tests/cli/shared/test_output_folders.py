"""Which folders a command makes for its output."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.cli.test_main import EVERY_VERB


def prep(out: Path) -> str:
    command = ["prep", "synthetic", "--worlds", "open", "--rows", "40", "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code in (0, 2)
    return result.stderr if result.exit_code else ""


def test_folders_are_made_inside_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert prep(Path("runs/demo/data")) == ""
    assert (tmp_path / "runs/demo/data/train.jsonl").exists()


def test_elsewhere_the_folder_around_the_output_must_exist(tmp_path: Path) -> None:
    assert prep(tmp_path / "data") == ""
    out = tmp_path / "my projcets/here/data"
    assert prep(out) == (
        f"error: --out '{out}': there is no folder {tmp_path / 'my projcets'}; correct the path, "
        f"or make it with: mkdir -p '{out.parent}'\n"
    )
    assert not (tmp_path / "my projcets").exists()


@pytest.mark.parametrize("verb", EVERY_VERB)
def test_the_rule_holds_for_every_output(verb: str) -> None:
    for option in EVERY_VERB[verb].params:
        if (option.help or "").startswith("Write ") and not option.is_flag:
            assert option.callback is not None, option.name
