"""The page about pairs in a table works as it stands: its commands are run on its six rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.docs.markdown_pages import DOCS, blocks
from tests.docs.walkthroughs.shell import run

pytestmark = pytest.mark.usefixtures("forking_python")

PAGE = DOCS / "own-pairs.md"
ROWS = 6


@pytest.mark.slow
def test_every_command_of_the_page(small: str, tmp_path: Path) -> None:
    """As it stands, but for the model and for the judge that the training starts from."""
    fresh = f"custos train truthful-pure-label backbone={small} adapter.init=null"
    for block in blocks(PAGE):
        text = block.text.replace("embedded-pair", small)
        if block.title:
            (tmp_path / block.title).write_text(text, encoding="utf-8")
        elif block.language == "sh":
            run(text.replace("custos train truthful-pure-label", fresh), tmp_path)
    with (tmp_path / "verdicts.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["preferred"] for row in rows] == [
        *("first", "second", "first", "tie", "second", "first"),
    ]
    assert {row["status"] for row in rows} <= {"scored", "truncated"}
    report = json.loads((tmp_path / "runs/before/report.json").read_text(encoding="utf-8"))
    assert report["n"] == ROWS
    assert (tmp_path / "runs/mine/judge.json").is_file()
