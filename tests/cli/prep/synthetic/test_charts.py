"""Drawn pictures from the command line."""

from __future__ import annotations

import json
from pathlib import Path

from data_prep.made.charts.responses import frames
from tests.cli.prep.made_up import SPLITS, read, run
from tests.data_prep.examples import values_of

HELD_OUT = {frame.id for frame in frames() if frame.held_out}


def test_splits_share_no_picture_and_held_out_wordings_are_for_the_test(tmp_path: Path) -> None:
    sizes = ("--rows", 40, "--val", 4, "--cal", 8, "--test", 12)
    result = run("charts", "--out", tmp_path, "--seed", 2, *sizes)
    splits = {name: read(tmp_path, name) for name in SPLITS}
    assert {name: len(rows) for name, rows in splits.items()} == {
        "train": 16, "val": 4, "cal": 8, "test": 12,
    }  # fmt: skip
    for values in (lambda row: {row.group}, lambda row: set(row.images)):
        everything = [set().union(*map(values, rows)) for rows in splits.values()]
        assert sum(map(len, everything)) == len(set().union(*everything))
    assert values_of(splits["test"], "form") <= HELD_OUT
    assert not any(values_of(splits[name], "form") & HELD_OUT for name in ("train", "val", "cal"))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert sum(manifest["counts"]["test.jsonl"].values()) == 12
    assert "40 examples" in result.stdout


def test_as_many_rows_as_asked_for(tmp_path: Path) -> None:
    """Divide 30 rows, whose shares are 22.8, 1.5, 2.1 and 3.6."""
    result = run("charts", "--out", tmp_path, "--rows", 30, "--captions")
    assert "30 examples" in result.stdout
    assert sum(len(read(tmp_path, name)) for name in SPLITS) == 30


def test_captions_describe_the_pictures_of_the_same_rows(tmp_path: Path) -> None:
    sizes = ("--rows", 20, "--val", 0, "--cal", 0, "--test", 4)
    pictures, captions = tmp_path / "pictures", tmp_path / "captions"
    for folder, options in ((pictures, ()), (captions, ("--captions",))):
        run("charts", "--out", folder, *sizes, *options)
        run("twins", "--out", folder / "twins", "--rows", 4, *options)
    for name in ("train", "test", "twins/twins"):
        for row, captioned in zip(read(pictures, name), read(captions, name), strict=True):
            assert captioned.question == f"Picture: {row.metadata['caption']}. {row.question}"
            assert not captioned.images
            same = {"question": row.question, "images": row.images}
            assert captioned.model_copy(update=same) == row
    assert not (captions / "images").exists()
    assert json.loads((captions / "manifest.json").read_text())["images"] == 0
