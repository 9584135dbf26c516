"""A judge, its run folder and pictures for the tests of this folder."""

import shutil
from pathlib import Path

import pytest

from judging.judge import Judge
from judging.models.backbones import load_backbone
from tests.conftest import Folders
from tests.judging.made_up import save_run
from tests.tiny import save_picture

RUBRICS = ("plain/all", "plain/any", "tolerance/all")


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Pictures of three shapes."""
    folder = tmp_path_factory.mktemp("pictures")
    shapes = [(60, 60), (150, 40), (50, 130)]
    return [
        save_picture(folder / f"{i}.png", width, height, seed=i)
        for i, (width, height) in enumerate(shapes)
    ]


@pytest.fixture(scope="session")
def run_folder(tiny_folders: Folders, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder as training leaves it, with an adapter that moves every score."""
    backbone = load_backbone(tiny_folders("qwen2_5_vl"), dtype="float32", device="cpu")
    return save_run(tmp_path_factory.mktemp("runs") / "mine", backbone, RUBRICS)


@pytest.fixture
def folder(run_folder: Path, tmp_path: Path) -> Path:
    """A copy of the run folder to change."""
    shutil.copytree(run_folder, tmp_path / "mine")
    return tmp_path / "mine"


@pytest.fixture(scope="session")
def judge(run_folder: Path) -> Judge:
    """The judge of that run folder."""
    return Judge.load(str(run_folder), dtype="float32", device="cpu")
