"""Models of the hub: its cache as it lies on disk, a hub on a socket, a hub that is silent."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from huggingface_hub import constants
from typer.testing import CliRunner

from cli.main import app
from judging.errors import CustosError
from judging.models.backbones import load_backbone
from tests.conftest import HubFolders
from tests.hub import shards
from tests.hub_server import COMMIT, hub_of, silent_hub

NAME = "lab/tiny-judge"
OLD, NEW = "a" * 40, "b" * 40
REFUSED = "http://127.0.0.1:9"

Use = Callable[..., None]


@pytest.fixture
def folder(hub_folders: HubFolders, tmp_path: Path) -> Path:
    return Path(shutil.copytree(hub_folders("Qwen3-VL-4B-Instruct"), tmp_path / "published"))


@pytest.fixture
def cache(folder: Path, tmp_path: Path) -> Path:
    """The hub's cache with two commits of a model; ``main`` is the newer one."""
    model = tmp_path / "hub" / "models--lab--tiny-judge"
    (model / "blobs").mkdir(parents=True)
    for commit in (OLD, NEW):
        snapshot = model / "snapshots" / commit
        snapshot.mkdir(parents=True)
        for file in folder.iterdir():
            blob = model / "blobs" / f"{commit[0]}-{file.name}"
            shutil.copy(file, blob)
            (snapshot / file.name).symlink_to(Path("../../blobs") / blob.name)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(NEW, encoding="utf-8")
    return tmp_path / "hub"


def snapshot(cache: Path, commit: str) -> Path:
    return cache / "models--lab--tiny-judge" / "snapshots" / commit


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Set the cache and the address of the hub, or no hub."""

    def settings(cache: Path, address: str | None = None) -> None:
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", address is None)
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", address or REFUSED)

    return settings


def version_of(name: str = NAME, version: str | None = None, *, weights: bool = False) -> str:
    return load_backbone(name, device="cpu", version=version, weights=weights).version


def error_of(name: str = NAME) -> str:
    with pytest.raises(CustosError) as caught:
        version_of(name, weights=True)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("version", "loaded"), [(None, NEW), ("unknown", NEW), (OLD, OLD), (NEW, NEW)]
)
def test_a_model_in_the_cache_is_loaded_by_its_commit(
    cache: Path, use: Use, version: str | None, loaded: str
) -> None:
    use(cache)
    assert version_of(version=version) == loaded


def test_a_missing_shard_in_the_cache(
    cache: Path, use: Use, capfd: pytest.CaptureFixture[str]
) -> None:
    use(cache)
    shard = shards(snapshot(cache, NEW))[1]
    count = len(shards(snapshot(cache, NEW)))
    shard.resolve().unlink()  # a download that was stopped
    result = CliRunner().invoke(app, ["backbone", NAME])
    assert (result.exit_code, result.stdout) == (2, "")
    line = f"{snapshot(cache, NEW)}': {shard.name} of {count} shards missing"
    assert line in result.stderr
    assert result.stderr.count("\n") == 1
    assert capfd.readouterr().err == "", "nothing that a library prints"


def test_a_model_that_is_not_in_the_cache(cache: Path, use: Use) -> None:
    use(cache)
    message = error_of("lab/other")
    assert message.startswith("backbone 'lab/other' cannot be loaded (the hub says: ")
    assert "offline mode is enabled" in message


@pytest.mark.parametrize("hub", [lambda: nullcontext(REFUSED), silent_hub])
def test_a_hub_that_cannot_be_reached(
    hub: Callable[[], AbstractContextManager[str]],
    cache: Path,
    use: Use,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What is in the cache is used; anything else ends in one line, within seconds."""
    with hub() as address:
        use(cache, address)
        started = time.perf_counter()
        message = error_of("lab/other")
        assert time.perf_counter() - started < 15, "the client alone would go on for longer"
        assert message.startswith("backbone 'lab/other' cannot be loaded (the hub says: ")
        assert version_of() == NEW
    assert capfd.readouterr().err == ""


def test_a_download(
    folder: Path, tmp_path: Path, use: Use, capfd: pytest.CaptureFixture[str]
) -> None:
    """Files come once; the weights come when they are needed."""
    with hub_of(NAME, folder) as (address, fetched):
        use(tmp_path / "fresh", address)
        assert version_of() == COMMIT
        assert "tokenizer.json" in fetched
        assert not [file for file in fetched if file.endswith(".safetensors")]
        assert version_of(weights=True) == COMMIT
        assert sorted(fetched) == sorted(file.name for file in folder.iterdir())
        capfd.readouterr()
        assert version_of(weights=True) == COMMIT
        assert capfd.readouterr().err == "", "no bars where nothing is downloaded"
    use(tmp_path / "fresh")
    assert version_of(weights=True) == COMMIT


def test_weights_of_another_family_are_not_downloaded(
    folder: Path, tmp_path: Path, use: Use
) -> None:
    (folder / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    with hub_of(NAME, folder) as (address, fetched):
        use(tmp_path / "fresh", address)
        assert "'lab/tiny-judge': model type 'llama' is not supported" in error_of()
    assert not [file for file in fetched if file.endswith(".safetensors")]
