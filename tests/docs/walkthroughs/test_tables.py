"""The page about tables works as it stands: its commands are run on its six rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from data_prep.tables.mapping import TableMapping, read_mapping
from tests.docs.markdown_pages import DOCS, blocks, spans
from tests.docs.walkthroughs.shell import run

PAGE = DOCS / "tables.md"
ROWS = 6


@pytest.mark.usefixtures("forking_python")
def test_every_command_of_the_page(small: str, tmp_path: Path) -> None:
    """As it stands, but for the judge."""
    outputs = []
    for block in blocks(PAGE):
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            outputs.append(run(block.text.replace("embedded-qs", small), tmp_path))
    assert "row 1: hieval-qs/plain/any, labelled Correct" in outputs[0]
    assert len((tmp_path / "data/answers/test.jsonl").read_text().splitlines()) == ROWS
    verdicts = (tmp_path / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["status"] for line in verdicts] == ["scored"] * ROWS
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert report["n"] == ROWS


def test_the_table_names_every_key(tmp_path: Path) -> None:
    assert set(TableMapping.model_fields) <= set(spans(PAGE))
    [shown] = [block for block in blocks(PAGE) if block.language == "yaml"]
    (tmp_path / "mapping.yaml").write_text(shown.text, encoding="utf-8")
    mapping = read_mapping(tmp_path / "mapping.yaml").model_dump(exclude_defaults=True)
    assert mapping == yaml.safe_load(shown.text)
