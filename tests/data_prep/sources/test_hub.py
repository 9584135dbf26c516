from pathlib import Path
from typing import Any

import datasets
import pytest

from data_prep.sources.hub import HubOptions, hub_rows, is_hub_id, split_files
from judging.errors import CustosError


def test_an_unreachable_hub_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(*args: Any, **kwargs: Any) -> None:
        raise ConnectionError("Couldn't reach the hub\nlong explanation")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(
        CustosError, match=r"no such file here, and split 'train' .*: Couldn't reach the hub$"
    ):
        list(hub_rows("lab/hieval-qs", HubOptions()))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("lab/qs", True),
        ("lab/qs.jsonl", False),
        ("a/b/c", False),
        ("qs", False),
        ("/lab/qs", False),
    ],
)
def test_hub_ids(source: str, expected: bool) -> None:
    assert is_hub_id(source) is expected


def names(folder: Path, split: str) -> list[str]:
    return [file.name for file in split_files(folder, split, (".parquet", ".json"))]


def test_files_of_a_split_are_named_after_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in ("test-00001.parquet", "test-00000.parquet", "train-00000.parquet", "README.md"):
        (data / name).touch()
    (data / "manifest.json").touch()
    assert names(tmp_path, "test") == ["test-00000.parquet", "test-00001.parquet"]
    assert len(names(tmp_path, "validation")) == 3, "no file of that name: all of them"
    (tmp_path / "test.json").touch()
    assert names(tmp_path, "test") == ["test.json"], "the folder itself comes first"


def test_a_folder_without_files_of_rows(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match=r"no \.parquet, \.json file in this folder"):
        names(tmp_path, "test")
