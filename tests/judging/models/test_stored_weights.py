"""Weights read tensor by tensor, and adapters merged into them, saved, and refused."""

import json
import math
import shutil
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from judging.errors import CustosError
from judging.judge import Judge
from judging.judge.card import SHIPPED
from judging.judge.export import write_checkpoint
from judging.models.adapters import ADAPTER_FILE, add_adapter, load_adapter, save_adapter
from judging.models.backbones import Backbone, load_backbone
from judging.models.fetched import EMBEDDED_2, embedded_folder, vision_weights
from tests.conftest import HubFolders
from tests.cuda_stand_in import with_gpus
from tests.hub import LAYOUTS
from tests.judging.made_up import moved_adapter


def plain(checkpoint: Path | str, dtype: torch.dtype = torch.float32) -> Any:
    """Load the checkpoint by the library alone."""
    return transformers.AutoModelForImageTextToText.from_pretrained(checkpoint, dtype=dtype)


def merged_at_once(folder: Path, adapter: Path) -> Any:
    """The whole model in float32, merged by PEFT, and rounded."""
    model = plain(folder)
    if folder == embedded_folder():
        model.load_state_dict(vision_weights(), strict=False)
    merged = load_adapter(model, adapter).merge_and_unload()
    for parameter in merged.parameters():
        parameter.data = parameter.data.bfloat16()
    return merged


def tensors(model: Any) -> dict[str, torch.Tensor]:
    return dict(model.named_parameters()) | dict(model.named_buffers())


def assert_equal_to_the_bit(model: Any, expected: Any) -> None:
    actual, wanted = tensors(model), tensors(expected)
    assert actual.keys() == wanted.keys()
    for name, tensor in actual.items():
        # A CPU without bfloat16 instructions holds the rounded weights in float32.
        assert torch.equal(tensor, wanted[name].to(tensor.dtype)), name
        assert tensor.dtype in (wanted[name].dtype, torch.float32)


def save_moved_adapter(checkpoint: str, folder: Path, **kind: Any) -> Any:
    """Save an adapter that changes every weight it may; return its model."""
    model = load_backbone(checkpoint, dtype="float32", device="cpu").model
    adapted = moved_adapter(model, size=0.1, r=3, alpha=7, **kind)
    save_adapter(adapted, folder)
    return adapted


