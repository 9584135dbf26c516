"""Mixtures of prepared data sets from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from data_prep.splits.overlap import find_overlaps
from judging.errors import CustosError
from tests.cli.prep.made_up import SPLITS, read, run, write_rows


def prepared(folder: Path, topic: str, number: int) -> Path:
    rows = [
        {
            "question": f"Tell me the {topic} of item {i}, please?",
            "references": ["thing"],
            "response": f"thing {i}",
            "label": "Correct" if i % 3 else "Wrong",
        }
        for i in range(number)
    ]
    run("table", write_rows(folder.with_suffix(".jsonl"), rows), "--out", folder, "--show", 0)
    return folder


def test_so_many_rows_of_each(tmp_path: Path) -> None:
    sizes, colours = (prepared(tmp_path / name, name, 200) for name in ("size", "colour"))
    options = ("mix", "--source", f"{sizes}=76", "--source", colours, "--out")
    result = run(*options, tmp_path / "out")
    assert f"{sizes}: 76 train, 5 val, 7 cal, 12 test" in result.stdout.replace("\n", " ")
    splits = {split: read(tmp_path / "out", split) for split in SPLITS}
    assert {name: len(rows) for name, rows in splits.items()} == {
        "train": 76 + 152, "val": 15, "cal": 21, "test": 36,
    }  # fmt: skip
    assert find_overlaps(splits) == []
    source = json.loads((tmp_path / "out" / "manifest.json").read_text())["source"]
    assert [part["rows"]["train"] for part in source["sources"]] == [76, 152]
    run(*options, tmp_path / "again")
    for split in SPLITS:
        assert read(tmp_path / "again", split) == splits[split]


def test_a_question_stays_in_the_strictest_split(tmp_path: Path) -> None:
    first = prepared(tmp_path / "size", "size", 150)
    second = tmp_path / "second"
    second.mkdir()
    rows = [json.loads(row.model_dump_json()) for row in read(first, "test")]
    write_rows(second / "train.jsonl", rows)
    result = run("mix", "--source", first, "--source", second, "--out", tmp_path / "out")
    assert f"left out: {len(rows)} in a stricter split" in result.stdout
    assert find_overlaps({split: read(tmp_path / "out", split) for split in SPLITS}) == []


def test_mistakes_are_named(tmp_path: Path) -> None:
    folder, out = prepared(tmp_path / "size", "size", 100), tmp_path / "out"
    for source, message in (
        (f"{folder}=many", "expected FOLDER or FOLDER=ROWS"),
        (f"{folder}=0", "expected FOLDER or FOLDER=ROWS"),
        (f"{folder}=5000", "there are 76 training rows"),
        (tmp_path / "nowhere", "holds no train.jsonl; make it with"),
    ):
        with pytest.raises(CustosError, match=message):
            run("mix", "--source", source, "--out", out)
    with pytest.raises(CustosError, match="is one of the sources"):
        run("mix", "--source", folder, "--out", folder)
    assert not out.exists()
