import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import datasets
import pytest
from huggingface_hub import constants

from data_prep.tables.source import HubOptions, hub_rows, is_hub_id, split_files
from judging.errors import CustosError
from tests.hub_server import silent_hub

REFUSED = "http://127.0.0.1:9"


@pytest.mark.parametrize("hub", [lambda: nullcontext(REFUSED), silent_hub])
def test_an_unreachable_hub_is_one_line_within_seconds(
    hub: Callable[[], AbstractContextManager[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with hub() as address:
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(datasets.config, "HF_ENDPOINT", address)
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
        started = time.perf_counter()
        with pytest.raises(CustosError) as caught:
            list(hub_rows("lab/hieval-qs", HubOptions()))
        assert time.perf_counter() - started < 30, "the library alone would go on for longer"
    assert str(caught.value).startswith(
        "lab/hieval-qs: no such file here, and split 'train' of a hub data set of this name "
        "cannot be loaded: "
    )
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == "", "the library reports each time that it tries again"


def test_the_library_may_ask_the_hub_again_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    offline: list[bool] = []

    def load_dataset(*args: Any, **kwargs: Any) -> None:
        offline.append(datasets.config.HF_HUB_OFFLINE)
        raise ConnectionError("not in the cache\nlong explanation")

    def no_route(url: str, **options: object) -> None:
        raise OSError("no route to host\nlong explanation")

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", no_route)
    with pytest.raises(CustosError, match=r"cannot be loaded: no route to host$"):
        list(hub_rows("lab/hieval-qs", HubOptions()))
    assert offline == [True]
    assert datasets.config.HF_HUB_OFFLINE is False


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
    return [file.name for file in split_files(folder, split)]


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
    with pytest.raises(CustosError, match=r"no \.jsonl, .*, \.tsv file in this folder"):
        names(tmp_path, "test")
