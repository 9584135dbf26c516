"""Made responses to benchmarks from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from judging.errors import CustosError
from tests.cli.prep.made_up import SPLITS, read, run


def test_splits_share_no_question_and_hold_every_task(tmp_path: Path) -> None:
    sizes = ("--val", 40, "--cal", 40, "--test", 80)
    run("benchmark-answers", "--rows", 480, "--out", tmp_path, *sizes)
    splits = {split: read(tmp_path, split) for split in SPLITS}
    assert len(splits["test"]) == 80
    assert sum(map(len, splits.values())) == 480
    groups = [{row.group for row in rows} for rows in splits.values()]
    assert sum(map(len, groups)) == len(set().union(*groups))
    for rows in splits.values():
        assert {row.task for row in rows} == {"charthal", "simplevqa", "chartom-fact"}


def test_one_task(tmp_path: Path) -> None:
    run("benchmark-answers", "--rows", 60, "--task", "simplevqa", "--out", tmp_path)
    assert {row.task for split in SPLITS for row in read(tmp_path, split)} == {"simplevqa"}


def test_an_unknown_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match="--task 'chartom': expected one of charthal, "):
        run("benchmark-answers", "--rows", 60, "--task", "chartom", "--out", tmp_path)
