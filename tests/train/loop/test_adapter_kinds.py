"""Runs with adapters and optimizers of every kind train, stop, go on, and become judges."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from judging.errors import CustosError
from judging.models.adapters import load_adapter
from judging.models.backbones import load_backbone
from judging.types import LabelledExample
from tests.tiny import save_picture
from tests.train.loop.test_checkpoint import load_checkpoint
from tests.train.made_up import adapter_of, example, examples, recipe, trainer
from train.loop.checkpoint import best_folder, save_checkpoint
from train.loop.optimizer import make_optimizer
from train.setup.engines import check_installed, check_processes

needs_bitsandbytes = pytest.mark.skipif(
    find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed"
)


def rows(folder: Path, count: int) -> list[LabelledExample]:
    """Rows of which every other one has a picture."""
    picture = save_picture(folder / "a.png", 60, 60)
    return [example(i, images=(picture,) if i % 2 else ()) for i in range(count)]


def test_every_part_of_an_adapter_is_trained(tiny_folder: str, tmp_path: Path) -> None:
    kind: dict[str, Any] = {f"adapter__{key}": True for key in ("rslora", "dora", "merger")}
    settings = recipe(tmp_path / "run", optim__epochs=3, run__select="last", **kind)
    learner = trainer(settings, tiny_folder, rows(tmp_path, 16), rows(tmp_path, 4))
    before = adapter_of(learner)
    learner.fit()
    after = adapter_of(learner)
    # What the last layer adds at pictures no text comes after: here that is the second deepstack.
    still = [name for name in after if torch.equal(after[name], before[name])]
    assert [name for name in still if "deepstack_merger_list.1" not in name] == []
    assert {"lora_A", "lora_magnitude_vector"} <= {part for n in after for part in n.split(".")}
    assert any("visual" in name for name in after)
    folder = best_folder(tmp_path / "run", learner.progress.step)
    merged = load_backbone(tiny_folder, dtype="float32", device="cpu", adapter=folder).model
    # The judge says what the model said that was trained.
    ids = torch.arange(5, 45)[None]
    with torch.no_grad():
        expected = learner.tree_model.backbone.eval()(input_ids=ids).logits
        torch.testing.assert_close(merged(input_ids=ids).logits, expected, rtol=1e-4, atol=1e-4)


def test_a_merger_is_trained_by_one_process(tmp_path: Path) -> None:
    settings = recipe(tmp_path, adapter__merger=True)
    check_processes(settings, {"WORLD_SIZE": "1"})
    check_processes(recipe(tmp_path), {"WORLD_SIZE": "2"})
    with pytest.raises(CustosError, match="adapter.merger=true: one process trains a merger"):
        check_processes(settings, {"WORLD_SIZE": "2"})


@pytest.mark.parametrize(
    ("key", "value"), [("optim__optimizer", "paged_adamw_8bit"), ("run__quantization", "nf4")]
)
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, value: str
) -> None:
    monkeypatch.setattr("judging.models.adapters.find_spec", lambda name: None)
    name = key.replace("__", ".")
    with pytest.raises(CustosError, match=f"{name}={value}: bitsandbytes is not installed"):
        check_installed(recipe(tmp_path, **{key: value}))
    check_installed(recipe(tmp_path))


@needs_bitsandbytes
def test_moments_of_8_bits_follow_adamw_and_survive_a_checkpoint(tmp_path: Path) -> None:
    """Close to AdamW in 32 bits; stopped and resumed equal to the run at a stretch."""

    def model() -> torch.nn.Linear:
        with torch.random.fork_rng():
            torch.manual_seed(3)
            return torch.nn.Linear(96, 64)  # more than 4,096 weights, and a bias of fewer

    def steps(module: torch.nn.Linear, optimizer: Any, count: range) -> None:
        for number in count:
            inputs = torch.randn(8, 96, generator=torch.Generator().manual_seed(number))
            (module(inputs) ** 2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    optim = recipe(tmp_path, optim__optimizer="paged_adamw_8bit", optim__lr=1e-2).optim
    whole, reference = model(), model()
    optimizer = make_optimizer(list(whole.parameters()), optim)
    steps(whole, optimizer, range(3))
    save_checkpoint(tmp_path, 3, whole, optimizer, {}, {})
    steps(whole, optimizer, range(3, 6))
    assert optimizer.state[whole.weight]["state1"].dtype == torch.uint8

    resumed = model()
    fresh = make_optimizer(list(resumed.parameters()), optim)
    load_checkpoint(tmp_path, resumed, fresh, {})
    steps(resumed, fresh, range(3, 6))
    assert torch.equal(resumed.weight, whole.weight) and torch.equal(resumed.bias, whole.bias)

    adamw = recipe(tmp_path, optim__lr=1e-2).optim
    steps(reference, make_optimizer(list(reference.parameters()), adamw), range(6))
    moved = (reference.weight - model().weight).norm()
    assert (whole.weight - reference.weight).norm() < 0.1 * moved


@needs_bitsandbytes
def test_an_adapter_is_trained_on_nf4_and_merged_into_the_checkpoint(
    tiny_folder: str, tmp_path: Path
) -> None:
    from bitsandbytes.functional import dequantize_4bit

    plain = load_backbone(tiny_folder, dtype="float32", device="cpu").model
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu", quantization="nf4")
    layer = "model.language_model.layers.0.mlp.up_proj"
    weight = backbone.model.get_submodule(layer).weight
    assert weight.dtype == torch.uint8 and weight.quant_state.nested
    exact = plain.get_submodule(layer).weight
    difference = dequantize_4bit(weight.data, weight.quant_state) - exact
    assert 0 < difference.norm() < 0.15 * exact.norm()
    names = {n for n, p in backbone.model.named_parameters() if p.dtype == torch.uint8}
    assert len(names) == 2 * 7 and not any("visual" in name or "head" in name for name in names)

    settings = recipe(tmp_path / "run", run__quantization="nf4", run__select="last")
    learner = trainer(settings, tiny_folder, examples(16))
    before = adapter_of(learner)
    learner.fit()
    assert any(not torch.equal(after, before[name]) for name, after in adapter_of(learner).items())
    folder = best_folder(tmp_path / "run", learner.progress.step)
    merged = load_backbone(tiny_folder, dtype="float32", device="cpu", adapter=folder).model
    saved = load_backbone(tiny_folder, dtype="float32", device="cpu").model
    expected = load_adapter(saved, folder).merge_and_unload()
    for name, tensor in merged.named_parameters():
        torch.testing.assert_close(tensor, expected.get_parameter(name), rtol=1e-5, atol=1e-5)
    learner.free_memory()
