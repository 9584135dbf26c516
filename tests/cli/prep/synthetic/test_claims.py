"""Made explanations from the command line."""

from __future__ import annotations

from pathlib import Path

from tests.cli.prep.made_up import SPLITS, read, run


def test_claims(tmp_path: Path) -> None:
    run("claims", "--rows", 400, "--out", tmp_path, "--val", 40, "--cal", 40, "--test", 60)
    splits = {split: read(tmp_path, split) for split in SPLITS}
    assert {name: len(rows) for name, rows in splits.items()} == {
        "train": 260, "val": 40, "cal": 40, "test": 60,
    }  # fmt: skip
    groups = [{row.group for row in rows} for rows in splits.values()]
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert {row.label for row in splits["train"]} == {"Correct", "Partial", "Wrong"}
