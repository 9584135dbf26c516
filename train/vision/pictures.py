"""Drawn pictures with what is to be read from them, and where."""

from __future__ import annotations

import io
import math
import multiprocessing
import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from rich.progress import track
from torch import Tensor, nn

from data_prep.synthetic.charts.generate import CaptionedPicture, draw_captioned
from data_prep.synthetic.charts.scenes import NAME, VALUES
from judging.models.backbones import Backbone

SHIFT_PIXELS = 6
TOKEN_PIXELS = 28
FACTS = (NAME, "number", *VALUES, "to be written")
UNSEEN = -100  # what cross-entropy leaves out
POOL_FROM = 1000  # pictures; starting processes takes seconds


@dataclass(frozen=True)
class Picture:
    """A picture, the tokens its first visual tokens are to become, and what is to be read where."""

    pixels: NDArray[np.uint8]
    """``[H, W, 3]``"""
    kind: str
    targets: tuple[int, ...]
    places: tuple[tuple[float, float], ...]
    """In pixels."""
    facts: tuple[tuple[str | None, ...], ...]
    """At each place, in the order of ``FACTS``; ``None`` for what is not to be seen there."""
    roles: tuple[tuple[str | None, ...], ...]
    """For every target, what it is to say of which item; ``FACTS``, all but the last ``None``."""
    sources: tuple[tuple[int, ...], ...]
    """For every target, the places that show it."""


class Reader(nn.Module):
    """Tells facts from the patches of a visual token; used in training only.

    Args:
        width: Features of a token's patches side by side.
        pictures: Where the possible facts are taken from.
    """

    def __init__(self, width: int, pictures: Sequence[Picture]) -> None:
        super().__init__()
        found = [fact for picture in pictures for fact in (*picture.facts, *picture.roles)]
        self.known = [sorted(set(column) - {None}) for column in zip(*found, strict=True)]
        self.linear = nn.Linear(width, sum(map(len, self.known)))

    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        """Logits ``[N, facts]`` for each of ``FACTS`` from features ``[N, width]``."""
        logits: Tensor = self.linear(features)
        return torch.split(logits, [len(known) for known in self.known], dim=-1)

    def targets(self, facts: Sequence[Sequence[str | None]]) -> Tensor:
        """Class of each fact, ``[N, FACTS]`` int64; ``UNSEEN`` for none or one never met."""
        return torch.tensor(
            [
                [known.index(fact) if fact in known else UNSEEN for known, fact in pairs]
                for pairs in (zip(self.known, row, strict=True) for row in facts)
            ]
        )


def tokens_at(picture: Picture, shift: tuple[int, int]) -> list[int]:
    """The visual token over each place of a picture that was shifted to the right and down."""
    down, across = (size // TOKEN_PIXELS for size in picture.pixels.shape[:2])
    found = []
    for x, y in picture.places:
        column = min(max(int(x + shift[0]) // TOKEN_PIXELS, 0), across - 1)
        row = min(max(int(y + shift[1]) // TOKEN_PIXELS, 0), down - 1)
        found.append(row * across + column)
    return found


def by_size(pictures: Sequence[Picture]) -> list[list[Picture]]:
    """The pictures of each size together."""
    sizes = sorted({picture.pixels.shape for picture in pictures})
    return [[p for p in pictures if p.pixels.shape == size] for size in sizes]


def draw(backbone: Backbone, count: int, seed: int) -> list[Picture]:
    """Draw pictures, on all cores where there are many.

    Args:
        backbone: Whose tokens the captions are made of.
        count: How many.
        seed: Other seeds give other pictures.
    """
    return [picture_of(backbone, one) for one in track(_drawn(count, seed), "drawing", total=count)]


def _drawn(count: int, seed: int) -> Iterator[CaptionedPicture]:
    if count < POOL_FROM:
        yield from map(partial(draw_captioned, seed), range(count))
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawn) as pool:
        yield from pool.map(partial(draw_captioned, seed), range(count), chunksize=50)


def picture_of(backbone: Backbone, drawn: CaptionedPicture) -> Picture:
    """What of a drawn picture the tower learns."""
    from PIL import Image

    scene = drawn.scene
    with Image.open(io.BytesIO(drawn.png)) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    facts = {NAME: scene.names, **dict(zip(VALUES, scene.values, strict=False))}
    places = [
        {"number": position.item, **{fact: facts[fact][position.item] for fact in position.facts}}
        for position in drawn.positions
    ]
    encoded = backbone.tokenizer(scene.describe(), return_offsets_mapping=True)
    told = [(item, fact) for text, item, fact in scene.caption() for _ in text]  # by character
    said = [told[end - 1] for _, end in encoded["offset_mapping"]]
    return Picture(
        pixels,
        scene.kind,
        tuple(encoded["input_ids"]),
        tuple((position.x, position.y) for position in drawn.positions),
        tuple(
            tuple(str(shown[fact]) if fact in shown else None for fact in FACTS) for shown in places
        ),
        tuple((*[None] * (len(FACTS) - 1), f"{item} {fact}") for item, fact in said),
        tuple(
            tuple(
                number
                for number, position in enumerate(drawn.positions)
                if position.item == item and fact in position.facts
            )
            for item, fact in said
        ),
    )


def vary(
    pixels: NDArray[np.uint8], rng: random.Random
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """Shift by a few pixels (edges repeat), change brightness and contrast; say how far it moved.

    Returns:
        The picture, and by how many pixels to the right and down its contents are moved.
    """
    down, right = (rng.randint(0, 2 * SHIFT_PIXELS) for _ in range(2))
    height, width = pixels.shape[:2]
    pad = ((SHIFT_PIXELS, SHIFT_PIXELS), (SHIFT_PIXELS, SHIFT_PIXELS), (0, 0))
    moved = np.pad(pixels, pad, mode="edge")[down : down + height, right : right + width]
    contrast, brightness = math.exp(rng.gauss(0, 0.1)), rng.gauss(0, 8)
    changed = np.clip((moved - 128.0) * contrast + 128 + brightness, 0, 255)
    return np.asarray(changed, dtype=np.uint8), (SHIFT_PIXELS - right, SHIFT_PIXELS - down)
