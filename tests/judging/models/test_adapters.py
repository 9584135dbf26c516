"""Adapters are loaded and saved without notices, and without weights of the backbone."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from judging.errors import CustosError
from judging.models import adapters
from judging.models.adapters import ADAPTER_FILE, add_adapter, load_adapter, save_adapter
from judging.models.backbones import load_backbone
from tests.cuda_stand_in import with_gpus


def test_loading_and_saving_warn_of_nothing(tiny_folder: str, tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
        save_adapter(add_adapter(backbone.model, r=2, alpha=2), first)
        # A run names its backbone as users do, which is neither a folder nor on the hub.
        path = first / "adapter_config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(config | {"base_model_name_or_path": "embedded@1"}))
        backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
        save_adapter(load_adapter(backbone.model, first), again)
    weights = load_file(again / ADAPTER_FILE)
    assert weights.keys() == load_file(first / ADAPTER_FILE).keys()
    assert all("lora_" in name for name in weights)


def test_an_adapter_is_read_onto_the_device_of_its_model(
    tiny_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_adapter(
        add_adapter(load_backbone(tiny_folder, device="cpu").model, r=2, alpha=2), tmp_path
    )
    with_gpus(monkeypatch, 8)  # the library's choice would be the first of them
    adapted = load_adapter(load_backbone(tiny_folder, device="cpu").model, tmp_path)
    assert {parameter.device.type for parameter in adapted.parameters()} == {"cpu"}


def test_other_warnings_are_still_shown(tiny_folder: str, tmp_path: Path) -> None:
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    save_adapter(add_adapter(backbone.model, r=2, alpha=2), tmp_path)
    shutil.copy(tmp_path / "adapter_config.json", tmp_path / "copy.json")
    config = json.loads((tmp_path / "copy.json").read_text(encoding="utf-8"))
    extra = config | {"of_a_newer_peft": True}
    (tmp_path / "adapter_config.json").write_text(json.dumps(extra), encoding="utf-8")
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    with pytest.warns(UserWarning, match="of_a_newer_peft"):
        load_adapter(backbone.model, tmp_path)


@pytest.mark.parametrize(
    "patterns",
    [
        {"target_modules": r"(([\w.]+)+)+!"},
        {"exclude_modules": r"(([\w.]+)+)+!"},
        {"rank_pattern": {r"(([\w.]+)+)+!": 4}},
        {"alpha_pattern": {r"(([\w.]+)+)+!": 4}},
        {"target_modules": "("},
    ],
)
def test_patterns_that_match_for_ever_are_refused(
    tiny_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patterns: dict[str, Any]
) -> None:
    monkeypatch.setattr(adapters, "_MATCHING_S", 0.5)
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    save_adapter(add_adapter(backbone.model, r=2, alpha=2), tmp_path)
    path = tmp_path / "adapter_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(config | patterns), encoding="utf-8")
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    with pytest.raises(CustosError, match="adapter_config.json"):
        load_adapter(backbone.model, tmp_path)


def test_other_patterns_are_read(tiny_folder: str, tmp_path: Path) -> None:
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    save_adapter(add_adapter(backbone.model, r=2, alpha=2, modules=("q",)), tmp_path)
    path = tmp_path / "adapter_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    pattern = {"target_modules": r"model\.language_model\.layers\.\d+\.self_attn\.q_proj"}
    path.write_text(json.dumps(config | pattern), encoding="utf-8")
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    assert any(".lora_" in name for name in load_adapter(backbone.model, tmp_path).state_dict())
