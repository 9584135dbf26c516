"""The warm-up of a vision tower: what it leaves, ends like, and computes."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers.vision_utils import get_vision_window_index

from experiments.vision import vision_warmup
from experiments.vision.model import EqualPictures, WarmupModel
from experiments.vision.pictures import WarmupPicture, draw
from experiments.vision.vision_warmup import VISION_FILE, WarmupTrainer
from judging.errors import CustosError
from judging.models.backbones import Backbone, load_backbone
from train.loop.checkpoint import save_checkpoint
from train.setup.recipe import OptimSection, RunSection
from train.tracking.trackers import METRICS_FILE


def _pictures(backbone: Backbone, count: int = 16) -> list[WarmupPicture]:
    return draw(backbone, count, seed=0)


def _trainer(folder: Path, **optim: Any) -> WarmupTrainer:
    backbone = load_backbone("embedded", dtype="float32", device="cpu")
    given = {"lr": 1e-3, "batch_size": 2, "epochs": 2, "max_steps": 5} | optim
    pictures = _pictures(backbone, 8)
    torch.manual_seed(0)
    return WarmupTrainer(
        OptimSection.model_validate(given),
        RunSection(output=folder, save_every=3, eval_every=4),
        WarmupModel(backbone, pictures, compiled=False),
        pictures,
        draw(backbone, 4, seed=1),
        identity=given,
    )


class _KilledError(Exception):
    pass


def test_a_killed_run_ends_as_a_whole_one(
    embedded: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _trainer(tmp_path / "whole")
    before = {name: p.detach().clone() for name, p in whole.model.tower.named_parameters()}
    frozen = whole.model.captions.embeddings.clone()
    history = whole.fit()
    assert history[-1]["step"] == whole.total_steps > 4
    assert history[-1]["n"] == 4
    assert 0 <= history[-1]["caption_accuracy"] <= history[-1]["token_accuracy"] <= 1
    after = dict(whole.model.tower.named_parameters())
    assert all(not torch.equal(after[name], start) for name, start in before.items())
    assert torch.equal(whole.model.captions.embeddings, frozen)

    def save_and_die(*arguments: Any) -> None:
        save_checkpoint(*arguments)
        raise _KilledError

    with monkeypatch.context() as patch, pytest.raises(_KilledError):
        patch.setattr(vision_warmup, "save_checkpoint", save_and_die)
        _trainer(tmp_path / "broken").fit()
    resumed = _trainer(tmp_path / "broken")
    assert resumed.fit() == history
    reports = [
        [
            {key: value for key, value in json.loads(line).items() if key != "rows_per_second"}
            for line in (tmp_path / name / METRICS_FILE).read_text("utf-8").splitlines()
        ]
        for name in ("whole", "broken")
    ]
    assert reports[0] == reports[1]
    for name, parameter in resumed.model.tower.named_parameters():
        assert torch.equal(parameter, after[name])
    with pytest.raises(CustosError, match=r"holds another run \(of other lr\)"):
        _trainer(tmp_path / "broken", lr=1e-4).fit()


def test_the_script_leaves_a_tower(
    embedded: Backbone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vision_warmup.main(
        [
            *(
                "compiled=false",
                "pictures.train=16",
                "pictures.held_out=4",
                f"run.output={tmp_path}",
            ),
            *("optim.batch_size=4", "optim.max_steps=1"),
        ]
    )
    tower = embedded.model.model.visual.state_dict()
    weights = load_file(tmp_path / VISION_FILE)
    assert {name: tensor.shape for name, tensor in weights.items()} == {
        name: tensor.shape for name, tensor in tower.items()
    }
    assert f"vision tower: {tmp_path / VISION_FILE}: caption accuracy" in capsys.readouterr().out


def _patches(backbone: Backbone, height: int, width: int, count: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 256, (count, height, width, 3), generator=generator)
    encoded = backbone.processor.image_processor(images=list(pictures.byte().numpy()))
    return torch.as_tensor(encoded["pixel_values"]), torch.as_tensor(encoded["image_grid_thw"])


@pytest.mark.parametrize(("height", "width"), [(112, 112), (224, 224), (224, 280), (280, 140)])
def test_features_and_gradients_are_the_librarys(
    embedded: Backbone, height: int, width: int
) -> None:
    patches, grid = _patches(embedded, height, width, 3)
    tower = embedded.model.model.visual.float().requires_grad_(True)
    features, middle, _ = EqualPictures(tower, compiled=False)(patches, grid)
    weights = torch.randn(features.shape, generator=torch.Generator().manual_seed(1))
    gradients = torch.autograd.grad((features * weights).sum(), list(tower.parameters()))
    expected = torch.stack(
        list(embedded.model.model.get_image_features(patches, grid).pooler_output)
    )
    reference = torch.autograd.grad((expected * weights).sum(), list(tower.parameters()))
    torch.testing.assert_close(features, expected, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(gradients, reference, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    assert middle.shape == (3, height * width // 28**2, 4 * 192)


def test_the_middle_is_in_the_order_of_the_tokens(embedded: Backbone) -> None:
    tower = embedded.model.model.visual.float()
    patches, grid = _patches(embedded, 224, 280, 2)
    seen: list[Tensor] = []
    hook = tower.blocks[-1].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    embedded.model.model.get_image_features(patches, grid)
    hook.remove()
    order, _ = get_vision_window_index(grid, spatial_merge_size=2, window_size=112, patch_size=14)
    expected = torch.empty(160, 4 * 192)
    for position, token in enumerate(order.tolist()):
        expected[token] = seen[0][4 * position : 4 * position + 4].flatten()
    _, middle, _ = EqualPictures(tower, compiled=False)(patches, grid)
    torch.testing.assert_close(middle.flatten(0, 1), expected, rtol=1e-4, atol=1e-5)


def test_the_first_head_looks_where_the_librarys_does(embedded: Backbone) -> None:
    tower = embedded.model.model.visual.float()
    patches, grid = _patches(embedded, 224, 280, 2)
    given: list[tuple[Tensor, tuple[Tensor, Tensor]]] = []

    def keep(module: Any, args: tuple[Tensor, ...], named: dict[str, Any]) -> None:
        given.append((named.get("hidden_states", *args[:1]), named["position_embeddings"]))

    hook = tower.blocks[-1].attn.register_forward_pre_hook(keep, with_kwargs=True)
    embedded.model.model.get_image_features(patches, grid)
    hook.remove()
    [(hidden, (cos, sin))] = given
    attention = tower.blocks[-1].attn
    width = 192 // attention.num_heads
    query, key = (part[:, :width] for part in attention.qkv(hidden).chunk(3, dim=1)[:2])
    query, key = (x * cos + torch.cat([-x[:, 32:], x[:, :32]], 1) * sin for x in (query, key))
    order, _ = get_vision_window_index(grid, spatial_merge_size=2, window_size=112, patch_size=14)
    expected = torch.zeros(2, 80, 80)
    for picture in range(2):
        patches_of_picture = slice(320 * picture, 320 * (picture + 1))
        weights = (query[patches_of_picture] @ key[patches_of_picture].T / width**0.5).softmax(-1)
        tokens = (order[80 * picture : 80 * (picture + 1)] - 80 * picture).tolist()
        for row, query_token in enumerate(tokens):
            for column, key_token in enumerate(tokens):
                block = weights[4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
                expected[picture, query_token, key_token] = block.sum() / 4
    _, _, looks = EqualPictures(tower, compiled=False)(patches, grid)
    torch.testing.assert_close(looks, expected, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(looks.sum(-1), torch.ones(2, 80))
