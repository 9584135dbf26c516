"""Pictures of scenes, and the positions of what they show."""

import io
from collections import Counter
from random import Random

import numpy as np
import pytest
from PIL import Image

from data_prep.made.charts.drawing import render
from data_prep.made.charts.rows import draw_captioned
from data_prep.made.charts.scenes import KINDS, NAME, SIZES, VALUES, draw_scene, draw_style


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_are_small_and_repeat_exactly(kind: str) -> None:
    assert all(width % 28 == height % 28 == 0 for width, height in SIZES)
    rng = Random(kind)
    scene, style = draw_scene(rng, KINDS[kind]), draw_style(rng)
    png = render(scene, style)
    assert png == render(scene, style)
    assert len(png) < 8000
    with Image.open(io.BytesIO(png)) as picture:
        assert (picture.format, picture.size) == ("PNG", (style.width, style.height))


@pytest.mark.parametrize("kind", KINDS)
def test_items_stand_where_something_is_drawn(kind: str) -> None:
    for number in range(list(KINDS).index(kind), 5 * len(KINDS), len(KINDS)):
        captioned = draw_captioned(4, number)
        with Image.open(io.BytesIO(captioned.png)) as picture:
            pixels = np.asarray(picture.convert("L"), dtype=int)
        names = Counter(position.item for position in captioned.positions if NAME in position.facts)
        for fact in (NAME, *VALUES[: len(captioned.scene.values)]):
            items = {position.item for position in captioned.positions if fact in position.facts}
            assert items == set(range(len(captioned.scene.names)))
        if kind == "counting":
            assert [names[item] for item in sorted(names)] == list(captioned.scene.values[0])
        for x, y in ((position.x, position.y) for position in captioned.positions):
            assert 0 <= x < pixels.shape[1]
            assert 0 <= y < pixels.shape[0]
            around = pixels[max(0, int(y) - 14) : int(y) + 14, max(0, int(x) - 14) : int(x) + 14]
            assert np.ptp(around) > 30, "nothing but paper there"
