"""The nearest file is one whose name, without its ending, is nearly the one that was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from judging.files.opening import nearest_file


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("pair.csv", "pairs.csv"), ("pairs.jsonl", "pairs.csv"), ("typo.csv", ""), ("x.csv", "")],
)
def test_only_a_name_that_is_alike_is_near(tmp_path: Path, name: str, nearest: str) -> None:
    for file in ("pairs.csv", "y.csv", "notes.txt"):
        (tmp_path / file).touch()
    text = nearest_file(tmp_path / name, (".csv", ".jsonl"))
    assert text == (f"; the nearest is '{tmp_path / nearest}'" if nearest else "")


def test_a_link_to_nothing_is_named_as_one(tmp_path: Path) -> None:
    for name in ("pairs.csv", "pair.csv"):
        (tmp_path / name).symlink_to("nowhere.csv")
    assert "'nowhere.csv'" in nearest_file(tmp_path / "pairs.csv", (".csv",))
    assert nearest_file(tmp_path / "pairz.csv", (".csv",)) == "", "no link to nothing is near"


def test_a_folder_that_is_not_there_has_no_near_file(tmp_path: Path) -> None:
    assert nearest_file(tmp_path / "none" / "pairs.csv", (".csv",)) == ""
