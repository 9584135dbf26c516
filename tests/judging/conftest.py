"""A judge, its run folder and pictures for the tests of this folder; a CPU with bfloat16."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from tests.conftest import Folders
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


@pytest.fixture
def bfloat16_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch reports a CPU with bfloat16 instructions, whatever this machine's is."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})


@pytest.fixture(scope="session")
def run_folder(tiny_folders: Folders, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder as training leaves it, with an adapter that moves every score."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    backbone = load_backbone(tiny_folders("qwen2_5_vl"), dtype="float32", device="cpu")
    adapted = add_adapter(backbone.model, r=4, alpha=8)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.data = 0.05 * torch.randn_like(parameter)
    adapted.save_pretrained(str(folder))
    card = JudgeCard.for_rubrics(backbone, {"hieval-qs": RUBRICS}, response_budget=50)
    (folder / "judge.json").write_text(card.model_dump_json(), encoding="utf-8")
    return folder


@pytest.fixture
def folder(run_folder: Path, tmp_path: Path) -> Path:
    """A copy of the run folder to change."""
    shutil.copytree(run_folder, tmp_path / "mine")
    return tmp_path / "mine"


@pytest.fixture(scope="session")
def judge(run_folder: Path) -> Judge:
    """The judge of that run folder."""
    return Judge.load(str(run_folder), dtype="float32", device="cpu")
