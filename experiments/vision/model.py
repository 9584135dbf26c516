"""The vision tower in its warm-up: what it learns, beside which helpers, with which losses.

The tower runs over pictures of one size. The library attends window by window, which costs hundreds
of small calls a step. Here all windows are one batch. The patch convolution is one matrix product,
because its stride is its kernel size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import apply_rotary_pos_emb_vision
from transformers.vision_utils import get_vision_position_ids, get_vision_window_index

from experiments.vision.pictures import FACTS, Shift, WarmupPicture, by_size, tokens_at
from judging.errors import CustosError
from judging.models.backbones import Backbone


@dataclass(frozen=True)
class Windows:
    """Windows of patches that attend to each other, as one batch padded to the longest."""

    length: int
    """Slots of each window: the patches of the longest one."""
    padding: tuple[Tensor, Tensor, Tensor] | None
    """Patch in each slot ``[windows * length]``, whether the slot holds a patch
    ``[windows, 1, 1, length]``, and the slot of each patch ``[patches]``; ``None`` if all windows
    are equally long."""

    @classmethod
    def of_lengths(cls, lengths: Tensor) -> Windows:
        """Return windows of consecutive patches, given the length of each, ``[windows]``."""
        longest = int(lengths.max())
        if bool((lengths == longest).all()):
            return cls(longest, None)
        filled = torch.arange(longest) < lengths[:, None]
        patches = filled.flatten().cumsum(0) - 1
        return cls(
            longest, (patches.clamp(min=0), filled[:, None, None], filled.flatten().nonzero()[:, 0])
        )


Block = Callable[[Any, Tensor, Windows, Tensor, Tensor], tuple[Tensor, Tensor]]
"""From a block, its input, windows, cosines and sines to its output and attention weights."""


class EqualPictures:
    """A vision tower that runs over pictures of the same size.

    Args:
        tower: ``Qwen2_5_VisionTransformerPretrainedModel``; its parameters are used as they are.
        compiled: Compile the blocks. That needs a C++ compiler and slows down the first step.
    """

    def __init__(self, tower: Any, *, compiled: bool) -> None:
        self.tower = tower
        self.block: Block = torch.compile(_block, dynamic=False) if compiled else _block

    def __call__(self, pixel_values: Tensor, grid_thw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Run the tower.

        Args:
            pixel_values: Patches, ``[pictures * patches, channels * time * height * width]``.
            grid_thw: ``[pictures, 3]``, every row the same.

        Returns:
            Visual tokens, ``[pictures, tokens, hidden]``, as the tower's own ``pooler_output``; the
            input of the last block, the patches of a token side by side: ``[pictures, tokens,
            merge^2 * width]``; and the attention weights of the first head of that block,
            ``[pictures, tokens, tokens]``, whose rows sum to 1.

        Raises:
            ValueError: If the pictures differ in size.
        """
        merge = self.tower.spatial_merge_size
        if not bool((grid_thw == grid_thw[0]).all()):
            raise ValueError("the pictures differ in size")
        order, ends = get_vision_window_index(
            grid_thw,
            spatial_merge_size=merge,
            window_size=self.tower.window_size,
            patch_size=self.tower.patch_size,
        )
        hidden, last_input, attention = self._run_blocks(pixel_values, grid_thw, order, ends)
        by_key = attention.unflatten(2, (-1, merge**2)).sum(3)
        weights = by_key.unflatten(1, (-1, merge**2)).mean(2)
        in_order, pictures = order.argsort(), (len(grid_thw), -1)
        tokens = self.tower.merger(hidden)[in_order].unflatten(0, pictures)
        patches = last_input.unflatten(0, (-1, merge**2)).flatten(1)[in_order]
        in_order = in_order[: weights.shape[1]]  # the same in every picture
        return tokens, patches.unflatten(0, pictures), weights[:, in_order][:, :, in_order]

    def _run_blocks(
        self, pixel_values: Tensor, grid_thw: Tensor, order: Tensor, ends: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return output, input and attention weights of the last block, patches window by window.

        Args:
            pixel_values: Patches, as above.
            grid_thw: ``[pictures, 3]``.
            order: Visual tokens, window by window.
            ends: Patches before the end of each window, 0 first.
        """
        tower, merge = self.tower, self.tower.spatial_merge_size
        whole, parts = Windows.of_lengths(grid_thw.prod(-1)), Windows.of_lengths(ends.diff())

        def in_window_order(patches: Tensor) -> Tensor:
            ordered: Tensor = patches.unflatten(0, (-1, merge**2))[order].flatten(0, 1)
            return ordered

        weight = tower.patch_embed.proj.weight.flatten(1)
        hidden = in_window_order(functional.linear(pixel_values.to(weight.dtype), weight))
        rotary = tower.rotary_pos_emb(hidden, get_vision_position_ids(grid_thw, merge))
        cos, sin = map(in_window_order, rotary)
        for number, block in enumerate(tower.blocks):
            last_input = hidden
            windows = whole if number in tower.fullatt_block_indexes else parts
            hidden, attention = self.block(block, hidden, windows, cos, sin)
        return hidden, last_input, attention


def _block(
    block: Any, hidden: Tensor, windows: Windows, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor]:
    attended, weights = _attend(block.attn, block.norm1(hidden), windows, cos, sin)
    hidden = hidden + attended
    return hidden + block.mlp(block.norm2(hidden)), weights


def _attend(
    attention: Any, hidden: Tensor, windows: Windows, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor]:
    """Return attended patches, and the first head's weights ``[windows, length, length]``.

    The weights are float32.
    """
    heads = attention.num_heads
    query, key, value = attention.qkv(hidden).unflatten(-1, (3, heads, -1)).unbind(1)
    query, key = apply_rotary_pos_emb_vision(query, key, cos, sin)

    def by_window(patches: Tensor) -> Tensor:
        slots = patches[windows.padding[0]] if windows.padding else patches
        rows: Tensor = slots.unflatten(0, (-1, windows.length)).transpose(1, 2)
        return rows

    query, key, value = by_window(query), by_window(key), by_window(value)
    scores = (query @ key.transpose(-1, -2)).float() * attention.scaling
    if windows.padding:
        scores = scores.masked_fill(~windows.padding[1], -torch.inf)
    weights = scores.softmax(-1)
    mixed = (weights.to(value.dtype) @ value).transpose(1, 2).flatten(0, 1).flatten(-2)
    return attention.proj(mixed[windows.padding[2]] if windows.padding else mixed), weights[:, 0]


FILLER = "\n"
"""What visual tokens after the end of the caption learn."""
FILLER_WEIGHT = 0.05
SHARPNESS = 2.0  # the embeddings of digits are alike: products differ by 2 of 10
MEASURED_AT_ONCE = 32
UNSEEN = -100  # what cross-entropy leaves out


class Captions:
    """The tokens that captions consist of, with their embeddings.

    Args:
        backbone: Backbone whose language model is to read visual tokens.
        pictures: Pictures whose captions are learnt.
    """

    def __init__(self, backbone: Backbone, pictures: Sequence[WarmupPicture]) -> None:
        self.filler: int = backbone.tokenizer.encode(FILLER)[0]
        used = sorted({token for picture in pictures for token in picture.targets})
        self.vocabulary = torch.tensor([self.filler, *(t for t in used if t != self.filler)])
        self.index = {token: index for index, token in enumerate(self.vocabulary.tolist())}
        self.embeddings = backbone.model.get_input_embeddings().weight[self.vocabulary]

    def loss(self, features: Tensor, targets: Sequence[int]) -> Tensor:
        """Return cross-entropy over the vocabulary plus squared distance to the embeddings.

        Args:
            features: Visual tokens of a picture, ``[tokens, hidden]``.
            targets: Tokens of its caption; visual tokens after them learn the filler.

        Raises:
            CustosError: If there are more targets than visual tokens.
        """
        if len(targets) > len(features):
            raise CustosError(
                f"a caption of {len(targets)} tokens does not fit into {len(features)} "
                "visual tokens"
            )
        padded = [*targets, *[self.filler] * (len(features) - len(targets))]
        indices = torch.tensor([self.index[token] for token in padded])
        weights = torch.full((len(features),), FILLER_WEIGHT)
        weights[: len(targets)] = 1.0
        logits = SHARPNESS * features @ self.embeddings.T
        entropy = functional.cross_entropy(logits, indices, reduction="none")
        distance = (features - self.embeddings[indices]).square().sum(-1)
        scale = self.embeddings.square().sum(-1).mean()
        loss: Tensor = ((entropy + distance / scale) * weights).sum() / weights.sum()
        return loss

    def nearest(self, features: Tensor) -> Tensor:
        """Return the token nearest to each feature, ``[tokens]``, from ``[tokens, hidden]``."""
        return self.vocabulary[(features @ self.embeddings.T).argmax(-1)]


class Reader(nn.Module):
    """Tells facts from the patches of a visual token; used in training only.

    Args:
        width: Features of a token's patches side by side.
        pictures: Pictures with all facts that it can tell.
    """

    def __init__(self, width: int, pictures: Sequence[WarmupPicture]) -> None:
        super().__init__()
        facts = [fact for picture in pictures for fact in (*picture.facts, *picture.roles)]
        self.classes = [sorted(set(column) - {None}) for column in zip(*facts, strict=True)]
        self.linear = nn.Linear(width, sum(map(len, self.classes)))

    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        """Return logits ``[N, classes]`` for each of ``FACTS`` from features ``[N, width]``."""
        logits: Tensor = self.linear(features)
        return torch.split(logits, [len(classes) for classes in self.classes], dim=-1)

    def targets(self, facts: Sequence[Sequence[str | None]]) -> Tensor:
        """Return the class of each fact, ``[N, FACTS]`` int64; ``UNSEEN`` for none or a new one."""
        return torch.tensor(
            [
                [classes.index(fact) if fact in classes else UNSEEN for classes, fact in pairs]
                for pairs in (zip(self.classes, row, strict=True) for row in facts)
            ]
        )


class WarmupModel(nn.Module):
    """A vision tower and the reader that is trained beside it.

    Args:
        backbone: Backbone of the tower; only the tower is trained.
        pictures: Pictures to train on.
        compiled: Compile the tower's blocks for training.
    """

    def __init__(
        self, backbone: Backbone, pictures: Sequence[WarmupPicture], *, compiled: bool
    ) -> None:
        super().__init__()
        backbone.model.requires_grad_(False)
        self.tower: Any = backbone.model.model.visual.requires_grad_(True)
        config = self.tower.config
        self.reader = Reader(config.hidden_size * config.spatial_merge_size**2, pictures)
        self.captions = Captions(backbone, pictures)
        self._image_processor = backbone.processor.image_processor
        self._trained_pass = EqualPictures(self.tower, compiled=compiled)

    def loss(
        self,
        pictures: Sequence[WarmupPicture],
        pixels: Sequence[NDArray[np.uint8]],
        shifts: Sequence[Shift],
        *,
        autocast: bool,
    ) -> Tensor:
        """Return the loss of pictures of one size: captions, attention and facts.

        Args:
            pictures: Pictures.
            pixels: What the tower sees of each.
            shifts: How far that has moved.
            autocast: Compute the tower in bfloat16.
        """
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            features, patches, weights = self._trained_pass(*self._patches(pixels))
        captions = [
            self.captions.loss(feature.float(), picture.targets)
            for feature, picture in zip(features, pictures, strict=True)
        ]
        logits, targets = self._read(patches.float(), pictures, shifts)
        return (
            torch.stack(captions).mean()
            + attention_loss(weights, pictures, shifts)
            + sum(
                functional.cross_entropy(column_logits, column)
                for column_logits, column in zip(logits, targets.T, strict=True)
                if (column != UNSEEN).any()
            )
        )

    @torch.inference_mode()
    def measure(self, held_out: Sequence[WarmupPicture]) -> dict[str, Any]:
        """Return the shares of facts, caption tokens and whole captions that are right.

        Args:
            held_out: Pictures that were not trained on.

        Returns:
            ``facts`` (by fact), ``token_accuracy``, ``caption_accuracy``, ``by_kind`` (whole
            captions by kind of chart), ``n``.
        """
        forward = EqualPictures(self.tower, compiled=False)
        token_shares: list[float] = []
        whole: dict[str, list[bool]] = {}
        right: list[Tensor] = []
        seen: list[Tensor] = []
        for group in by_size(held_out):
            for start in range(0, len(group), MEASURED_AT_ONCE):
                pictures = group[start : start + MEASURED_AT_ONCE]
                features, patches, _ = forward(*self._patches([p.pixels for p in pictures]))
                logits, targets = self._read(patches, pictures, [(0, 0)] * len(pictures))
                right.append(torch.stack([column.argmax(-1) for column in logits], -1) == targets)
                seen.append(targets != UNSEEN)
                for feature, picture in zip(features, pictures, strict=True):
                    tokens = self.captions.nearest(feature[: len(picture.targets)])
                    hits = tokens == torch.tensor(picture.targets)
                    token_shares.append(hits.float().mean().item())
                    whole.setdefault(picture.kind, []).append(bool(hits.all()))
        shares = torch.cat(right).sum(0) / torch.cat(seen).sum(0)
        return {
            "facts": dict(zip(FACTS, shares.tolist(), strict=True)),
            "token_accuracy": float(np.mean(token_shares)),
            "caption_accuracy": float(np.mean([hit for hits in whole.values() for hit in hits])),
            "by_kind": {kind: float(np.mean(hits)) for kind, hits in sorted(whole.items())},
            "n": len(held_out),
        }

    def _patches(self, pixels: Sequence[NDArray[np.uint8]]) -> tuple[Tensor, Tensor]:
        """Return the patches of all pictures, and each picture's grid."""
        encoded = self._image_processor(images=list(pixels))
        return torch.as_tensor(encoded["pixel_values"]), torch.as_tensor(encoded["image_grid_thw"])

    def _read(
        self, patches: Tensor, pictures: Sequence[WarmupPicture], shifts: Sequence[Shift]
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        """Return logits of facts and the true classes, at every point and every caption token."""
        features: list[Tensor] = []
        facts: list[tuple[str | None, ...]] = []
        for tokens, picture, shift in zip(patches, pictures, shifts, strict=True):
            features += [tokens[tokens_at(picture, shift)], tokens[: len(picture.roles)]]
            facts += [*picture.facts, *picture.roles]
        return self.reader(torch.cat(features)), self.reader.targets(facts)


def attention_loss(
    weights: Tensor, pictures: Sequence[WarmupPicture], shifts: Sequence[Shift]
) -> Tensor:
    """Return how little the last block's first head looks where each caption token is shown.

    Args:
        weights: Attention weights, ``[pictures, tokens, tokens]``.
        pictures: Pictures.
        shifts: How far the contents of each have moved.
    """
    shown = np.zeros(weights.shape, dtype=np.bool_)
    for number, (picture, shift) in enumerate(zip(pictures, shifts, strict=True)):
        tokens = tokens_at(picture, shift)
        for target, sources in enumerate(picture.sources):
            shown[number, target, [tokens[source] for source in sources]] = True
    where = torch.from_numpy(shown)
    seen = (weights * where).sum(-1)[where.any(-1)]
    return -(seen + 1e-6).log().mean()
