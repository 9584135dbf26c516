"""Weights read tensor by tensor, and an adapter merged into them on the way."""

from __future__ import annotations

import json
import math
import shutil
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
from judging.models.adapters import add_adapter, load_adapter, save_adapter
from judging.models.backbones import load_backbone
from judging.models.fetched import EMBEDDED_2, embedded_folder, vision_weights
from tests.conftest import HubFolders
from tests.hub import LAYOUTS
from tests.judging.made_up import moved_adapter


def merged_at_once(folder: Path, adapter: Path) -> Any:
    """The whole model in float32, merged by PEFT, and rounded."""
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
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


@pytest.fixture
def adapter(hub: Path, tmp_path: Path) -> Path:
    model = load_backbone(str(hub), dtype="float32", device="cpu").model
    save_adapter(moved_adapter(model, size=0.1, r=3, alpha=7), tmp_path / "adapter")
    return tmp_path / "adapter"


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


def test_an_adapter_is_merged_as_peft_does_and_rounded_once(hub: Path, adapter: Path) -> None:
    loaded = load_backbone(str(hub), device="cpu", adapter=adapter).model
    assert_equal_to_the_bit(loaded, merged_at_once(hub, adapter))


def test_weights_without_an_adapter_are_those_of_the_library(hub: Path) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        expected = transformers.AutoModelForImageTextToText.from_pretrained(hub, dtype=dtype)
        name: Any = str(dtype).removeprefix("torch.")
        loaded = load_backbone(str(hub), dtype=name, device="cpu").model
        assert_equal_to_the_bit(loaded, expected)
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
