"""A fake server, and the same judge here and there."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from judging.judge import Judge
from judging.models.backbones import Backbone, load_backbone
from tests.clients.fake_server import FakeServer
from tests.conftest import Folders
from tests.tiny import save_picture


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with FakeServer().running() as server:
        yield server


@pytest.fixture(scope="module")
def backbone(tiny_folders: Folders) -> Backbone:
    return load_backbone(tiny_folders("qwen3_vl"), dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def here(tiny_folders: Folders) -> Judge:
    return Judge.load(tiny_folders("qwen3_vl"), dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = Path(save_picture(tmp_path_factory.mktemp("pictures") / "a.png", 70, 50))
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
