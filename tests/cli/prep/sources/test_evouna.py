"""EVOUNA from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from data_prep.splits.filters import excluded_hash
from judging import CustosError
from tests.cli.prep.made_up import SPLITS, read, run
from tests.published_files import needs_published, published


def test_evouna(tmp_path: Path) -> None:
    names = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
    rows: list[dict[str, Any]] = [
        {
            "question": f"what is item {i}",
            "golden_answer": "thing",
            "improper": False,
            **{f"answer_{name}": "a thing" for name in names},
            **{f"judge_{name}": i % 4 != 0 for name in names},
        }
        for i in range(100)
    ]
    rows[50]["judge_fid"] = "yes"
    source = tmp_path / "nq.json"
    source.write_text(json.dumps(rows), encoding="utf-8")
    result = run("evouna", "--source", source, "--out", tmp_path / "out", "--allow-dropped")
    assert "nq.json row 51: field 'judge_fid'" in result.stderr
    assert re.search(r"test\s.*60\s.*75\.0%\)\s.*25\.0%\)", result.stdout)
    assert {split: len(read(tmp_path / "out", split)) for split in SPLITS} == {
        "train": 375,
        "val": 25,
        "cal": 35,
        "test": 60,
    }
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["source"]["name"] == "nq.json"
    assert manifest["left_out"]["bad_rows"] == 1
    with pytest.raises(CustosError, match="1 rows cannot be used .*row 51: field 'judge_fid'"):
        run("evouna", "--source", source, "--out", tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


@needs_published("evouna/NQ.json")
def test_evouna_as_published(tmp_path: Path) -> None:
    run("evouna", "--source", published("evouna/NQ.json"), "--out", tmp_path)
    splits = {split: read(tmp_path, split) for split in SPLITS}
    assert sum(map(len, splits.values())) == 15_098
    assert len(splits["test"]) >= 1_500
    for members in splits.values():
        share = sum(e.label == "Correct" for e in members) / len(members)
        assert share == pytest.approx(0.732, abs=0.005)
    groups = [{e.group for e in members} for members in splits.values()]
    assert sum(map(len, groups)) == len(set().union(*groups))


def test_excluded_questions_are_left_out(tmp_path: Path) -> None:
    names = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
    rows: list[dict[str, Any]] = [
        {
            "question": f"what is item {i}",
            "golden_answer": "thing",
            "improper": False,
            **{f"answer_{name}": "a thing" for name in names},
            **{f"judge_{name}": True for name in names},
        }
        for i in range(40)
    ]
    source, excluded = tmp_path / "nq.json", tmp_path / "out.sha256"
    source.write_text(json.dumps(rows), encoding="utf-8")
    excluded.write_text(f"{excluded_hash('What is item 7?')}\n", encoding="utf-8")
    result = run("evouna", "--source", source, "--exclude", excluded, "--out", tmp_path / "out")
    assert "left out: 5 filtered" in result.stdout
    kept = [e.question for split in SPLITS for e in read(tmp_path / "out", split)]
    assert len(kept) == 195
    assert "what is item 7" not in kept
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["source"]["exclude"]["name"] == "out.sha256"
