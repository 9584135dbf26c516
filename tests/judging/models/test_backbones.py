"""Versions of backbones follow every file that could change a verdict."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from judging.models.backbones import load_backbone
from tests.conftest import Folders


@pytest.mark.parametrize("file", ["preprocessor_config.json", "chat_template.jinja"])
def test_a_backbones_version_follows_pixel_limits_and_template(
    tiny_folders: Folders, tmp_path: Path, file: str
) -> None:
    copied = shutil.copytree(tiny_folders("qwen2_5_vl"), tmp_path / "copied")
    before = load_backbone(str(copied), device="cpu", weights=False).version
    assert before == load_backbone(tiny_folders("qwen2_5_vl"), device="cpu", weights=False).version
    path = copied / file
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert load_backbone(str(copied), device="cpu", weights=False).version != before
