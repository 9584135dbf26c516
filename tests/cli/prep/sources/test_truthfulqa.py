"""TruthfulQA from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judging.errors import CustosError
from tests.cli.prep.made_up import SPLITS, read, run, write_rows


def test_truthfulqa(tmp_path: Path) -> None:
    rows = [
        {
            "question": f"what is item {i}",
            "response": f"a thing {j}",
            "label": "True" if j else "False",
            "correct_answers": ["thing"],
        }
        for i in range(50)
        for j in range(2)
    ]
    rows[3]["label"] = "Maybe"
    source = write_rows(tmp_path / "t.jsonl", rows)
    with pytest.raises(CustosError, match="1 rows cannot be used .*row 4: field 'label'"):
        run("truthfulqa", "--source", source, "--out", tmp_path / "refused")
    result = run("truthfulqa", "--source", source, "--out", tmp_path / "out", "--allow-dropped")
    assert "left out: 1 bad rows" in result.stdout
    splits = {split: read(tmp_path / "out", split) for split in SPLITS}
    assert sum(map(len, splits.values())) == 99
    groups = [{row.group for row in members} for members in splits.values()]
    assert sum(map(len, groups)) == len(set().union(*groups))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["left_out"] == {
        "bad_rows": 1, "without_an_answer": 0, "judged_both_ways": 0, "repeated": 0,
    }  # fmt: skip
