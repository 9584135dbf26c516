"""The vision tower in its warm-up: what it learns, beside which helpers, with which losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from experiments.vision.pictures import FACTS, Shift, WarmupPicture, by_size, tokens_at
from experiments.vision.tower import EqualPictures
from judging.errors import CustosError
from judging.models.backbones import Backbone

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
