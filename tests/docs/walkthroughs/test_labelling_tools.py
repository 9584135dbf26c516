"""The page about Label Studio and Argilla works as it stands."""

import json
from pathlib import Path

import pytest

from judging.files.csv_rows import CsvFile
from tests.docs.markdown_pages import DOCS, blocks
from tests.docs.walkthroughs.shell import run

PAGE = DOCS / "labelling-tools.md"


@pytest.mark.usefixtures("forking_python")
def test_every_command_of_the_page(small: str, tmp_path: Path) -> None:
    """As it stands, but for the judge and the names of the tasks in the export."""
    printed = expected = ""
    for block in blocks(PAGE):
        if block.title:
            text = block.text
            if block.title == "export.json":
                tasks = json.loads((tmp_path / "for-people" / "tasks.json").read_text())
                for number, task in enumerate(tasks, 1):
                    text = text.replace(f"ITEM-{number}", task["data"]["item"])
            (tmp_path / block.title).write_text(text, encoding="utf-8")
        elif block.language == "sh":
            printed += run(block.text.replace("embedded-qs", small), tmp_path)
        elif block.language == "text":
            expected = block.text.strip()
    assert expected and expected in printed
    labelled = {row["id"]: row for _, row in CsvFile(tmp_path / "labelled.csv").rows()
                if isinstance(row, dict)}  # fmt: skip
    assert labelled["q1"]["annotator_labels.ben"] == "Correct"
    assert labelled["q2"]["label"] == "Wrong"
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert report["n"] == len(labelled) == 2
    assert (tmp_path / "good-omens" / ".argilla" / "settings.json").is_file()
