"""Pairs of charts: truth from the data, what a deceived reader sees from the pixels."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from scipy import ndimage

from benchmarks.chartom.benchmark import acceptable_interval, hmi
from benchmarks.framework.base import get_benchmark
from data_prep.synthetic.misleading_charts.drawing import COLOURS, DARK, render
from data_prep.synthetic.misleading_charts.export import make_pairs, write_pairs
from data_prep.synthetic.misleading_charts.families import (
    FAMILIES,
    POP_RADIUS,
    SHAPE_3D,
    Family,
    Scene,
)

CHARTOM = get_benchmark("chartom")
PUBLISHED = {
    name: (float(str(row[1])), float(str(row[3])))
    for name, row in CHARTOM.published[0].rows.items()
}
ELEVEN = {
    *("inconsistent x-axis", "inverted y-axis", "dual axes", "truncated y-axis"),
    *("compressed y-axis", "3D effect", "pictorial bars", "swapped axis"),
    *("logarithmic y-axis", "inverted color scale", "pop out"),
}
SEEDS = range(20)

Pixels = npt.NDArray[np.uint8]


def family(kind: str, manipulation: str) -> Family:
    [found] = [f for f in FAMILIES if (f.kind, f.manipulation) == (kind, manipulation)]
    return found


def scenes(found: Family, seeds: Sequence[int] = SEEDS) -> list[Scene]:
    return [found.make(Random(seed)) for seed in seeds]


def write(out: Path, num_pairs: int, seed: int = 0) -> list[dict[str, Any]]:
    pairs = make_pairs(num_pairs, seed)
    write_pairs(out, pairs, PUBLISHED, source={"seed": seed}, command="custos prep chartom")
    return [json.loads(line) for line in (out / "items.jsonl").open()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All families once."""
    out = tmp_path_factory.mktemp("chartom")
    write(out, len(FAMILIES), seed=5)
    return out


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, Any]]:
    return CHARTOM.load(str(folder))


def test_all_kinds_manipulations_and_questions_occur(rows: list[dict[str, Any]]) -> None:
    assert {row["manipulation"] for row in rows} == ELEVEN | {""}
    assert {row["kind"] for row in rows} == {"line", "bar", "pie", "scatter", "map"}
    assert {row["question_type"] for row in rows} == {"choice", "ranking", "number"}
    for found in FAMILIES:
        kind, _, manipulation, _ = CHARTOM.published[0].rows[found.like]
        assert kind == found.kind
        assert str(manipulation).endswith(found.manipulation)  # G14 tilts its pie as well


def test_both_charts_of_a_pair_share_data_question_and_answer(rows: list[dict[str, Any]]) -> None:
    own = {"id", "manipulation", "image", "images", "strategies", "alternatives", "hmi"}
    for original, manipulated in zip(rows[::2], rows[1::2], strict=True):
        assert manipulated["id"] == original["id"].replace("_1", "_2")
        shared = [
            {key: value for key, value in row.items() if key not in own | {"hmi_source"}}
            for row in (original, manipulated)
        ]
        assert shared[0] == shared[1]
        pictures = [Path(row["images"][0]).read_bytes() for row in (original, manipulated)]
        assert pictures[0] != pictures[1]


