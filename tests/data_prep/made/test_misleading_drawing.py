"""Drawn charts: the pixels of a manipulated chart mislead, those of an honest chart do not."""

import io
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from scipy import ndimage

from data_prep.made.misleading_charts import FAMILIES, POP_RADIUS, SHAPE_3D, Family, MisleadingChart
from data_prep.made.misleading_drawing import COLOURS, DARK, render

Pixels = npt.NDArray[np.uint8]


def made(kind: str, manipulation: str, seed: int = 0) -> tuple[Family, MisleadingChart]:
    [family] = [f for f in FAMILIES if (f.kind, f.manipulation) == (kind, manipulation)]
    return family, family.make(Random(seed))


def pixels(family: Family, chart: MisleadingChart, manipulated: bool) -> Pixels:
    with Image.open(io.BytesIO(render(family, chart, manipulated))) as picture:
        assert picture.size == (640, 480)
        return np.asarray(picture.convert("RGB"))


def where(picture: Pixels, colour: str, brightness: float = 1.0) -> npt.NDArray[np.bool_]:
    parts = [brightness * int(colour[start : start + 2], 16) for start in (1, 3, 5)]
    return np.asarray(abs(picture.astype(float) - parts).max(axis=-1) <= 2)


def pie(family: Family, chart: MisleadingChart, manipulated: bool) -> Pixels:
    """The picture left of the legend."""
    return pixels(family, chart, manipulated)[:, :454]


def versions(family: Family, chart: MisleadingChart) -> Iterator[tuple[Pixels, Any]]:
    """Both pictures of a chart, with what each suggests."""
    yield pixels(family, chart, False), chart.answer
    yield pixels(family, chart, True), chart.misled


def blobs(picture: Pixels, colour: str = COLOURS[0]) -> list[npt.NDArray[np.bool_]]:
    """Connected parts of a colour, from left to right."""
    labels, count = ndimage.label(where(picture, colour))
    parts = [np.asarray(labels == number) for number in range(1, count + 1)]
    return sorted((p for p in parts if p.sum() > 15), key=lambda p: p.any(axis=0).argmax())


def heights(picture: Pixels) -> list[int]:
    return [int(part.any(axis=1).sum()) for part in blobs(picture)]


def test_a_cut_axis_shows_the_misled_ratio_and_a_whole_one_the_truth() -> None:
    family, chart = made("bar", "truncated y-axis")
    values = next(iter(chart.values.values()))
    assert isinstance(chart.answer, float) and isinstance(chart.misled, float)
    amount = chart.answer * values[0] / values[-1]
    for manipulated, ratio in ((False, chart.answer), (True, chart.misled)):
        visible = heights(pixels(family, chart, manipulated))
        assert visible[-1] / visible[0] == pytest.approx(ratio / amount, rel=0.06)


def test_a_compressed_axis_flattens() -> None:
    family, chart = made("bar", "compressed y-axis", 1)
    rise = [np.ptp(heights(pixels(family, chart, manipulated))) for manipulated in (False, True)]
    assert rise[0] > 4 * rise[1] > 0


def test_pictures_grow_with_the_square() -> None:
    family, chart = made("bar", "pictorial bars", 1)
    values = next(iter(chart.values.values()))
    areas = [int(part.sum()) for part in blobs(pixels(family, chart, True))]
    assert areas[-1] / areas[0] == pytest.approx((values[-1] / values[0]) ** 2, rel=0.05)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_near_bar_towers_and_the_wall_tells_the_truth(seed: int) -> None:
    family, chart = made("bar", "3D effect", seed)
    values = next(iter(chart.values.values()))
    parts = blobs(pixels(family, chart, True))
    middles = [int(np.median(np.flatnonzero(part.any(axis=0)))) for part in parts]
    visible = [int(part[:, middle].sum()) for part, middle in zip(parts, middles, strict=True)]
    assert chart.labels[int(np.argmax(visible))] == chart.misled
    # Undo the perspective: sizes on the wall shrink evenly across the page.
    shrink = np.polyfit([0, 1], [1, 0.45], 1)
    left, right = 0.14 + 0.74 * 0.08 / 1.1, 0.14 + 0.74 * 1.08 / 1.1
    across = (np.array(middles) / 640 - left) / (right - left)
    true_size = np.array(visible) / np.polyval(shrink, across)
    assert true_size / true_size[0] == pytest.approx(np.array(values) / values[0], rel=0.03)