@pytest.fixture(scope="module", params=LAYOUTS)
def name(request: pytest.FixtureRequest) -> str:
    layout: str = request.param
    return layout


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def hub(
    request: pytest.FixtureRequest,
    name: str,
    hub_folders: HubFolders,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A checkpoint whose weights are stored in either format."""
    folder = Path(hub_folders(name))
    if request.param == "float32":
        return folder
    rounded = tmp_path_factory.mktemp("rounded") / name
    shutil.copytree(folder, rounded)
    for shard in rounded.glob("*.safetensors"):
        weights = {name: weight.bfloat16() for name, weight in load_file(shard).items()}
        save_file(weights, shard, metadata={"format": "pt"})
    return rounded


def test_an_adapter_is_merged_as_peft_does_and_rounded_once(hub: Path, tmp_path: Path) -> None:
    save_moved_adapter(str(hub), tmp_path)
    loaded = load_backbone(str(hub), device="cpu", adapter=tmp_path).model
    assert_equal_to_the_bit(loaded, merged_at_once(hub, tmp_path))


def test_weights_without_an_adapter_are_those_of_the_library(hub: Path) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        name: Any = str(dtype).removeprefix("torch.")
        loaded = load_backbone(str(hub), dtype=name, device="cpu").model
        assert_equal_to_the_bit(loaded, plain(hub, dtype))
        assert loaded.dtype in (dtype, torch.float32)


@pytest.mark.usefixtures("embedded")
def test_shipped_judges_are_merged_to_the_bit() -> None:
    """On a backbone whose vision weights ship apart from its checkpoint."""
    loaded = load_backbone(EMBEDDED_2, device="cpu", adapter=SHIPPED / "embedded-ea").model
    expected = merged_at_once(embedded_folder(), SHIPPED / "embedded-ea")
    assert_equal_to_the_bit(loaded, expected)


@pytest.fixture(scope="module")
def saved_once(small: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    save_adapter(add_adapter(load_backbone(small, device="cpu").model, r=2, alpha=2), folder)
    return folder


@pytest.fixture
def saved(saved_once: Path, tmp_path: Path) -> Path:
    """An adapter without faults, to damage."""
    return Path(shutil.copytree(saved_once, tmp_path / "judge"))


Weights = dict[str, torch.Tensor]


def change_weights(folder: Path, change: Callable[[Weights], Weights]) -> None:
    file = folder / "adapter_model.safetensors"
    save_file(change(load_file(file)), file)


def change_config(folder: Path, **changes: Any) -> None:
    file = folder / "adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}), encoding="utf-8")


def not_finite(value: float) -> Callable[[Path], None]:
    def change(weights: Weights) -> Weights:
        weights[sorted(weights)[3]][0, 1] = value
        return weights

    return lambda folder: change_weights(folder, change)


HEAD = {"base_model.model.lm_head.weight": torch.zeros(420, 32)}
NOT_FINITE = r"adapter_model.safetensors: '.*' holds NaN or infinite values; "
UNFIT = "adapter does not fit the backbone"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (lambda whole: whole[:-9], "damaged or cut short"),
        (lambda _: b"", "damaged or cut short"),
        (lambda _: b"version https://git-lfs.github.com/spec/v1\n", "this is a pointer of Git LFS"),
    ],
)
def test_a_damaged_adapter_is_named(
    small: str, saved: Path, content: Callable[[bytes], bytes], fault: str
) -> None:
    file = saved / "adapter_model.safetensors"
    file.write_bytes(content(file.read_bytes()))
    with pytest.raises(CustosError, match=f"{file}: {fault}"):
        load_backbone(small, device="cpu", adapter=saved)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (not_finite(math.nan), NOT_FINITE),
        (not_finite(math.inf), NOT_FINITE),
        (partial(change_config, peft_type="LOHA"), "of the kind 'LOHA'; only LoRA is read"),
        (partial(change_config, peft_type=None), "of the kind None; only LoRA is read"),
        (partial(change_config, lora_alpha=math.nan), "lora_alpha is nan, no scale"),
        (partial(change_config, lora_alpha=0), "lora_alpha is 0, no scale"),
        (partial(change_config, alpha_pattern={"q_proj": math.inf}), "q_proj is inf, no scale"),
        (partial(change_config, r="2"), UNFIT),
        (partial(change_config, trainable_token_indices=[1]), UNFIT),
        (partial(change_config, r=4), f"{UNFIT}: .* size mismatch for .*_proj"),
        (lambda folder: (folder / "adapter_config.json").write_text("[]"), "not a JSON object"),
        (lambda folder: (folder / "adapter_config.json").unlink(), "no adapter_config.json"),
        # What PEFT saves beside LoRA's weights, such as a head that was trained too.
        (
            lambda folder: change_weights(folder, lambda weights: weights | HEAD),
            "it also holds 'base_model.model.lm_head",
        ),
    ],
)
@pytest.mark.parametrize("trainable", [False, True])
def test_an_adapter_that_cannot_be_used_is_named(
    small: str, saved: Path, damage: Callable[[Path], object], fault: str, trainable: bool
) -> None:
    damage(saved)
    with pytest.raises(CustosError, match=fault) as caught:
        if trainable:
            load_adapter(load_backbone(small, device="cpu").model, saved, trainable=True)
        else:
            load_backbone(small, device="cpu", adapter=saved)
    assert "\n" not in str(caught.value)


def test_training_goes_on_from_no_part_of_an_adapter(small: str, saved: Path) -> None:
    """Refuse an adapter of fewer layers, or of more, which PEFT would load in part."""
    weights = load_file(saved / "adapter_model.safetensors")
    less = {name: tensor for name, tensor in weights.items() if "layers.1." not in name}
    more = {name.replace(".1.", ".2."): tensor.clone() for name, tensor in weights.items()}
    for content, fault in (
        (less, r"no weight '.*layers\.1\..*'"),
        ({**weights, **more}, r"it also holds '.*layers\.2\..*'"),
    ):
        save_file(content, saved / "adapter_model.safetensors")
        with pytest.raises(CustosError, match=f"{UNFIT}: {fault}"):
            load_adapter(load_backbone(small, device="cpu").model, saved, trainable=True)


@pytest.mark.parametrize("layer", [0, 1])
def test_a_checkpoint_that_is_not_finite_is_no_judge(
    small: str, tmp_path: Path, layer: int
) -> None:
    folder = Path(shutil.copytree(small, tmp_path / "damaged"))
    weights = load_file(folder / "model.safetensors")
    [name] = [name for name in weights if name.endswith(f"layers.{layer}.mlp.down_proj.weight")]
    weights[name][2, 3] = math.nan
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CustosError, match="its scores are not numbers, as some of its weights"):
        Judge.load(str(folder), device="cpu")


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


def test_other_patterns_are_read(small: str, tmp_path: Path) -> None:
    fresh = load_backbone(small, device="cpu").model
    save_adapter(add_adapter(fresh, r=2, alpha=2, modules=("q",)), tmp_path)
    change_config(tmp_path, target_modules=r"model\.language_model\.layers\.\d+\.self_attn\.q_proj")
    adapted = load_adapter(load_backbone(small, device="cpu").model, tmp_path)
    assert any(".lora_" in name for name in adapted.state_dict())


MAIN = ("Qwen2.5-VL-7B-Instruct", "Qwen3-VL-4B-Instruct")
KINDS: dict[str, dict[str, Any]] = {
    "rslora": {"rslora": True},
    "dora": {"dora": True},
    "merger": {"merger": True},
    "all": {"rslora": True, "dora": True, "merger": True},
}


def assert_close(model: Any, expected: Any) -> None:
    actual, wanted = dict(model.named_parameters()), dict(expected.named_parameters())
    assert actual.keys() == wanted.keys()
    for name, tensor in actual.items():
        torch.testing.assert_close(tensor, wanted[name], rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MAIN)
def test_merged_weights_are_those_of_peft_and_of_an_export(
    name: str, kind: str, hub_folders: HubFolders, tmp_path: Path
) -> None:
    checkpoint, adapter, export = hub_folders(name), tmp_path / "adapter", tmp_path / "export"
    save_moved_adapter(checkpoint, adapter, **KINDS[kind])
    loaded = load_backbone(checkpoint, dtype="float32", device="cpu", adapter=adapter).model
    assert_close(loaded, load_adapter(plain(checkpoint), adapter).merge_and_unload())
    untrained = dict(plain(checkpoint).named_parameters())
    changed = {n for n, p in loaded.named_parameters() if not torch.equal(p, untrained[n])}
    assert any("visual" in name for name in changed) == (kind in ("merger", "all"))
    assert not any(".blocks." in name for name in changed)
    export.mkdir()
    backbone = load_backbone(checkpoint, dtype="float32", device="cpu")
    write_checkpoint(backbone, adapter, "float32", export)
    assert_close(plain(export), loaded)


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
    adapted = save_moved_adapter("embedded@2", tmp_path, merger=True, modules=("q",))
    loaded = load_backbone("embedded@2", dtype="float32", device="cpu", adapter=tmp_path).model
    assert_close(loaded, adapted.merge_and_unload())
