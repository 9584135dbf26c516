"""Drawn pictures, each with what it shows and where."""

from __future__ import annotations

import io
import math
import multiprocessing
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from data_prep.made.charts.drawing import ItemPosition, render_with_positions
from data_prep.made.charts.scenes import KINDS, NAME, VALUES, ChartScene, draw_scene, draw_style
from data_prep.made.words.wordings import seeded_rng
from judging.errors import CustosError
from judging.models.backbones import Backbone
from judging.models.devices import num_cores
from judging.progress import progress_over
from train.loop.batches import begin_worker

SHIFT_PIXELS = 6
TOKEN_PIXELS = 28
FACTS = (NAME, "number", *VALUES, "to be written")
"""What is to be read: the last at a token of the caption, the others at an item's points."""
POOL_FROM = 1000
"""Pictures from which on several processes draw; to start them takes seconds."""

Shift = tuple[int, int]
"""Pixels to the right and down."""


@dataclass(frozen=True)
class CaptionedPicture:
    """A picture, the scene that it shows, and where each item of the scene is to be seen."""

    png: bytes
    scene: ChartScene
    positions: list[ItemPosition]
    """In pixels from the upper left corner."""


@dataclass(frozen=True)
class WarmupPicture:
    """A picture, the tokens that its visual tokens learn, and what is to be read where."""

    pixels: NDArray[np.uint8]
    """``[H, W, 3]``"""
    kind: str
    """Kind of chart."""
    targets: tuple[int, ...]
    """Tokens of the caption; the first visual tokens learn to be their embeddings."""
    points: tuple[tuple[float, float], ...]
    """Where facts are drawn, in pixels from the left and from above."""
    facts: tuple[tuple[str | None, ...], ...]
    """At each point, in the order of ``FACTS``; ``None`` for what is not shown there."""
    roles: tuple[tuple[str | None, ...], ...]
    """For every target, which fact of which item it writes; in the order of ``FACTS``, all ``None``
    except the last."""
    sources: tuple[tuple[int, ...], ...]
    """For every target, the indices of the points that show what it writes."""


def draw_captioned(seed: int, number: int) -> CaptionedPicture:
    """Draw one picture of an endless series, to warm up a vision tower.

    Kinds of scenes take turns. The pictures are not those of ``custos prep charts``.
    """
    rng = seeded_rng(seed, "caption", number)
    scene = draw_scene(rng, list(KINDS.values())[number % len(KINDS)])
    png, positions = render_with_positions(scene, draw_style(rng))
    return CaptionedPicture(png, scene, positions)


def draw(backbone: Backbone, count: int, seed: int) -> list[WarmupPicture]:
    """Draw pictures, on all cores where there are many.

    Args:
        backbone: Its tokenizer splits the captions into tokens.
        count: Number of pictures.
        seed: Other seeds give other pictures.
    """
    drawings = progress_over(_captioned(count, seed), "drawing", count)
    return [make_picture(backbone, drawing) for drawing in drawings]


def make_picture(backbone: Backbone, drawing: CaptionedPicture) -> WarmupPicture:
    """Return what the tower learns of a drawing."""
    from PIL import Image

    scene = drawing.scene
    with Image.open(io.BytesIO(drawing.png)) as image:
        pixels = np.asarray(image.convert("RGB"))
    values = {NAME: scene.names, **dict(zip(VALUES, scene.values, strict=False))}
    points = [
        {"number": point.item, **{fact: values[fact][point.item] for fact in point.facts}}
        for point in drawing.positions
    ]
    encoded = backbone.tokenizer(scene.describe(), return_offsets_mapping=True)
    roles_by_character = [(item, fact) for text, item, fact in scene.caption() for _ in text]
    roles = [roles_by_character[end - 1] for _, end in encoded["offset_mapping"]]
    return WarmupPicture(
        pixels,
        scene.kind,
        targets=tuple(encoded["input_ids"]),
        points=tuple((point.x, point.y) for point in drawing.positions),
        facts=tuple(
            tuple(str(point[fact]) if fact in point else None for fact in FACTS) for point in points
        ),
        roles=tuple((*[None] * (len(FACTS) - 1), f"{item} {fact}") for item, fact in roles),
        sources=tuple(
            tuple(
                number
                for number, point in enumerate(drawing.positions)
                if point.item == item and fact in point.facts
            )
            for item, fact in roles
        ),
    )


def by_size(pictures: Sequence[WarmupPicture]) -> list[list[WarmupPicture]]:
    """Return the pictures grouped by size."""
    sizes = sorted({picture.pixels.shape for picture in pictures})
    return [[p for p in pictures if p.pixels.shape == size] for size in sizes]


def tokens_at(picture: WarmupPicture, shift: Shift) -> list[int]:
    """Return the visual token over each point of a picture that was shifted."""
    rows, columns = (size // TOKEN_PIXELS for size in picture.pixels.shape[:2])
    tokens = []
    for x, y in picture.points:
        column = min(max(int(x + shift[0]) // TOKEN_PIXELS, 0), columns - 1)
        row = min(max(int(y + shift[1]) // TOKEN_PIXELS, 0), rows - 1)
        tokens.append(row * columns + column)
    return tokens


def vary(pixels: NDArray[np.uint8], rng: random.Random) -> tuple[NDArray[np.uint8], Shift]:
    """Shift a picture by a few pixels (edges repeat) and change its brightness and contrast.

    Returns:
        The picture, and how far its contents have moved.
    """
    down, right = (rng.randint(0, 2 * SHIFT_PIXELS) for _ in range(2))
    height, width = pixels.shape[:2]
    pad = ((SHIFT_PIXELS, SHIFT_PIXELS), (SHIFT_PIXELS, SHIFT_PIXELS), (0, 0))
    moved = np.pad(pixels, pad, mode="edge")[down : down + height, right : right + width]
    contrast, brightness = math.exp(rng.gauss(0, 0.1)), rng.gauss(0, 8)
    changed = np.clip((moved - 128.0) * contrast + 128 + brightness, 0, 255)
    return np.asarray(changed, dtype=np.uint8), (SHIFT_PIXELS - right, SHIFT_PIXELS - down)


def _captioned(count: int, seed: int) -> Iterator[CaptionedPicture]:
    if count < POOL_FROM:
        yield from map(partial(draw_captioned, seed), range(count))
        return
    spawn = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(num_cores(), spawn, begin_worker) as pool:
            yield from pool.map(partial(draw_captioned, seed), range(count), chunksize=50)
    except BrokenProcessPool:
        raise CustosError(
            "a process that draws pictures was killed, as happens when memory is full"
        ) from None
