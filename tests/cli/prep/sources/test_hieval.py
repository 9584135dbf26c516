"""Labelled responses under other column names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judging.errors import CustosError
from tests.cli.prep.made_up import SPLITS, read, run, write_rows


def test_hieval_options(tmp_path: Path) -> None:
    rows = [
        {"q": f"What is item {i}?", "gold": "a|b", "response": "a", "label": i % 3, "model": "m"}
        for i in range(60)
    ]
    result = run(
        *("hieval", "--source", write_rows(tmp_path / "qs.jsonl", rows), "--out", tmp_path / "out"),
        *("--field", "question=q", "--field", "references=gold", "--separator", "|"),
        *("--label", "0=Wrong", "--label", "1=Partial", "--label", "2=Correct"),
        *("--metadata", "answerer=model", "--metadata", "model", "--variant", "tolerance"),
        *("--val", 6, "--cal", 0, "--test", 0.2),
    )
    assert result.exit_code == 0
    assert [len(read(tmp_path / "out", split)) for split in SPLITS] == [42, 6, 0, 12]
    (first, *_) = read(tmp_path / "out", "val")
    assert (first.references, first.variant) == (("a", "b"), "tolerance")
    assert first.metadata == {"answerer": "m", "model": "m"}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["counts"]["test"] == {
        label: {"m": 4} for label in ("Correct", "Partial", "Wrong")
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--field", "question"), "--field 'question': expected NAME=VALUE"),
        (("--field", "qestion=q"), "field 'qestion'"),
        (("--label", "1=Right"), "'Right' is not one of Correct, Partial, Wrong"),
        (("--test", "-1"), "field 'test'"),
        (("--test", "inf"), "--test 'inf': expected a finite number"),
        (("--test", "0.95"), "leave none of"),
    ],
)
def test_mistaken_options(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    rows = [
        {"question": f"Item {i}?", "answer": "a", "response": "a", "label": "Wrong"} for i in "ab"
    ]
    source = write_rows(tmp_path / "qs.jsonl", rows)
    with pytest.raises(CustosError, match=message):
        run("hieval", "--source", source, "--out", tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_a_hub_data_set(tmp_path: Path) -> None:
    rows = [
        {"question": f"Item {i}?", "answer": "a", "response": "a", "label": "Wrong"}
        for i in range(12)
    ]
    folder = tmp_path / "set"
    (folder / "data").mkdir(parents=True)
    write_rows(folder / "data" / "train-0-of-2.jsonl", rows[:6])
    write_rows(folder / "data" / "train-1-of-2.jsonl", rows[6:])
    write_rows(folder / "data" / "test-0-of-1.jsonl", rows[:1])
    sizes = ("--val", 1, "--cal", 1, "--test", 2)
    run("hieval", "--source", folder, "--out", tmp_path / "out", *sizes)
    ids = {row.id for split in SPLITS for row in read(tmp_path / "out", split)}
    assert len(ids) == 12
    assert "train-1-of-2-6" in ids
    source = json.loads((tmp_path / "out" / "manifest.json").read_text())["source"]
    assert [file["name"] for file in source["files"]] == [
        "train-0-of-2.jsonl",
        "train-1-of-2.jsonl",
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(CustosError, match="file in this folder"):
        run("hieval", "--source", tmp_path / "empty", "--out", tmp_path / "out", *sizes)
