"""Adapters are loaded and saved without notices, and without weights of the backbone."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from judging.errors import CustosError
from judging.judge.export import write_checkpoint
from judging.models import adapters
from judging.models.adapters import ADAPTER_FILE, add_adapter, load_adapter, save_adapter
from judging.models.backbones import Backbone, load_backbone
from tests.conftest import HubFolders
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
    monkeypatch.setattr(adapters, "_MATCHING_S", 1)
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


MAIN = ("Qwen2.5-VL-7B-Instruct", "Qwen3-VL-4B-Instruct")
KINDS: dict[str, dict[str, Any]] = {
    "rslora": {"rslora": True},
    "dora": {"dora": True},
    "merger": {"merger": True},
    "all": {"rslora": True, "dora": True, "merger": True},
}
TOLERANCE = 1e-5


def save_moved_adapter(checkpoint: str, folder: Path, **kind: Any) -> None:
    """Save an adapter whose every weight differs from that of a fresh one."""
    model = load_backbone(checkpoint, dtype="float32", device="cpu").model
    adapted = add_adapter(model, r=3, alpha=7, **kind)
    generator = torch.Generator().manual_seed(1)
    for name, parameter in adapted.named_parameters():
        if parameter.requires_grad:
            noise = torch.randn(parameter.shape, generator=generator)
            is_norm = "magnitude" in name
            parameter.data = parameter.data * (1 + 0.1 * noise) if is_norm else 0.1 * noise
    save_adapter(adapted, folder)


@pytest.fixture(scope="module", params=MAIN)
def checkpoint(request: pytest.FixtureRequest, hub_folders: HubFolders) -> str:
    return hub_folders(request.param)


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def adapter(checkpoint: str, kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(kind) / "adapter"
    save_moved_adapter(checkpoint, folder, **KINDS[kind])
    return folder


def plain(checkpoint: str) -> Any:
    """The checkpoint as the library alone loads it."""
    return transformers.AutoModelForImageTextToText.from_pretrained(checkpoint, dtype=torch.float32)


def assert_close(model: Any, expected: Any) -> None:
    actual, wanted = dict(model.named_parameters()), dict(expected.named_parameters())
    assert actual.keys() == wanted.keys()
    for name, tensor in actual.items():
        torch.testing.assert_close(tensor, wanted[name], rtol=TOLERANCE, atol=TOLERANCE, msg=name)


def test_merged_weights_are_those_of_peft(checkpoint: str, kind: str, adapter: Path) -> None:
    loaded = load_backbone(checkpoint, dtype="float32", device="cpu", adapter=adapter).model
    merged = load_adapter(plain(checkpoint), adapter).merge_and_unload()
    assert_close(loaded, merged)
    untrained = dict(plain(checkpoint).named_parameters())
    changed = {n for n, p in loaded.named_parameters() if not torch.equal(p, untrained[n])}
    assert any("visual" in name for name in changed) == (kind in ("merger", "all"))
    assert not any(".blocks." in name for name in changed)


def test_an_exported_judge_holds_them(checkpoint: str, adapter: Path, tmp_path: Path) -> None:
    backbone = load_backbone(checkpoint, dtype="float32", device="cpu")
    write_checkpoint(backbone, adapter, "float32", tmp_path)
    loaded = load_backbone(checkpoint, dtype="float32", device="cpu", adapter=adapter).model
    assert_close(plain(str(tmp_path)), loaded)


def test_experts_are_not_quantized(
    hub_folders: HubFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before weights are loaded, and so is a package that is missing."""
    folder = hub_folders("Qwen3-VL-30B-A3B-Instruct")
    monkeypatch.setattr("judging.models.adapters.find_spec", lambda name: None)
    with pytest.raises(CustosError, match="bitsandbytes is not installed"):
        load_backbone(folder, quantization="nf4", weights=False)
    monkeypatch.setattr("judging.models.adapters.find_spec", lambda name: name)
    with pytest.raises(CustosError, match="the experts of backbone .* would stay as they are"):
        load_backbone(folder, quantization="nf4", weights=False)


def test_a_merger_of_the_second_embedded_backbone(embedded: Backbone, tmp_path: Path) -> None:
    """Its vision weights ship apart from the checkpoint: the adapter is merged into those."""
    save_moved_adapter("embedded@2", tmp_path, merger=True, modules=("q",))
    untrained = load_backbone("embedded@2", dtype="float32", device="cpu").model
    loaded = load_backbone("embedded@2", dtype="float32", device="cpu", adapter=tmp_path).model
    assert_close(loaded, load_adapter(untrained, tmp_path).merge_and_unload())
