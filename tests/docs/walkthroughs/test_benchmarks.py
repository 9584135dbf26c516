"""The files of responses that the page on benchmarks shows are graded and make a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.markdown_pages import DOCS, blocks
from tests.docs.walkthroughs.shell import run

pytestmark = pytest.mark.usefixtures("forking_python")

FILES = {
    block.title: block.text for block in blocks(DOCS / "benchmarks.md") if block.language == "json"
}


@pytest.mark.parametrize(("name", "count"), [("simplevqa", 2), ("truthfulvqa", 2), ("chartom", 4)])
def test_a_file_of_responses_makes_a_table(tmp_path: Path, name: str, count: int) -> None:
    """Two items of CHARTOM have a response each about the fact and one about other readers."""
    (tmp_path / f"{name}.json").write_text(FILES[f"{name}.json"], encoding="utf-8")
    judge = "" if name == "truthfulvqa" else "--judge rules"
    run(f"custos bench grade {name} --responses {name}.json {judge} --out g.jsonl", tmp_path)
    run(f"custos bench table {name} --graded g.jsonl --json table.json", tmp_path)
    assert json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))["n"] == count


def test_a_file_of_charthal_is_graded_by_a_judge(tmp_path: Path) -> None:
    (tmp_path / "charthal.json").write_text(FILES["charthal.json"], encoding="utf-8")
    said = run(
        "custos bench grade charthal --responses charthal.json --judge embedded --out g.jsonl",
        tmp_path,
    )
    assert "2 items graded, 0 without a label" in said