def test_mind_targets_are_the_published_ones_and_say_so(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        pair, version = row["hmi_source"].removeprefix("published: ").rsplit("_", 1)
        assert row["hmi"] == PUBLISHED[pair][int(version) - 1]
        assert row["id"].endswith(version)


# Truth again, from the data alone and by other means than the families use.


def truth(found: Family, scene: Scene) -> Any:
    columns = list(scene.values.values())
    if scene.question_type == "number":
        amount = next(
            int(word) for word in scene.question.split() if len(word) == 1 != word.isalpha()
        )
        return columns[0][-1] / columns[0][0] * amount
    if scene.question_type == "ranking":
        return tuple(
            name for _, name in sorted(zip(columns[0], scene.labels, strict=True), reverse=True)
        )
    by_name = dict(zip(scene.labels, columns[0], strict=True))
    if found.manipulation == "inverted y-axis":
        return scene.choices[0 if np.polyfit(range(6), columns[0], 1)[0] > 0 else 1]
    if found.manipulation == "inconsistent x-axis":
        years = list(map(int, scene.labels))
        slopes = [
            np.polyfit(years[part], columns[0][part], 1)[0] for part in (slice(4), slice(3, 7))
        ]
        sign = 0 if math.isclose(*slopes) else int(np.sign(slopes[1] - slopes[0]))
        return scene.choices[{-1: 0, 1: 1, 0: 2}[sign]]
    if found.manipulation == "dual axes":
        year = next(label for label in scene.labels if f"in {label}?" in scene.question)
        return max(scene.values, key=lambda name: scene.values[name][scene.labels.index(year)])
    if found.manipulation == "3D effect":
        best = [label for label, value in by_name.items() if value == max(by_name.values())]
        return best[0] if len(best) == 1 else f"{best[0]} and {best[1]} were the same."
    if found.manipulation == "swapped axis":
        return scene.labels[int(np.argmax(columns[1]))]
    if found.manipulation == "logarithmic y-axis":
        rises = np.diff(columns[0])
        return scene.choices[0 if rises[:3].sum() > rises[3:].sum() else 1]
    return max(scene.choices, key=by_name.__getitem__)


@pytest.mark.parametrize("found", FAMILIES, ids=lambda f: f"{f.kind} {f.manipulation}")
def test_the_answer_is_the_datas_and_the_deceived_one_is_not(found: Family) -> None:
    for scene in scenes(found):
        assert scene.answer == pytest.approx(truth(found, scene))
        assert scene.misled != scene.answer
        if scene.question_type == "choice":
            assert {scene.answer, scene.misled} <= set(scene.choices)
        if scene.question_type == "ranking":
            assert isinstance(scene.misled, tuple) and isinstance(scene.answer, tuple)
            assert sorted(scene.misled) == sorted(scene.answer)


@pytest.mark.parametrize("found", FAMILIES, ids=lambda f: f"{f.kind} {f.manipulation}")
def test_rules_accept_the_answer_and_no_other_strategy(found: Family) -> None:
    for scene in scenes(found):
        row = {
            "id": "P_2", "kind": found.kind, "question": scene.question, "unit": scene.unit,
            "question_type": scene.question_type, "choices": scene.choices, "answer": scene.answer,
        }  # fmt: skip
        for answer, is_right in (
            (scene.answer, True),
            (scene.misled, False),
            (scene.skimming, False),
        ):
            if answer is None:
                continue
            said = " > ".join(answer) if isinstance(answer, tuple) else str(answer)
            graded = CHARTOM.graded({**row, "fact_response": f"The answer is {said}"}, [])
            assert graded["fact_correct"] is is_right, (scene, said)


def test_no_strategy_but_the_right_one_is_acceptable_from_people() -> None:
    for found in FAMILIES:
        for scene in scenes(found):
            if isinstance(scene.answer, float):
                assert isinstance(scene.misled, float) and scene.skimming is not None
                others = [scene.misled, scene.skimming]
                low, high = acceptable_interval(scene.answer, others)
                assert low < scene.answer < high
                assert not any(low < other < high for other in others)


def test_hmi_of_made_up_human_answers(folder: Path, tmp_path: Path) -> None:
    """Ten people: six right, three misled, one silent; on originals nobody is misled."""
    given = CHARTOM.load(str(folder))
    asked = []
    for row in given:
        said = [row["answer"]] * 6 + [row["strategies"].get("misled", row["answer"])] * 3 + [None]
        asked.append({**row, "human_answers": said})
    (tmp_path / "items.json").write_text(json.dumps(asked))
    loaded = CHARTOM.load(str(tmp_path / "items.json"))
    assert [row["hmi"] for row in loaded] == [0.1, 0.4] * len(FAMILIES)
    number = next(row for row in asked if row["question_type"] == "number")
    pair = [row for row in asked if row["id"][:-1] == number["id"][:-1]]
    alternatives = [value for row in pair for value in row["alternatives"]]
    assert hmi([pair[1]["strategies"]["misled"]], number["answer"], alternatives) == 1


# What the eye sees, from pixels.


def pixels(found: Family, scene: Scene, manipulated: bool) -> Pixels:
    with Image.open(io.BytesIO(render(found, scene, manipulated))) as picture:
        assert picture.size == (640, 480)
        return np.asarray(picture.convert("RGB"))


def where(picture: Pixels, colour: str, brightness: float = 1.0) -> npt.NDArray[np.bool_]:
    wanted = [brightness * int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return np.asarray(abs(picture.astype(float) - wanted).max(axis=-1) <= 2)


def pie(found: Family, scene: Scene, manipulated: bool) -> Pixels:
    """Left of the legend."""
    return pixels(found, scene, manipulated)[:, :454]


def blobs(picture: Pixels, colour: str = COLOURS[0]) -> list[npt.NDArray[np.bool_]]:
    """Connected parts of a colour, from left to right."""
    labels, count = ndimage.label(where(picture, colour))
    parts = [np.asarray(labels == number) for number in range(1, count + 1)]
    return sorted((p for p in parts if p.sum() > 15), key=lambda p: p.any(axis=0).argmax())


def heights(picture: Pixels) -> list[int]:
    return [int(part.any(axis=1).sum()) for part in blobs(picture)]


@pytest.mark.parametrize("seed", range(2))
def test_a_cut_axis_shows_the_misled_ratio_and_a_whole_one_the_truth(seed: int) -> None:
    found = family("bar", "truncated y-axis")
    scene = found.make(Random(seed))
    values = next(iter(scene.values.values()))
    assert isinstance(scene.answer, float) and isinstance(scene.misled, float)
    amount = scene.answer * values[0] / values[-1]
    for manipulated, ratio in ((False, scene.answer), (True, scene.misled)):
        seen = heights(pixels(found, scene, manipulated))
        assert seen[-1] / seen[0] == pytest.approx(ratio / amount, rel=0.06)


def test_a_compressed_axis_flattens() -> None:
    found = family("bar", "compressed y-axis")
    scene = found.make(Random(1))
    rise = [np.ptp(heights(pixels(found, scene, manipulated))) for manipulated in (False, True)]
    assert rise[0] > 4 * rise[1] > 0


def test_pictures_grow_with_the_square() -> None:
    found = family("bar", "pictorial bars")
    scene = found.make(Random(1))
    values = next(iter(scene.values.values()))
    areas = [int(part.sum()) for part in blobs(pixels(found, scene, True))]
    assert areas[-1] / areas[0] == pytest.approx((values[-1] / values[0]) ** 2, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_the_near_bar_towers_and_the_wall_tells_the_truth(seed: int) -> None:
    found = family("bar", "3D effect")
    scene = found.make(Random(seed))
    values = next(iter(scene.values.values()))
    parts = blobs(pixels(found, scene, True))
    middles = [int(np.median(np.flatnonzero(part.any(axis=0)))) for part in parts]
    seen = [int(part[:, middle].sum()) for part, middle in zip(parts, middles, strict=True)]
    assert scene.labels[int(np.argmax(seen))] == scene.misled
    # Undo the perspective: sizes on the wall shrink evenly across the page.
    shrink = np.polyfit([0, 1], [1, 0.45], 1)
    left, right = 0.14 + 0.74 * 0.08 / 1.1, 0.14 + 0.74 * 1.08 / 1.1
    across = (np.array(middles) / 640 - left) / (right - left)
    true_size = np.array(seen) / np.polyval(shrink, across)
    assert true_size / true_size[0] == pytest.approx(np.array(values) / values[0], rel=0.03)


@pytest.mark.parametrize("seed", range(2))
def test_a_tilted_pie_gives_its_front_more_room(seed: int) -> None:
    found = family("pie", "3D effect")
    scene = found.make(Random(seed))
    [shares] = scene.values.values()
    for manipulated in (False, True):
        picture = pie(found, scene, manipulated)
        tops = np.array([where(picture, colour).sum() for colour in COLOURS])
        sides = np.array([where(picture, colour, DARK).sum() for colour in COLOURS])
        assert 100 * tops / tops.sum() == pytest.approx(shares, abs=0.7)
        order = [scene.labels[number] for number in np.argsort(-(tops + sides))]
        assert tuple(order) == (scene.misled if manipulated else scene.answer)
        shown = np.any([where(picture, colour) for colour in COLOURS], axis=0)
        wide, high = (np.ptp(np.flatnonzero(shown.any(axis=axis))) for axis in (0, 1))
        assert high / wide == pytest.approx(SHAPE_3D if manipulated else 1, abs=0.02)


def test_a_popped_out_slice_takes_more_room_at_the_same_angle() -> None:
    found = family("pie", "pop out")
    scene = found.make(Random(2))
    [shares] = scene.values.values()
    picture = pie(found, scene, True)
    areas = np.array([where(picture, colour).sum() for colour in COLOURS], dtype=float)
    order = [scene.labels[number] for number in np.argsort(-areas)]
    assert tuple(order) == scene.misled
    areas[0] /= POP_RADIUS**2
    assert 100 * areas / areas.sum() == pytest.approx(shares, abs=0.7)


def line_ends(picture: Pixels, colour: str = COLOURS[0]) -> tuple[float, float]:
    """Rows of the first and last point of a line."""
    columns = np.flatnonzero(where(picture, colour)[80:400, 100:560].any(axis=0)) + 100
    rows = [
        float(np.flatnonzero(where(picture, colour)[80:400, c]).mean()) for c in columns[[1, -2]]
    ]
    return rows[0], rows[1]


@pytest.mark.parametrize("seed", range(2))
def test_an_inverted_axis_turns_the_line_over(seed: int) -> None:
    found = family("line", "inverted y-axis")
    scene = found.make(Random(seed))
    for manipulated, answer in ((False, scene.answer), (True, scene.misled)):
        first, last = line_ends(pixels(found, scene, manipulated))
        assert scene.choices[0 if last < first else 1] == answer  # rows count downwards


def test_uneven_years_get_even_room() -> None:
    found = family("line", "inconsistent x-axis")
    for seed in range(2):
        scene = found.make(Random(seed))
        for manipulated, answer in ((False, scene.answer), (True, scene.misled)):
            picture = pixels(found, scene, manipulated)
            line = where(picture, COLOURS[0])
            columns = np.flatnonzero(line.any(axis=0))
            left, right = columns[6], columns[-6]
            years = np.array(list(map(int, scene.labels)))
            share = 3 / 6 if manipulated else (years[3] - years[0]) / (years[6] - years[0])
            bend = int(left + share * (right - left))
            rows = [np.flatnonzero(line[:, c]).mean() for c in (left + 4, bend, right - 4)]
            slopes = [(rows[0] - rows[1]) / (bend - left), (rows[1] - rows[2]) / (right - bend)]
            close = abs(slopes[0] - slopes[1]) < 0.12 * max(slopes)
            assert scene.choices[2 if close else int(slopes[1] > slopes[0])] == answer


def test_two_axes_put_the_smaller_series_on_top() -> None:
    found = family("line", "dual axes")
    scene = found.make(Random(0))
    first, second = scene.values
    for manipulated, answer in ((False, scene.answer), (True, scene.misled)):
        picture = pixels(found, scene, manipulated)
        level = {
            name: np.flatnonzero(where(picture, colour)[80:300, 150:500].any(axis=1)).mean()
            for name, colour in ((first, COLOURS[0]), (second, COLOURS[3]))
        }
        assert min(level, key=level.__getitem__) == answer


@pytest.mark.parametrize("seed", range(2))
def test_swapped_axes_put_another_point_on_top(seed: int) -> None:
    found = family("scatter", "swapped axis")
    scene = found.make(Random(seed))
    cause, effect = scene.values.values()
    for manipulated, answer, across in ((False, scene.answer, cause), (True, scene.misled, effect)):
        points = blobs(pixels(found, scene, manipulated))
        assert len(points) == 5
        names = sorted(scene.labels, key=lambda name: across[scene.labels.index(name)])
        tops = [part.any(axis=1).argmax() for part in points]
        assert names[int(np.argmin(tops))] == answer


@pytest.mark.parametrize("seed", range(2))
def test_a_logarithmic_axis_moves_the_growth_to_the_front(seed: int) -> None:
    found = family("scatter", "logarithmic y-axis")
    scene = found.make(Random(seed))
    for manipulated, answer in ((False, scene.answer), (True, scene.misled)):
        points = blobs(pixels(found, scene, manipulated))
        rows = [np.argwhere(part)[:, 0].mean() for part in points]
        event = np.argmin([abs(np.argwhere(p)[:, 1].mean() - 90 - 474 * 3.4 / 8.8) for p in points])
        before, after = rows[0] - rows[event], rows[event] - rows[-1]
        assert scene.choices[0 if before > after else 1] == answer


def test_an_inverted_scale_darkens_the_region_with_less() -> None:
    found = family("map", "inverted color scale")
    scene = found.make(Random(0))
    [values] = scene.values.values()
    asked = [scene.labels.index(name) for name in scene.choices]
    darkness: dict[bool, list[float]] = {}
    for manipulated in (False, True):
        picture = pixels(found, scene, manipulated)
        # Regions lie on a jittered grid of 4 x 3; a spot between their name and their edge.
        axes_width = 0.74 * 0.85 * 0.95
        darkness[manipulated] = []
        for number in asked:
            column, row = number % 4, number // 4
            x = int(640 * (0.14 + axes_width * (0.09 + 0.82 * (column + 0.5) / 4)))
            y = int(480 * (1 - (0.13 + 0.76 * (0.08 + 0.84 * (row + 0.5) / 3)))) + 22
            darkness[manipulated].append(255.0 - float(picture[y, x].mean()))
    for manipulated, answer in ((False, scene.answer), (True, scene.misled)):
        assert scene.choices[int(np.argmax(darkness[manipulated]))] == answer


def test_same_seed_same_files_and_more_pairs_keep_the_first(tmp_path: Path) -> None:
    short, again, other = (tmp_path / name for name in "abc")
    assert write(short, 2, seed=1) == write(again, 3, seed=1)[:4]
    assert write(other, 2, seed=2) != write(again, 2, seed=1)
    for path in sorted(short.rglob("*.png")):
        assert path.read_bytes() == (again / path.relative_to(short)).read_bytes()
    manifest = json.loads((short / "manifest.json").read_text())
    assert (manifest["pairs"], manifest["source"]) == (2, {"seed": 1})
