"""The first examples of README and pages run as they stand, with the shipped judge."""

import json
from pathlib import Path

import pytest

from judging.models.backbones import Backbone
from tests.docs.markdown_pages import DOCS, ROOT, Block, blocks
from tests.docs.walkthroughs.shell import run

pytestmark = pytest.mark.usefixtures("forking_python")

LOCAL_EXAMPLES = [
    block
    for page in (ROOT / "README.md", DOCS / "judge-files.md", DOCS / "reference" / "python.md")
    for block in blocks(page)
    if block.language == "python"
]


@pytest.mark.slow
def test_the_first_three_answers(embedded: Backbone, tmp_path: Path) -> None:
    page = blocks(DOCS / "index.md")
    [rows] = [block for block in page if block.title == "answers.jsonl"]
    (tmp_path / rows.title).write_text(rows.text, encoding="utf-8")
    [command] = [block.text for block in page if block.text.startswith("custos grade")]
    run(command, tmp_path)
    lines = (tmp_path / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    verdicts = [json.loads(line) for line in lines]
    assert [verdict["label"] for verdict in verdicts] == ["Correct", "Wrong", "Wrong"]
    [shown] = [json.loads(block.text) for block in page if '"label_mass"' in block.text]
    assert shown.keys() <= verdicts[1].keys()
    assert verdicts[1]["confidence"] == pytest.approx(shown["confidence"], abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("block", LOCAL_EXAMPLES, ids=range(len(LOCAL_EXAMPLES)))
def test_python_examples(embedded: Backbone, block: Block, tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(block.text, encoding="utf-8")
    assert "Correct" in run("python example.py", tmp_path)
