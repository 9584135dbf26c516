"""Made answers of reasoning models from the command line."""

from __future__ import annotations

from pathlib import Path

from tests.cli.prep.made_up import SPLITS, read, run


def test_objective(tmp_path: Path) -> None:
    run("objective", "--rows", 600, "--out", tmp_path, "--val", 40, "--cal", 60, "--test", 100)
    splits = {split: read(tmp_path, split) for split in SPLITS}
    assert len(splits["test"]) == 100
    assert 300 <= len(splits["train"]) <= 400  # less the questions of test
    groups = [{row.group for row in rows} for rows in splits.values()]
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert {row.label for row in splits["train"]} == {"Correct", "Wrong"}
