"""The quick tower against the library's own, over pictures of one size."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.vision_utils import get_vision_window_index

from experiments.vision.tower import EqualPictures
from judging.models.backbones import Backbone


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


def test_pictures_of_two_sizes_are_refused(embedded: Backbone) -> None:
    patches, grid = zip(*(_patches(embedded, 112, width, 1) for width in (112, 140)), strict=True)
    with pytest.raises(ValueError, match="differ in size"):
        EqualPictures(embedded.model.model.visual, compiled=False)(
            torch.cat(patches), torch.cat(grid)
        )