def test_a_tilted_pie_gives_its_front_more_room() -> None:
    family, chart = made("pie", "3D effect")
    [shares] = chart.values.values()
    for manipulated in (False, True):
        picture = pie(family, chart, manipulated)
        tops = np.array([where(picture, colour).sum() for colour in COLOURS])
        sides = np.array([where(picture, colour, DARK).sum() for colour in COLOURS])
        assert 100 * tops / tops.sum() == pytest.approx(shares, abs=0.7)
        order = [chart.labels[number] for number in np.argsort(-(tops + sides))]
        assert tuple(order) == (chart.misled if manipulated else chart.answer)
        pie_pixels = np.any([where(picture, colour) for colour in COLOURS], axis=0)
        wide, high = (np.ptp(np.flatnonzero(pie_pixels.any(axis=axis))) for axis in (0, 1))
        assert high / wide == pytest.approx(SHAPE_3D if manipulated else 1, abs=0.02)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_slice_pulled_to_the_front_of_a_tilted_pie_takes_more_room(seed: int) -> None:
    """As published, it is tilted and pops out; angles still tell the shares."""
    family, chart = made("pie", "3D effect + pop out", seed)
    [shares] = chart.values.values()
    flat = np.array([where(pie(family, chart, False), colour).sum() for colour in COLOURS])
    assert 100 * flat / flat.sum() == pytest.approx(shares, abs=0.7)
    picture = pie(family, chart, True)
    tops = np.array([where(picture, colour).sum() for colour in COLOURS], dtype=float)
    sides = np.array([where(picture, colour, DARK).sum() for colour in COLOURS])
    assert sides[0] > 0, "the popped slice shows its wall"
    order = [chart.labels[number] for number in np.argsort(-(tops + sides))]
    assert tuple(order) == chart.misled
    tops[0] /= POP_RADIUS**2
    assert 100 * tops / tops.sum() == pytest.approx(shares, abs=1.0)
    rows = [np.nonzero(where(picture, colour))[0].mean() for colour in COLOURS]
    assert rows[0] == max(rows), "it lies in front"


def line_ends(picture: Pixels, colour: str = COLOURS[0]) -> tuple[float, float]:
    """Rows of the first and last point of a line."""
    columns = np.flatnonzero(where(picture, colour)[80:400, 100:560].any(axis=0)) + 100
    rows = [
        float(np.flatnonzero(where(picture, colour)[80:400, c]).mean()) for c in columns[[1, -2]]
    ]
    return rows[0], rows[1]


@pytest.mark.parametrize("manipulation", ["inverted y-axis", "inconsistent x-axis"])
def test_an_axis_that_runs_the_other_way_turns_the_line_over(manipulation: str) -> None:
    family, chart = made("line", manipulation)
    for picture, answer in versions(family, chart):
        first, last = line_ends(picture)
        assert chart.choices[0 if last < first else 1] == answer  # rows count downwards


def test_two_axes_put_the_smaller_series_on_top() -> None:
    family, chart = made("line", "dual axes", 0)
    first, second = chart.values
    for picture, answer in versions(family, chart):
        level = {
            name: np.flatnonzero(where(picture, colour)[80:300, 150:500].any(axis=1)).mean()
            for name, colour in ((first, COLOURS[0]), (second, COLOURS[3]))
        }
        assert min(level, key=level.__getitem__) == answer


@pytest.mark.parametrize("seed", [0, 1])
def test_swapped_ends_turn_the_direction_over(seed: int) -> None:
    family, chart = made("scatter", "swapped axis", seed)
    for picture, answer in versions(family, chart):
        points = blobs(picture)
        assert len(points) == 5
        rows = [np.argwhere(part)[:, 0].mean() for part in points]
        assert chart.choices[0 if rows[-1] < rows[0] else 1] == answer


def test_a_logarithmic_axis_moves_the_growth_to_the_front() -> None:
    family, chart = made("scatter", "logarithmic y-axis")
    for picture, answer in versions(family, chart):
        points = blobs(picture)
        rows = [np.argwhere(part)[:, 0].mean() for part in points]
        event = np.argmin([abs(np.argwhere(p)[:, 1].mean() - 90 - 474 * 3.4 / 8.8) for p in points])
        before, after = rows[0] - rows[event], rows[event] - rows[-1]
        assert chart.choices[0 if before > after else 1] == answer


def test_an_inverted_scale_darkens_the_region_with_less() -> None:
    family, chart = made("map", "inverted color scale", 0)
    [values] = chart.values.values()
    regions = [chart.labels.index(name) for name in chart.choices]
    darkness: dict[bool, list[float]] = {}
    for manipulated in (False, True):
        picture = pixels(family, chart, manipulated)
        # Regions lie on a jittered grid of 4 x 3; a spot between their name and their edge.
        axes_width = 0.74 * 0.85 * 0.95
        darkness[manipulated] = []
        for number in regions:
            column, row = number % 4, number // 4
            x = int(640 * (0.14 + axes_width * (0.09 + 0.82 * (column + 0.5) / 4)))
            y = int(480 * (1 - (0.13 + 0.76 * (0.08 + 0.84 * (row + 0.5) / 3)))) + 22
            darkness[manipulated].append(255.0 - float(picture[y, x].mean()))
    for manipulated, answer in ((False, chart.answer), (True, chart.misled)):
        assert chart.choices[int(np.argmax(darkness[manipulated]))] == answer
