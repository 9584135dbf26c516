"""Two graded files of one benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.bench.made_up import Grader, charthal_responses, read, run, write


def test_compare(judge: Grader, tmp_path: Path) -> None:
    files = []
    for name, said in (("a", ("right", "no", "no")), ("b", ("right", "right", "no"))):
        source = write(tmp_path / f"{name}.json", charthal_responses(*said))
        files.append(tmp_path / f"{name}.eval.json")
        run("grade", "charthal", "--responses", source, "--judge", "j", "--out", files[-1])
    out = tmp_path / "out.json"
    assert run("compare", "charthal", *files, "--json", out).exit_code == 0
    assert read(out)["difference"]["value"] == pytest.approx(100 / 3)
