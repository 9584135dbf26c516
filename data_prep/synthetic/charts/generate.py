"""Stream labelled examples about pictures; labels hold by construction."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from data_prep.synthetic.charts.drawing import ItemPosition, render, render_with_positions
from data_prep.synthetic.charts.rows import (
    TWIN_SHARE,
    PlannedRow,
    RowStream,
    draw_group,
    rows_of_group,
)
from data_prep.synthetic.charts.scenes import KINDS, ChartScene, draw_scene
from data_prep.synthetic.charts.styles import draw_style
from data_prep.synthetic.pictures import picture_path
from data_prep.synthetic.seeds import seeded_rng
from data_prep.synthetic.words import WordingSplit
from judging.types import LabelledExample


@dataclass(frozen=True)
class ChartRow:
    """An example and the picture that its one image path, ``images/<hash>.png``, names."""

    example: LabelledExample
    png: bytes | None
    """``None`` where the question says what the picture shows; the example has no image then."""


@dataclass(frozen=True)
class CaptionedPicture:
    """A picture, the scene that it shows, and where each item of the scene is to be seen."""

    png: bytes
    scene: ChartScene
    positions: list[ItemPosition]
    """In pixels from the upper left corner."""


def generate_rows(
    num_rows: int,
    seed: int,
    wordings: WordingSplit,
    twins: float = TWIN_SHARE,
    name: str = "charts",
) -> Iterator[ChartRow]:
    """Stream labelled examples for the task ``hieval-ea`` with their pictures.

    Row ``i`` depends on the other arguments and ``i`` alone. Every four consecutive rows are a
    group: they ask about one picture, or about two that a twin or contrast sets side by side.

    Args:
        num_rows: How many examples to draw.
        seed: Any integer.
        wordings: Wordings of questions and responses: those of training data, of test data, or all.
        twins: Share of groups, from 0 to 1, that begin with a twin.
        name: Begins every id; other names give other rows.
    """
    return draw_pictures(plan_rows(num_rows, seed, wordings, twins, name))


def draw_pictures(planned: Iterable[PlannedRow]) -> Iterator[ChartRow]:
    """Add the pictures to rows; neighbouring rows about one picture share a drawing."""
    render_once = lru_cache(maxsize=2)(render)
    for row in planned:
        png = render_once(row.scene, row.style)
        yield ChartRow(row.example.model_copy(update={"images": (picture_path(png),)}), png)


def write_captions(planned: Iterable[PlannedRow]) -> Iterator[ChartRow]:
    """Put a caption of each picture into the question instead: the same task for a text reader.

    A small judge learns from such rows to compare a response with given data, and goes on from
    there to pictures. Started on pictures, it did not learn it (docs/error-analysis.md).
    """
    for row in planned:
        example = row.example
        question = f"Picture: {row.scene.describe()}. {example.question}"
        yield ChartRow(example.model_copy(update={"question": question}), None)


def plan_rows(
    num_rows: int,
    seed: int,
    wordings: WordingSplit,
    twins: float = TWIN_SHARE,
    name: str = "charts",
) -> Iterator[PlannedRow]:
    """Stream the rows of ``generate_rows`` without drawing anything."""
    stream = RowStream(name, seed, wordings, twins)
    rows = (row for number in itertools.count() for row in rows_of_group(stream, number))
    return itertools.islice(rows, num_rows)


def plan_twins(
    num_rows: int, seed: int, wordings: WordingSplit, kinds: Collection[str] = tuple(KINDS)
) -> Iterator[PlannedRow]:
    """Stream twins alone, two rows each: no reader of their text can tell them apart.

    Args:
        num_rows: How many examples to draw.
        seed: Any integer.
        wordings: As for ``generate_rows``.
        kinds: Only twins about these kinds of scenes.
    """
    stream = RowStream("twins", seed, wordings, 1.0)
    groups = (draw_group(stream, number) for number in itertools.count())
    rows = (
        PlannedRow(row, scene, group.style)
        for group in groups
        if group.kind.name in kinds
        for row, scene in zip(group.shared_rows, group.scenes, strict=True)
    )
    return itertools.islice(rows, num_rows)


def draw_captioned(seed: int, number: int) -> CaptionedPicture:
    """Draw one picture of an endless series, to warm up a vision tower.

    Kinds of scenes take turns. The pictures are not those of ``generate_rows``.
    """
    rng = seeded_rng(seed, "caption", number)
    kind = list(KINDS.values())[number % len(KINDS)]
    scene = draw_scene(rng, kind)
    png, positions = render_with_positions(scene, draw_style(rng))
    return CaptionedPicture(png, scene, positions)
