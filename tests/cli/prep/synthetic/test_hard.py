"""Hard responses from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judging.errors import CustosError
from tests.cli.prep.made_up import SPLITS, read, run, write_rows


def rows(number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": str(i),
            "question": f"Who lives in house {i}?",
            "references": [f"Anna Name{i}", f"Name{i}"],
            "reference_mode": "any",
            "response": f"Bert Other{i}",
            "label": "Wrong",
            "group": f"house-{i}",
        }
        for i in range(number)
    ]


def test_a_file_is_split_by_question(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "rows.jsonl", rows(100))
    result = run("hard", "--source", source, "--out", tmp_path / "out", "--per-question", 2)
    assert "forged_fields" in result.stdout
    splits = {split: read(tmp_path / "out", split) for split in SPLITS}
    assert all(splits.values())
    questions = [{row.question for row in members} for members in splits.values()]
    assert sum(map(len, questions)) == len(set().union(*questions))


def test_a_folder_keeps_its_splits(tmp_path: Path) -> None:
    made = rows(60)
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "train.jsonl", made[:40])
    write_rows(tmp_path / "in" / "val.jsonl", made[40:])
    run("hard", "--source", tmp_path / "in", "--out", tmp_path / "out", "--kind", "denial")
    splits = {split: read(tmp_path / "out", split) for split in SPLITS}
    asked = {row["question"] for row in made[:40]}
    assert {row.question for row in splits["train"]} == asked
    assert splits["val"]
    assert not {row.question for row in splits["val"]} & asked
    assert not splits["cal"]
    assert not splits["test"]
    for row in splits["train"] + splits["val"]:
        assert (row.metadata["kind"], row.source) == ("denial", "hard")
        assert row.group.startswith("house-")


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "rows.jsonl", rows(20))
    with pytest.raises(CustosError, match="--kind 'denials': expected one of denial, "):
        run("hard", "--source", source, "--out", tmp_path / "out", "--kind", "denials")
    with pytest.raises(CustosError, match="holds no train.jsonl"):
        run("hard", "--source", tmp_path, "--out", tmp_path / "out")
    with pytest.raises(CustosError, match="no such file"):
        run("hard", "--source", tmp_path / "rows.json", "--out", tmp_path / "out")
    yes_no = [{**row, "references": ["yes"]} for row in rows(20)]
    source = write_rows(tmp_path / "yes.jsonl", yes_no)
    with pytest.raises(CustosError, match="no question to make hard responses to"):
        run("hard", "--source", source, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
